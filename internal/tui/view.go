package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/lease"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// chrome is how many lines are not rows: the title, the summary and the column heads above them,
// the status and the keys below.
const chrome = 5

// room returns how many rows fit on the screen.
func (b *board) room() int { return max(1, b.height-chrome) }

// lines draws the screen: exactly as many lines as it has, none wider than it is.
func (b *board) lines() []string {
	body := b.height - 2 - 2 // the lines above and below it
	lines := []string{b.title(), b.summary()}
	switch {
	case b.mode == modeHelp:
		lines = append(lines, fill(boardHelp(), body)...)
	case b.mode == modeWhom || b.mode == modeReason || b.mode == modeConfirm:
		lines = append(lines, fill(b.breakLines(), body)...)
	case b.mode == modeDetails:
		lines = append(lines, fill(b.detailsLines(body), body)...)
	default:
		lines = append(lines, fill(b.table(), body)...)
	}
	lines = append(lines, b.status(), b.faint(b.keys()))
	lines = lines[:max(0, min(len(lines), b.height))]
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, b.width, "…")
	}
	return lines
}

// fill pads or cuts a list to a length.
func fill(lines []string, length int) []string {
	length = max(0, length)
	for len(lines) < length {
		lines = append(lines, "")
	}
	return lines[:length]
}

func (b *board) title() string {
	text := "leasehold top  " + b.server + "  namespace " + b.namespace
	if b.prefix != "" {
		text += "  under " + cli.Printable(b.prefix)
	}
	if picked := cli.FilterText(b.query.Filter); picked != "" {
		text += "  " + cli.Printable(picked)
	}
	return b.bold(text)
}

// summary counts what there is, or says why nothing can be shown.
func (b *board) summary() string {
	switch {
	case b.lost != nil && b.seen == nil:
		return b.alarm("NO CONNECTION: " + cli.Printable(b.lost.Error()))
	case b.lost != nil:
		return b.alarm(fmt.Sprintf("NO CONNECTION since %s, trying again; this is how it was then: %s",
			b.app.Clock(b.lostAt), cli.Printable(b.lost.Error())))
	case b.seen == nil:
		return "asking…"
	}
	text := b.tally + "; sorted by " + b.order.String()
	if banner := b.quarantine(); banner != "" && b.mode != modeFilter {
		return b.alarm(banner) + "  " + text
	}
	switch {
	case b.mode == modeFilter:
		return fmt.Sprintf("filter: %s▏ %d of %s", cli.Printable(b.filter), len(b.rows), text)
	case b.filter != "":
		return fmt.Sprintf("filter: %s  %d of %s", cli.Printable(b.filter), len(b.rows), text)
	}
	return text
}

// quarantine says that nothing is granted yet after a restore; empty if leases are.
func (b *board) quarantine() string {
	q := b.seen.Quarantine
	if !q.Active || q.Remaining == nil {
		return ""
	}
	return fmt.Sprintf("QUARANTINE: nothing is granted for another %s (leasehold cluster status)",
		cli.Short(time.Duration(*q.Remaining)-b.elapsed()))
}

// counts sums up the snapshot in one line.
func (b *board) counts() string {
	states, waiting := map[string]int{}, 0
	for _, r := range b.seen.Resources {
		states[r.State]++
		waiting += r.Waiting
	}
	parts := []string{cli.Plural(len(b.seen.Resources), "resource", "resources")}
	for _, state := range []string{"leased", "breaking", "broken", "expired", "available"} {
		if states[state] > 0 && states[state] < len(b.seen.Resources) {
			parts = append(parts, fmt.Sprintf("%d %s", states[state], state))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("%d waiting", waiting)), ", ")
}

// table returns the column heads and the rows that fit.
func (b *board) table() []string {
	switch {
	case b.seen == nil:
		return nil
	case len(b.rows) == 0 && b.filter != "":
		return []string{"", "  nothing matches the filter"}
	case len(b.rows) == 0:
		return []string{"", "  nothing is held here; this fills by itself as soon as something is"}
	}
	columns, widths := b.layout()
	lines := []string{b.bold("  " + joinCells(columns, widths, cli.Heads(columns), nil))}
	for i, r := range b.visible() {
		lines = append(lines, b.row(columns, widths, r, b.first+i == b.cursor))
	}
	return lines
}

// layout chooses columns and widths. It drops columns rather than squeeze all of them until none
// can be read.
func (b *board) layout() ([]cli.Column, []int) {
	columns := boardColumns(b.natural["SLOTS"] > 0)
	for {
		widths := make([]int, len(columns))
		for i, c := range columns {
			widths[i] = b.natural[c.Name]
		}
		cli.Fit(columns, widths, b.width-2)
		if cli.Total(widths) <= b.width-2 || len(columns) <= 3 {
			return columns, widths
		}
		columns = columns[:len(columns)-1] // the least important is last
	}
}

