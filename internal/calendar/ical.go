package calendar

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
)

// Append writes reservations as an iCalendar object, by RFC 5545. Recurrences are expanded already, so there are no
// rules in it, and moments are in UTC, so there are no zones either.
func Append(b []byte, list []leasehold.Reservation, now time.Time) []byte {
	w := writer{b}
	w.line("BEGIN", "VCALENDAR")
	w.line("VERSION", "2.0")
	w.line("PRODID", "-//Leasehold//Reservations//EN")
	w.line("METHOD", "PUBLISH")
	for i := range list {
		w.event(&list[i], now)
	}
	w.line("END", "VCALENDAR")
	return w.b
}

// A writer writes content lines.
type writer struct{ b []byte }

func (w *writer) event(r *leasehold.Reservation, now time.Time) {
	w.line("BEGIN", "VEVENT")
	// The same each time the calendar is read, and another for each namespace.
	w.line("UID", escape(r.Namespace+"/"+r.ID))
	w.moment("DTSTAMP", now)
	w.moment("DTSTART", r.From)
	w.moment("DTEND", r.Until)
	w.line("SUMMARY", escape(r.Resource+": "+r.Holder))
	w.line("LOCATION", escape(r.Resource))
	w.line("DESCRIPTION", escape(description(r)))
	w.line("STATUS", "CONFIRMED")
	w.line("END", "VEVENT")
}

// description says of a reservation what calendars have no field for.
func description(r *leasehold.Reservation) string {
	var lines []string
	if r.Reason != "" {
		lines = append(lines, r.Reason)
	}
	if len(r.Units) > 0 {
		lines = append(lines, "Units: "+strings.Join(r.Units, ", "))
	}
	return strings.Join(append(lines, "State: "+r.State.String(), "Reservation: "+r.ID), "\n")
}

func (w *writer) moment(name string, t time.Time) { w.line(name, t.UTC().Format("20060102T150405Z")) }

// maxLine is how many bytes a line has before it is folded.
const maxLine = 75

// line writes a content line. A long one is folded, between characters: what follows begins with a space, which
// counts.
func (w *writer) line(name, value string) {
	room := maxLine
	for rest := name + ":" + value; rest != ""; {
		n := len(rest)
		if n > room {
			for n = room; !utf8.RuneStart(rest[n]); n-- {
			}
		}
		w.b = append(append(w.b, rest[:n]...), '\r', '\n')
		if rest = rest[n:]; rest != "" {
			w.b, room = append(w.b, ' '), maxLine-1
		}
	}
}

// escape makes any bytes the value of a TEXT property.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s { // what is no UTF-8 comes as U+FFFD
		switch {
		case r == '\\' || r == ';' || r == ',':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case unicode.IsControl(r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
