package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// The formats of -o.
const (
	FormatTable = "table"
	FormatWide  = "wide"
	FormatJSON  = "json"
	FormatName  = "name"
	FormatYAML  = "yaml"
	FormatLines = "ndjson"
)

// OutputFlag gives a command the flag -o; the default is always table.
func (a *App) OutputFlag(cmd *cobra.Command, formats ...string) {
	formats = append([]string{FormatTable}, formats...)
	cmd.Flags().VarP(&Choice{Value: &a.Output, Allowed: formats, Kind: "format"}, "output", "o",
		"how to print: "+strings.Join(formats, ", "))
	CompleteFlag(cmd, "output", formats)
}

// A Choice is a flag with few values.
type Choice struct {
	Value   *string
	Allowed []string
	Kind    string // as the help calls it
}

func (c *Choice) String() string {
	if c.Value == nil {
		return "" // the zero choice, which pflag compares with
	}
	return *c.Value
}

func (c *Choice) Type() string { return c.Kind }

func (c *Choice) Set(s string) error {
	if !slices.Contains(c.Allowed, s) {
		return fmt.Errorf("use %s", OrList(c.Allowed))
	}
	*c.Value = s
	return nil
}

// OrList joins words with commas, and the last with "or".
func OrList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// PrintJSON prints one value: on one line if a program reads it, indented on a terminal.
func (a *App) PrintJSON(value any) error {
	if !a.Terminal(a.Stdout) {
		return a.PrintCompact(value)
	}
	encoder := json.NewEncoder(a.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return Written(encoder.Encode(value))
}

// PrintCompact writes one value on one line, also on a terminal.
func (a *App) PrintCompact(value any) error {
	encoder := json.NewEncoder(a.Stdout)
	encoder.SetEscapeHTML(false)
	return Written(encoder.Encode(value))
}

// PrintLine writes a name, or another line of data.
func (a *App) PrintLine(line string) error {
	_, err := fmt.Fprintln(a.Stdout, Printable(line))
	return Written(err)
}

// Written marks an error of writing the output; nil stays nil.
func Written(err error) error {
	if err != nil {
		return &outputError{err}
	}
	return nil
}

// A Column of a table. A flexible one is cut where the table would not fit on a terminal; in a pipe,
// and with -o wide, nothing is ever cut, so that scripts and copying hands get whole names.
type Column struct {
	Name     string
	Flexible bool
	Right    bool                     // numbers, which are compared digit by digit
	Paint    func(cell string) string // nil: plain
}

// PrintTable prints rows under a head, in columns as wide as their contents.
func (a *App) PrintTable(columns []Column, rows [][]string) error {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = columnsOf(c.Name)
		for _, row := range rows {
			row[i] = Cell(row[i])
			widths[i] = max(widths[i], columnsOf(row[i]))
		}
	}
	if a.Terminal(a.Stdout) && a.Output != FormatWide {
		Fit(columns, widths, a.Width())
	}
	var b strings.Builder
	writeRow(&b, columns, widths, Heads(columns), false)
	for _, row := range rows {
		writeRow(&b, columns, widths, row, a.Colour())
	}
	_, err := io.WriteString(a.Stdout, b.String())
	return Written(err)
}

// Heads returns the names of columns.
func Heads(columns []Column) (names []string) {
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

const (
	Gap      = 2  // blanks between columns
	leastCut = 12 // no column is cut shorter than this
)

// names are columns that people copy from, so they are cut last. Ids, tokens and dates are never cut: a
// part of them is of no use.
var names = []string{"RESOURCE", "NAME", "PATH", "FILE"}

// Fit makes flexible columns narrower, the widest first, until the table is no wider than the
// terminal or nothing is left to take. If that is not enough it cuts long names as well.
func Fit(columns []Column, widths []int, most int) {
	if most <= 0 {
		return
	}
	narrow(widths, most, func(i int) bool { return columns[i].Flexible && widths[i] > leastCut })
	narrow(widths, most, func(i int) bool { return slices.Contains(names, columns[i].Name) && widths[i] > leastCut })
}

// narrow takes columns off the widest that may be cut, until all fit.
func narrow(widths []int, most int, mayCut func(column int) bool) {
	for Total(widths) > most {
		widest := -1
		for i := range widths {
			if mayCut(i) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// Total returns the width of a row, gaps included.
func Total(widths []int) (sum int) {
	for _, w := range widths {
		sum += w + Gap
	}
	return sum - Gap
}

// writeRow cuts, pads and paints the cells of a row. It paints last: escapes have no width.
func writeRow(b *strings.Builder, columns []Column, widths []int, cells []string, colour bool) {
	for i, text := range cells {
		text = cut(text, widths[i])
		blanks := strings.Repeat(" ", max(0, widths[i]-columnsOf(text)))
		if colour && columns[i].Paint != nil {
			text = columns[i].Paint(text)
		}
		if columns[i].Right {
			text, blanks = blanks+text, ""
		}
		b.WriteString(text)
		if i < len(cells)-1 {
			b.WriteString(blanks + strings.Repeat(" ", Gap))
		}
	}
	b.WriteByte('\n')
}

// Cell returns text for one cell of a table. An empty one becomes a dash, since it would shift what
// scripts see as the next column.
func Cell(text string) string {
	if text == "" {
		return "-"
	}
	return Printable(text)
}

// cut shortens a cell and shows that it did. What is left may be a column narrower than asked,
// because a wide character is not cut in two.
func cut(text string, width int) string {
	if columnsOf(text) <= width {
		return text
	}
	used := 0
	for i, r := range text {
		if used += columnsOfRune(r); used > width-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// Printable returns text with escapes for what cannot be printed. Holders and reasons are written
// by others, and must not be able to move the reader's cursor or forge lines.
func Printable(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Colour reports whether to use colours: only on a terminal, and not if the environment says
// otherwise.
func (a *App) Colour() bool {
	return a.Terminal(a.Stdout) && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
}

// PaintState gives each state a colour that differs in lightness too; the word
// stays, so nothing is lost without it.
func PaintState(state string) string {
	codes := map[string]string{"leased": "32", "breaking": "33", "broken": "31", "expired": "31", "available": "2"}
	if code, ok := codes[state]; ok {
		return "\x1b[" + code + "m" + state + "\x1b[0m"
	}
	return state
}
