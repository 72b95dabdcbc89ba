package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text writes the run as one table, with a part for each workload.
func (r *Run) Text(w io.Writer) error {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "%d cores (%s), Linux %s, %s; fdatasync %.2f ms", m.CPUs, m.CPU, m.Kernel, m.Go, m.SyncMillis)
	if m.SyncAfter > 0 {
		fmt.Fprintf(&b, " before and %.2f ms after", m.SyncAfter)
	}
	fmt.Fprintf(&b, "; load %.1f before the run\n", m.Load)
	for _, s := range r.Servers {
		fmt.Fprintf(&b, "%s %s: %s%s\n", s.Kind, s.Version, s.Setup, prefixed("; speaks ", s.Wires))
	}
	for _, missing := range r.Missing {
		fmt.Fprintln(&b, missing)
	}
	fmt.Fprintf(&b, "%s, in turns; medians, with the least and the most\n", r.lasted())
	if r.Early {
		b.WriteString("ended early: what is missing here was not measured\n")
	}
	for _, t := range r.Tables {
		t.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lasted says how often and for how long each was measured.
func (r *Run) lasted() string {
	if r.Rounds == 1 {
		return fmt.Sprintf("one round of %g s", r.Seconds)
	}
	return fmt.Sprintf("%d rounds of %g s", r.Rounds, r.Seconds)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// Heading returns the title of a table with the number of nodes.
func (t *Table) Heading() string {
	if t.Nodes > 1 {
		return fmt.Sprintf("%s; %d nodes", t.Title, t.Nodes)
	}
	return t.Title
}

func (t *Table) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n", strings.ToUpper(t.Heading()[:1])+t.Heading()[1:])
	lines := [][]string{{"system"}}
	for i, c := range t.Columns {
		lines[0] = append(lines[0], c.Title)
		if i == 0 {
			lines[0] = append(lines[0], "least–most", "leasehold is")
		}
	}
	for _, r := range t.Rows {
		lines = append(lines, t.line(r))
	}
	align(b, lines)
	for _, r := range t.Rows {
		if r.Note != "" {
			fmt.Fprintf(b, "  %s: %s\n", r.System, r.Note)
		}
	}
}

func (t *Table) line(r *Row) []string {
	line := []string{r.System}
	for i, c := range t.Columns {
		all := r.Values(c.Key)
		if len(all) == 0 {
			line = append(line, "–")
		} else {
			line = append(line, number(r.Median[c.Key], c.Digits))
		}
		if i == 0 {
			line = append(line, spread(all, c.Digits), ratio(r.Ratio))
		}
	}
	return line
}

func spread(all []float64, digits int) string {
	if len(all) < 2 {
		return ""
	}
	return number(slices.Min(all), digits) + "–" + number(slices.Max(all), digits)
}

func ratio(r float64) string {
	switch {
	case r == 0:
		return ""
	case r < 0.1:
		return fmt.Sprintf("%.3f×", r)
	case r < 10:
		return fmt.Sprintf("%.2f×", r)
	}
	return fmt.Sprintf("%.0f×", r)
}

// number writes a figure with commas, or with digits after the point.
func number(v float64, digits int) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return "–"
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	whole, part, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if part != "" {
		whole += "." + part
	}
	return sign + whole
}

// align writes lines of cells in columns: the first to the left, the others to the right.
func align(b *strings.Builder, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0:
				b.WriteString(cell + pad)
			default:
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteString("\n")
	}
}