// boardColumns has the most important column first: a narrow screen drops the last ones.
func boardColumns(slots bool) []cli.Column {
	columns := []cli.Column{{Name: "RESOURCE", Flexible: true}, {Name: "STATE", Paint: cli.PaintState},
		{Name: "HOLDER", Flexible: true}, {Name: "REMAINING", Right: true}, {Name: "WAITING", Right: true}}
	if slots {
		columns = append(columns, cli.Column{Name: "SLOTS", Right: true})
	}
	return append(columns, cli.Column{Name: "HELD", Right: true}, cli.Column{Name: "REASON", Flexible: true})
}

// measure returns how wide the columns would like to be. It looks at all rows, so that nothing
// jumps while somebody scrolls; and only when the rows change, because there may be thousands.
func (b *board) measure() map[string]int {
	slots := slices.ContainsFunc(b.rows, func(r v1.Resource) bool { return r.Capacity > 1 })
	natural := map[string]int{}
	for _, c := range boardColumns(slots) {
		width := ansi.StringWidth(c.Name)
		switch c.Name {
		case "REMAINING", "HELD":
			width = max(width, len("59m59s")) // it moves: room for what it will be
		default:
			for _, r := range b.rows {
				width = max(width, ansi.StringWidth(b.cell(c.Name, r)))
			}
		}
		natural[c.Name] = width
	}
	return natural
}

func (b *board) cell(name string, r v1.Resource) string {
	switch name {
	case "RESOURCE":
		return cli.Cell(r.Resource)
	case "STATE":
		return cli.Cell(r.State)
	case "HOLDER":
		return cli.Cell(holders(r))
	case "REMAINING":
		return cli.Cell(b.countdown(r))
	case "WAITING":
		return strconv.Itoa(r.Waiting)
	case "SLOTS":
		return fmt.Sprintf("%d/%d", r.Used, r.Capacity)
	case "HELD":
		return cli.Cell(b.heldFor(r))
	case "REASON":
		return cli.Cell(reasonOf(r))
	}
	return ""
}

// holders returns the first holder and how many more there are.
func holders(r v1.Resource) string {
	if len(r.Holders) == 0 {
		return cli.FormerHolder(r)
	}
	if more := max(r.Holding, len(r.Holders)) - 1; more > 0 {
		return fmt.Sprintf("%s +%d", r.Holders[0].Holder, more)
	}
	return r.Holders[0].Holder
}

// reasonOf returns why the first holder has it, and how far it says it is.
func reasonOf(r v1.Resource) string {
	if len(r.Holders) == 0 {
		return ""
	}
	if note := r.Holders[0].Note; note != "" {
		return strings.TrimPrefix(r.Holders[0].Reason+": "+note, ": ")
	}
	return r.Holders[0].Reason
}

// countdown returns what is left by now.
func (b *board) countdown(r v1.Resource) string {
	if len(r.Holders) == 0 {
		return ""
	}
	d, known := remaining(r)
	if !known {
		return cli.Endless
	}
	return cli.Short(d - b.elapsed())
}

func (b *board) heldFor(r v1.Resource) string {
	since, known := heldSince(r)
	if !known {
		return ""
	}
	return cli.Short(b.seen.Asked.Add(b.elapsed()).Sub(since).Truncate(1e9))
}

func (b *board) row(columns []cli.Column, widths []int, r v1.Resource, selected bool) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = b.cell(c.Name, r)
	}
	painted := func(i int, text string) string {
		if b.app.Colour() && !selected && b.lost == nil && columns[i].Paint != nil {
			return columns[i].Paint(text)
		}
		return text
	}
	line := joinCells(columns, widths, cells, painted)
	switch {
	case selected:
		return b.reverse(cli.Pad("> "+line, b.width))
	case b.lost != nil:
		return b.faint("  " + line)
	}
	return "  " + line
}

// joinCells is like the writer of list, but counts columns of the terminal: some characters take
// two.
func joinCells(columns []cli.Column, widths []int, cells []string, paint func(i int, text string) string) string {
	var line strings.Builder
	for i, text := range cells {
		text = ansi.Truncate(text, widths[i], "…")
		blanks := strings.Repeat(" ", max(0, widths[i]-ansi.StringWidth(text)))
		if paint != nil {
			text = paint(i, text)
		}
		if columns[i].Right {
			text, blanks = blanks+text, ""
		}
		line.WriteString(text)
		if i < len(cells)-1 {
			line.WriteString(blanks + strings.Repeat(" ", cli.Gap))
		}
	}
	return line.String()
}

