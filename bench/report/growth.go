package report

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A point is a figure at a number of leases.
type point struct{ n, value float64 }

// series returns the points of a row whose keys begin with a name, such as "cycles" in "cycles-1000".
func (r *Row) series(name string) (points []point) {
	for key, value := range r.Median {
		if n, ok := strings.CutPrefix(key, name+"-"); ok {
			if at, err := strconv.ParseFloat(n, 64); err == nil && at > 0 && value > 0 {
				points = append(points, point{at, value})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int { return int(a.n - b.n) })
	return points
}

// growth returns the table that has how cost grows; nil if that was not measured.
func (r *Run) growth() *Table {
	for _, t := range r.Tables {
		if t.Workload == "growth" && t.measured(t.Columns[0].Key) > 0 {
			return t
		}
	}
	return nil
}

// The measures of a diagram.
const (
	axisLeft, axisRight = 80.0, 600.0
	axisHeight          = 220.0
)

// Growth writes a plot of how cost grows with the number of leases. Both axes are logarithmic: what does
// not depend on the number is a level line.
func (r *Run) Growth(w io.Writer) error {
	t := r.growth()
	if t == nil {
		return errors.New("how cost grows was not measured")
	}
	var d drawing
	d.text(16, 30, "start", `font-weight="bold" font-size="17"`, "How cost grows with the number of leases")
	d.text(16, 50, "start", small, "%d cores, fdatasync %.2f ms", r.Machine.CPUs, r.Machine.SyncMillis)
	y := d.diagram(t, "cycles", "acquire and release beside them, cycles/s", 70)
	y = d.diagram(t, "server", "processor time of the server for a cycle, µs", y+30)
	y = d.diagram(t, "memory", "resident memory of the server, MB", y+30)
	return d.write(w, plotWidth, y+20)
}

// diagram draws one figure of all systems and returns where it ends.
func (d *drawing) diagram(t *Table, name, title string, y float64) float64 {
	var all []point
	for _, r := range t.Rows {
		all = append(all, r.series(name)...)
	}
	if len(all) == 0 {
		return y
	}
	lowX, highX, lowY, highY := decades(all)
	top, bottom := y+26, y+26+axisHeight
	atX := func(n float64) float64 {
		return axisLeft + (math.Log10(n)-lowX)/(highX-lowX)*(axisRight-axisLeft)
	}
	atY := func(v float64) float64 { return bottom - (math.Log10(v)-lowY)/(highY-lowY)*axisHeight }
	d.text(16, y+14, "start", bold, "%s", title)
	for e := lowX; e <= highX; e++ {
		x := atX(math.Pow(10, e))
		d.line(x, top, x, bottom, "#e4e4e4", 1)
		d.text(x, bottom+16, "middle", small, "%s", number(math.Pow(10, e), 0))
	}
	for e := lowY; e <= highY; e++ {
		v := math.Pow(10, e)
		d.line(axisLeft, atY(v), axisRight, atY(v), "#e4e4e4", 1)
		d.text(axisLeft-8, atY(v)+4, "end", small, "%s", number(v, int(max(0, -e))))
	}
	var labels []label
	for _, r := range t.Rows {
		points := r.series(name)
		for i, p := range points {
			x, y := atX(p.n), atY(p.value)
			d.rect(x-3, y-3, 6, 6, colourOf(r.System), 1)
			if i > 0 {
				d.line(atX(points[i-1].n), atY(points[i-1].value), x, y, colourOf(r.System), 2)
			}
		}
		if n := len(points); n > 0 {
			labels = append(labels, label{r.System, atX(points[n-1].n), atY(points[n-1].value)})
		}
	}
	d.labels(labels)
	return bottom + 20
}

// decades returns the powers of ten that enclose all points.
func decades(all []point) (lowX, highX, lowY, highY float64) {
	lowX, lowY = math.Inf(1), math.Inf(1)
	highX, highY = math.Inf(-1), math.Inf(-1)
	for _, p := range all {
		lowX, highX = min(lowX, math.Floor(math.Log10(p.n))), max(highX, math.Ceil(math.Log10(p.n)))
		lowY, highY = min(lowY, math.Floor(math.Log10(p.value))), max(highY, math.Ceil(math.Log10(p.value)))
	}
	return lowX, max(highX, lowX+1), lowY, max(highY, lowY+1)
}

// A label is the name of a line, at its end.
type label struct {
	name string
	x, y float64
}

// labels writes the names of lines, and moves those apart that would cover each other.
func (d *drawing) labels(all []label) {
	slices.SortFunc(all, func(a, b label) int { return int(a.y - b.y) })
	for i := range all {
		if i > 0 && all[i].y < all[i-1].y+14 {
			all[i].y = all[i-1].y + 14
		}
		style := `font-weight="bold" fill="` + colourOf(all[i].name) + `"`
		d.text(axisRight+10, all[i].y+4, "start", style, "%s", all[i].name)
	}
}
