package cli

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Detail says in a few words what the other columns do not.
func (a *App) Detail(e v1.Event) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Alarm != "" {
		add("%s", e.Alarm)
	}
	if e.How != "" {
		add("%s", e.How)
	}
	if e.Token != 0 {
		add("token %d", e.Token)
	}
	if e.Version != 0 {
		add("version %d", e.Version)
	}
	if e.Until != nil {
		add("until %s", a.Clock(e.Until.Time))
	}
	if e.By != "" {
		add("by %s", e.By)
	}
	if e.Session != "" {
		add("session %s", e.Session)
	}
	text := strings.Join(parts, ", ")
	if e.Reason != "" {
		text = strings.TrimSpace(text + " (" + e.Reason + ")")
	}
	return text
}

// Clock shows a moment of today by its time, and any other (with wide, every one) with its date.
func (a *App) Clock(t time.Time) string {
	switch t = t.Local(); {
	case a.Output == FormatWide:
		return Absolute(t)
	case t.Format(time.DateOnly) != a.Now().Local().Format(time.DateOnly):
		return t.Format(time.DateTime)
	}
	return t.Format(time.TimeOnly)
}

// EventHead and eventCells are the columns of watch; history has others in front.
func EventHead() []string { return []string{"TIME", "EVENT", "RESOURCE", "HOLDER", "DETAIL"} }

func (a *App) EventCells(e v1.Event) []string {
	return []string{a.Clock(e.At.Time), e.Kind, e.Resource, e.Holder, a.Detail(e)}
}

// A stream is a table whose rows come one by one. A column grows with the widest
// cell so far and never shrinks, so that lines stay under each other.
type stream struct {
	app    *App
	head   []string
	widths []int
}

// NewStream expects columns to be as wide as least; the head comes with the first
// row, so that who waits for a first event is not shown an empty table.
func NewStream(a *App, head []string, least []int) *stream {
	return &stream{a, head, least}
}

// Write writes one row at once: a watch may have nothing more to show for hours.
func (s *stream) Write(cells []string) error {
	if head := s.head; head != nil {
		s.head = nil
		if err := s.Write(head); err != nil {
			return err
		}
	}
	var b strings.Builder
	for i, text := range cells {
		text = Cell(text)
		if i == len(cells)-1 {
			b.WriteString(text)
			break
		}
		s.widths[i] = max(s.widths[i], columnsOf(text))
		b.WriteString(Pad(text, s.widths[i]+Gap))
	}
	_, err := fmt.Fprintln(s.app.Stdout, b.String())
	return Written(err)
}

// Pad counts characters; the verbs of fmt do too, but not beside escapes.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-columnsOf(text)))
}