// detailsLines returns the details of one resource, from where it was scrolled to.
func (b *board) detailsLines(room int) []string {
	s := b.Details
	switch {
	case s.err != nil && s.resource == nil:
		return []string{"", cli.Printable(s.err.Error())}
	case s.resource == nil:
		return []string{"", "asking for " + cli.Printable(s.name) + "…"}
	}
	by := b.now.Sub(s.asked)
	if b.lost != nil {
		by = b.lostAt.Sub(s.asked)
	}
	text := b.app.Describe(cli.AgedOne(*s.resource, max(0, by)), cli.Runs{})
	lines := append([]string{""}, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	s.first = max(0, min(s.first, len(lines)-room))
	return lines[s.first:]
}

func (b *board) breakLines() []string {
	if b.mode == modeWhom {
		return b.whomLines()
	}
	s := *b.breaking
	by := max(0, b.now.Sub(s.asked))
	aged := cli.AgedOne(v1.Resource{Holders: s.leases}, by)
	s.resource, s.leases = cli.AgedOne(s.resource, by), aged.Holders
	text := lease.WhatBreaks(b.app, s.losers(), lease.BreakFlags{Now: s.atOnce})
	return append([]string{""}, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
}

func (s *breakView) losers() lease.Losers {
	return lease.Losers{Resource: s.resource, Leases: s.leases}
}

// whomLines lists the holders to choose from, around the one that the cursor is on.
func (b *board) whomLines() []string {
	s := b.breaking
	lines := []string{"", fmt.Sprintf("  Whose lease on %s?", cli.Printable(s.resource.Resource))}
	names := make([]string, 0, len(s.resource.Holders)+1)
	for _, l := range s.resource.Holders {
		names = append(names, lease.Loses(l))
	}
	names = append(names, fmt.Sprintf("all %d of them", len(s.resource.Holders)))
	room := max(1, b.height-len(lines)-4)
	first := max(0, min(s.cursor-room/2, len(names)-room))
	for i, name := range names[first:min(first+room, len(names))] {
		if first+i == s.cursor {
			lines = append(lines, b.reverse(cli.Pad("> "+cli.Printable(name), b.width)))
			continue
		}
		lines = append(lines, "  "+cli.Printable(name))
	}
	return lines
}

// question returns the question of a break. It is in the status line, which even the smallest
// screen shows.
func (b *board) question() string {
	s := b.breaking
	reason := cli.Printable(s.reason)
	switch {
	case b.mode == modeWhom:
		return b.bold(fmt.Sprintf("%d hold it", len(s.resource.Holders)))
	case b.mode == modeReason && b.note != "":
		return b.bold("Why? ") + reason + "▏" + b.note
	case b.mode == modeReason:
		return b.bold("Why? ") + reason + "▏"
	case s.sent:
		return "breaking " + s.what() + ": " + reason
	}
	return b.bold("Break " + s.what() + ": " + reason + "?")
}

func (s *breakView) what() string {
	if len(s.leases) == 1 {
		return "it"
	}
	return fmt.Sprintf("all %d leases", len(s.leases))
}

// status returns the result of the last action, or the last event.
func (b *board) status() string {
	switch {
	case b.breaking != nil:
		return b.question()
	case b.note != "" && b.now.Sub(b.noted) < noteTime:
		return b.bold(b.note)
	case b.last == nil:
		return ""
	}
	e := b.last
	return b.faint(fmt.Sprintf("%s  %s %s  %s  %s", b.app.Clock(e.At.Time), e.Kind, cli.Printable(e.Resource),
		cli.Printable(e.Holder), cli.Printable(b.app.Detail(*e))))
}

func (b *board) keys() string {
	switch b.mode {
	case modeFilter:
		return "type to filter   enter keep   esc back"
	case modeHelp:
		return "any key goes back"
	case modeDetails:
		return "up/down scroll   b break   esc back   ? help"
	case modeWhom:
		return "up/down move   enter this one   esc leave them alone"
	case modeReason:
		return "enter go on   tab end it " + map[bool]string{true: "after what it has left",
			false: "now"}[b.breaking.atOnce] + "   esc leave it alone"
	case modeConfirm:
		return "y breaks it   any other key leaves it alone"
	}
	return "up/down move   enter details   / filter   s sort   b break   ? help   q quit"
}

func boardHelp() []string {
	return strings.Split(`
  up, down, j, k    move                 enter   details, with the queue
  pgup, pgdown      move by a screen     b       break the lease
  home, end, g, G   first, last          s       sort by the next column
  /                 filter by any word   esc     back; clears the filter
  q, ctrl-C         quit                 ?       this

  REMAINING is when the lease ends unless it is renewed, by the server's count;
  living holders renew long before. HELD is how long the oldest lease has been held.
  "+2" beside a holder means two more who share it. A name in parentheses
  lost its lease: it expired, or was broken.

  A break ends the lease that you were shown, and asks whose, if several share
  the resource. If somebody else has it by the time you confirm, nothing happens.`, "\n")
}

// The ways to stand out. Without colours only those are left that are none.
func (b *board) bold(text string) string    { return style("1", text) }
func (b *board) faint(text string) string   { return style("2", text) }
func (b *board) reverse(text string) string { return style("7", text) }

func (b *board) alarm(text string) string {
	if b.app.Colour() {
		return style("1;31", text)
	}
	return style("1", text)
}

func style(code, text string) string {
	return "\x1b[" + cmp.Or(code, "0") + "m" + text + "\x1b[0m"
}
