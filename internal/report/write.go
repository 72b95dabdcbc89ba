package report

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/api/v1/reports"
)

// Unknown stands for what nobody reported. It is never 0: silence is not idle.
const Unknown = "–"

// Hours writes milliseconds as hours.
func Hours(ms int64) string { return strconv.FormatFloat(float64(ms)/3.6e6, 'f', 1, 64) }

// MaybeHours writes what may not be known.
func MaybeHours(ms *int64) string {
	if ms == nil {
		return Unknown
	}
	return Hours(*ms)
}

// IdleShare writes how much of what was held was reported as not used.
func IdleShare(r *reports.Row) string {
	if r.IdleMS == nil || r.HeldMS == 0 {
		return Unknown
	}
	return strconv.FormatInt((100**r.IdleMS+r.HeldMS/2)/r.HeldMS, 10) + " %"
}

// Name writes the name of a row.
func Name(r *reports.Row) string {
	if r.Name == "" {
		return "(none)"
	}
	return r.Name
}

// CSV writes a report for spreadsheets, in hours. A field of what is not known is empty. A name that a spreadsheet
// would take for a formula is quoted for it.
func CSV(w io.Writer, r *reports.Report) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{r.By, "held_h", "idle_h", "busy_h", "waited_h", "holds"})
	for i := range r.Rows {
		row := &r.Rows[i]
		_ = out.Write([]string{literal(Name(row)), Hours(row.HeldMS), known(row.IdleMS), known(row.BusyMS),
			Hours(row.WaitedMS), strconv.Itoa(row.Holds)})
	}
	out.Flush()
	return out.Error()
}

func known(ms *int64) string {
	if ms == nil {
		return ""
	}
	return Hours(*ms)
}

func literal(name string) string {
	if strings.ContainsRune("=+-@\t\r", rune(name[0])) {
		return "'" + name
	}
	return name
}

// How the chart is drawn.
const (
	chartRows  = 30
	chartWidth = 860
	chartLeft  = 220
	chartBar   = 520 // the longest
	chartLine  = 26
)

// chartHead has the colours of both themes. There are no scripts, and nothing is fetched.
const chartHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>
text{font:13px system-ui,sans-serif;fill:#141a26}.dim{fill:#56627a}.bg{fill:#fff}
.busy{fill:#0b744b}.idle{fill:#c26a00}.rest{fill:#b9c2d3}
@media(prefers-color-scheme:dark){text{fill:#e6eaf2}.dim{fill:#93a0b8}.bg{fill:#121722}
.busy{fill:#3ddc97}.idle{fill:#ffb454}.rest{fill:#4a5670}}
</style>
<rect class="bg" width="100%%" height="100%%"/>
`

// SVG draws the rows that held longest as bars: busy, held but idle, and what nobody reported.
func SVG(w io.Writer, r *reports.Report) error {
	rows := r.Rows[:min(len(r.Rows), chartRows)]
	longest := int64(1)
	for i := range rows {
		longest = max(longest, rows[i].HeldMS)
	}
	title := fmt.Sprintf("%s, hours held by %s, %s to %s", r.Resource, r.By, r.From.Format("2006-01-02"),
		r.Until.Format("2006-01-02"))
	var b strings.Builder
	fmt.Fprintf(&b, chartHead, chartWidth, chartLine*(len(rows)+3), escaped(title))
	fmt.Fprintf(&b, `<text x="12" y="20" font-weight="600">%s</text>`+"\n", escaped(title))
	b.WriteString(`<g class="dim"><rect class="busy" x="12" y="33" width="10" height="10"/>` +
		`<text x="27" y="43">busy</text>` +
		`<rect class="idle" x="72" y="33" width="10" height="10"/><text x="87" y="43">held but idle</text>` +
		`<rect class="rest" x="192" y="33" width="10" height="10"/>` +
		`<text x="207" y="43">not reported</text></g>` + "\n")
	for i := range rows {
		drawRow(&b, &rows[i], chartLine*(i+2)+8, longest)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// drawRow draws one bar with its name and its hours.
func drawRow(b *strings.Builder, row *reports.Row, y int, longest int64) {
	busy, idle := int64(0), int64(0)
	if row.BusyMS != nil {
		busy, idle = *row.BusyMS, *row.IdleMS
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, chartLeft-10, y+13, escaped(brief(Name(row))))
	x := chartLeft
	for _, part := range []struct {
		class string
		ms    int64
	}{{"busy", busy}, {"idle", idle}, {"rest", max(0, row.HeldMS-busy-idle)}} {
		width := int(part.ms * chartBar / longest)
		if width > 0 {
			fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="16"/>`, part.class, x, y, width)
		}
		x += width
	}
	fmt.Fprintf(b, `<text class="dim" x="%d" y="%d">%s h</text>`+"\n", x+8, y+13, Hours(row.HeldMS))
}

// brief cuts a name that does not fit beside its bar.
func brief(name string) string {
	if r := []rune(name); len(r) > 28 {
		return string(r[:27]) + "…"
	}
	return name
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
