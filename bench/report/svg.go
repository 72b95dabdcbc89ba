package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// The plots are written by hand: rectangles, lines and text need no library.

// colours are those of the kinds of systems; variants of one share it.
var colours = []struct{ prefix, colour string }{
	{"leasehold", "#1b6ac9"}, {"redis", "#d1402f"}, {"rueidis", "#d1402f"}, {"etcd", "#2f9e6e"},
	{"zookeeper", "#b8860b"}, {"consul", "#c2388b"}, {"postgres", "#5b6b7b"},
}

func colourOf(system string) string {
	for _, c := range colours {
		if strings.HasPrefix(system, c.prefix) {
			return c.colour
		}
	}
	return "#333333"
}

// A drawing is an SVG that is being written.
type drawing struct{ b strings.Builder }

// text writes text at a point. The anchor is start, middle or end.
func (d *drawing) text(x, y float64, anchor, style, format string, args ...any) {
	fmt.Fprintf(&d.b, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>`, x, y, anchor, style)
	_ = xml.EscapeText(&d.b, []byte(fmt.Sprintf(format, args...))) // a builder takes everything
	d.b.WriteString("</text>\n")
}

func (d *drawing) rect(x, y, w, h float64, colour string, opacity float64) {
	fmt.Fprintf(&d.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" fill-opacity="%.2f"/>`+"\n",
		x, y, w, h, colour, opacity)
}

func (d *drawing) line(x1, y1, x2, y2 float64, colour string, width float64) {
	fmt.Fprintf(&d.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"/>`+"\n",
		x1, y1, x2, y2, colour, width)
}

// write writes the whole, on white.
func (d *drawing) write(w io.Writer, width, height float64) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f"
font-family="system-ui, sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, width, height, width, height, d.b.String())
	return err
}

const (
	bold  = `font-weight="bold" font-size="14"`
	small = `font-size="11" fill="#555555"`
	plain = `fill="#222222"`
)

// The measures of the bars.
const (
	plotWidth = 760.0
	barLeft   = 130.0
	barRight  = 600.0
	barStep   = 20.0
)

// Bars writes a plot with a panel for each workload: a bar for each system, from zero, with the least
// and the most of its rounds.
func (r *Run) Bars(w io.Writer) error {
	var d drawing
	y := 30.0
	d.text(16, y, "start", `font-weight="bold" font-size="17"`, "Leasehold beside other systems")
	d.text(16, y+20, "start", small, "%d cores, fdatasync %.2f ms; medians of %s, with the least and the most",
		r.Machine.CPUs, r.Machine.SyncMillis, r.lasted())
	y += 40
	for _, t := range r.Tables {
		y = d.panel(t, y+16)
	}
	return d.write(w, plotWidth, y+16)
}

// panel draws one workload and returns where it ends.
func (d *drawing) panel(t *Table, y float64) float64 {
	first := t.Columns[0]
	most := 0.0
	for _, r := range t.Rows {
		for _, v := range r.Values(first.Key) {
			most = max(most, v)
		}
	}
	if most <= 0 {
		return y - 16
	}
	better := "more is better"
	if first.Lower {
		better = "less is better"
	}
	d.text(16, y+14, "start", bold, "%s", t.Heading())
	d.text(16, y+30, "start", small, "%s; %s", first.Title, better)
	y += 40
	scale := (barRight - barLeft) / most
	for _, r := range t.Rows {
		all := r.Values(first.Key)
		if len(all) == 0 {
			continue
		}
		d.bar(r, first, y, scale, all)
		y += barStep
	}
	d.line(barLeft, y-barStep*float64(t.measured(first.Key))-2, barLeft, y, "#999999", 1)
	return y
}

// measured counts the rows that have a figure.
func (t *Table) measured(key string) (n int) {
	for _, r := range t.Rows {
		if len(r.Values(key)) > 0 {
			n++
		}
	}
	return n
}

func (d *drawing) bar(r *Row, c Column, y, scale float64, all []float64) {
	value, least, most := r.Median[c.Key], math.Inf(1), 0.0
	for _, v := range all {
		least, most = min(least, v), max(most, v)
	}
	d.text(barLeft-8, y+11, "end", plain, "%s", r.System)
	opacity := 0.55
	if r.System == Ours {
		opacity = 1
	}
	d.rect(barLeft, y, max(1, value*scale), barStep-6, colourOf(r.System), opacity)
	if len(all) > 1 {
		middle := y + (barStep-6)/2
		d.line(barLeft+least*scale, middle, barLeft+most*scale, middle, "#111111", 1.2)
	}
	label := number(value, c.Digits)
	if r.Ratio > 0 {
		label += "  (Leasehold: " + ratio(r.Ratio) + ")"
	}
	d.text(barLeft+max(value, most)*scale+8, y+11, "start", small, "%s", label)
}
