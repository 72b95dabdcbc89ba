package trace

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// A panel is one figure of all choices, as bars.
type panel struct {
	title string
	value func(*figures) float64
	label func(*figures) string
}

// minutes writes a time as people read it in a table.
func minutes(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 10*time.Minute:
		return fmt.Sprintf("%.1f min", d.Minutes())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

// said returns for how many of the waits there was a forecast.
func (f *figures) said() float64 {
	return float64(len(f.errors)) / float64(max(1, len(f.errors)+f.unsaid))
}

var panels = []panel{
	{"Lost after crashes", func(f *figures) float64 { return f.lost().Seconds() },
		func(f *figures) string { return minutes(f.lost()) }},
	{"Jobs cut off", func(f *figures) float64 { return float64(f.cut) },
		func(f *figures) string { return fmt.Sprint(f.cut) }},
	{"Renewals sent", func(f *figures) float64 { return float64(f.renewals) },
		func(f *figures) string { return thousands(f.renewals) }},
	{"Waits with a forecast", func(f *figures) float64 { return f.said() },
		func(f *figures) string { return fmt.Sprintf("%.0f %%", 100*f.said()) }},
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

const (
	panelWidth = 200
	barsWidth  = 120 // the rest is for the labels behind them
	namesWidth = 70
	rowHeight  = 30
	topHeight  = 50
	margin     = 16
)

// plot draws a panel for each figure, with a bar for each choice; the last is the learned one.
func plot(all []figures) string {
	var b strings.Builder
	width, height := 2*margin+namesWidth+panelWidth*len(panels), topHeight+rowHeight*len(all)+margin
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "+
		"font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", width, height)
	text := func(x, y int, anchor, weight, s string) {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" font-weight=\"%s\" fill=\"#1f2933\">%s</text>\n",
			x, y, anchor, weight, html.EscapeString(s))
	}
	text(margin+namesWidth-10, topHeight-18, "end", "bold", "TTL")
	for i := range all {
		weight := "normal"
		if i == len(all)-1 {
			weight = "bold"
		}
		text(margin+namesWidth-10, topHeight+rowHeight*i+19, "end", weight, all[i].choice)
	}
	for n, p := range panels {
		x := margin + namesWidth + panelWidth*n
		text(x, topHeight-18, "start", "bold", p.title)
		for i, wide := range p.widths(all) {
			y, color := topHeight+rowHeight*i, "#9fb3c8"
			if i == len(all)-1 {
				color = "#0b7285"
			}
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", x, y+4, wide,
				rowHeight-10, color)
			text(x+wide+6, y+19, "start", "normal", p.label(&all[i]))
		}
	}
	return b.String() + "</svg>\n"
}

// widths returns how long the bars of a panel are.
func (p *panel) widths(all []figures) (list []int) {
	most := 0.0
	for i := range all {
		most = max(most, p.value(&all[i]))
	}
	for i := range all {
		list = append(list, int(math.Ceil(barsWidth*p.value(&all[i])/max(most, 1)))) // 0 has no bar
	}
	return list
}

// table writes the figures as docs/pools.md has them.
func table(all []figures) string {
	var b strings.Builder
	b.WriteString("| TTL | jobs cut off | lost after a crash: renewed | not renewed | in all | renewals | " +
		"waits with a forecast | off by: half of them | nine of ten |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range all {
		f := &all[i]
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %.0f %% | %s | %s |\n", f.choice, f.cut,
			minutes(f.crashed.each()), minutes(f.silent.each()), minutes(f.lost()), thousands(f.renewals), 100*f.said(),
			minutes(f.percentile(50)), minutes(f.percentile(90)))
	}
	return b.String()
}
