package main

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
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatName  = "name"
	formatYAML  = "yaml"
	formatLines = "ndjson"
)

// outputFlag gives a command the flag -o; table is the default of all.
func (a *app) outputFlag(cmd *cobra.Command, formats ...string) {
	formats = append([]string{formatTable}, formats...)
	cmd.Flags().VarP(&choice{value: &a.output, allowed: formats, kind: "format"}, "output", "o", "how to print: "+strings.Join(formats, ", "))
	completeFlag(cmd, "output", formats)
}

// A choice is a flag with few values.
type choice struct {
	value   *string
	allowed []string
	kind    string // as the help calls it
}

func (c *choice) String() string {
	if c.value == nil {
		return "" // the zero choice, which pflag compares with
	}
	return *c.value
}

func (c *choice) Type() string { return c.kind }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("use %s", orList(c.allowed))
	}
	*c.value = s
	return nil
}

func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// printJSON writes one value on one line of standard output if a program reads it,
// and on several if a person does.
func (a *app) printJSON(value any) error {
	if !a.terminal(a.stdout) {
		return a.printCompact(value)
	}
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return written(encoder.Encode(value))
}

// printCompact writes one value on one line, whoever reads it.
func (a *app) printCompact(value any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	return written(encoder.Encode(value))
}

// printLine writes a name, or another line of data.
func (a *app) printLine(line string) error {
	_, err := fmt.Fprintln(a.stdout, printable(line))
	return written(err)
}

func written(err error) error {
	if err != nil {
		return &outputError{err}
	}
	return nil
}

// A column of a table. One that is flexible is cut short where the table would
// not fit on a terminal; elsewhere nothing ever is.
type column struct {
	name     string
	flexible bool
	right    bool                     // numbers, which are compared digit by digit
	paint    func(cell string) string // nil: plain
}

// printTable writes rows under a head, in columns as wide as what is in them.
func (a *app) printTable(columns []column, rows [][]string) error {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = utf8.RuneCountInString(c.name)
		for _, row := range rows {
			row[i] = cell(row[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	if a.terminal(a.stdout) {
		fit(columns, widths, a.width())
	}
	var b strings.Builder
	writeRow(&b, columns, widths, heads(columns), false)
	for _, row := range rows {
		writeRow(&b, columns, widths, row, a.colour())
	}
	_, err := io.WriteString(a.stdout, b.String())
	return written(err)
}

func heads(columns []column) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

const (
	gap      = 2  // blanks between columns
	leastCut = 12 // no column is cut shorter than this
)

// fit makes flexible columns narrower, the widest first, until the table is no
// wider than the terminal or nothing is left to take.
func fit(columns []column, widths []int, most int) {
	if most <= 0 {
		return
	}
	for total(widths) > most {
		widest := -1
		for i, c := range columns {
			if c.flexible && widths[i] > leastCut && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func total(widths []int) (sum int) {
	for _, w := range widths {
		sum += w + gap
	}
	return sum - gap
}

func writeRow(b *strings.Builder, columns []column, widths []int, cells []string, colour bool) {
	for i, text := range cells {
		text = cut(text, widths[i])
		blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
		if colour && columns[i].paint != nil {
			text = columns[i].paint(text)
		}
		if columns[i].right {
			text, blanks = blanks+text, ""
		}
		b.WriteString(text)
		if i < len(cells)-1 {
			b.WriteString(blanks + strings.Repeat(" ", gap))
		}
	}
	b.WriteByte('\n')
}

// cell makes text fit for one place in a table: an empty one would shift what
// scripts see as the next column.
func cell(text string) string {
	if text == "" {
		return "-"
	}
	return printable(text)
}

func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// printable shows what is not a letter as an escape. Holders and reasons are
// written by others, and must not be able to move the cursor of whoever reads.
func printable(text string) string {
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

// colour tells whether to paint: only for a person who did not ask for none.
func (a *app) colour() bool {
	return a.terminal(a.stdout) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// paintState gives each state a colour that differs in lightness too; the word
// stays, so nothing is lost without it.
func paintState(state string) string {
	codes := map[string]string{"leased": "32", "breaking": "33", "broken": "31", "expired": "31", "available": "2"}
	if code, ok := codes[state]; ok {
		return "\x1b[" + code + "m" + state + "\x1b[0m"
	}
	return state
}
