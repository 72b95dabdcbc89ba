package calendar

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
)

func TestCalendar(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 0, 0, 0, time.FixedZone("", 3600))
	got := string(Append(nil, []leasehold.Reservation{{Namespace: "default", ID: "daily@20261120T130000Z", Resource: "lab/gpu", Holder: "ann",
		Reason: "demo, for two; C:\\x", From: at, Until: at.Add(4 * time.Hour), State: leasehold.Planned, Units: []string{"GPU-aaaaaaaaaaaa", "GPU-bbbbbbbbbbbb"}}},
		at.Add(-time.Hour)))
	want := strings.ReplaceAll(`BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Leasehold//Reservations//EN
METHOD:PUBLISH
BEGIN:VEVENT
UID:default/daily@20261120T130000Z
DTSTAMP:20261120T120000Z
DTSTART:20261120T130000Z
DTEND:20261120T170000Z
SUMMARY:lab/gpu: ann
LOCATION:lab/gpu
DESCRIPTION:demo\, for two\; C:\\x\nUnits: GPU-aaaaaaaaaaaa\, GPU-bbbbbbbbb
 bbb\nState: planned\nReservation: daily@20261120T130000Z
STATUS:CONFIRMED
END:VEVENT
END:VCALENDAR
`, "\n", "\r\n")
	if got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

// Whatever is in a text, there are lines of at most 75 bytes of valid UTF-8, and unfolded and unescaped they say the
// same, but for what no text can have.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "plain", "a,b;c\\n", "two\nlines\r\n", strings.Repeat("ü", 90), "\xff\xfe", "BEGIN:VEVENT", strings.Repeat("x", 75), "a\x00b\u0085c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := writer{}
		w.line("SUMMARY", escape(text))
		lines := strings.Split(string(w.b), "\r\n")
		if last := len(lines) - 1; last == 0 || lines[last] != "" {
			t.Fatalf("%q does not end with a line's end", w.b)
		}
		var unfolded strings.Builder
		for i, line := range lines[:len(lines)-1] {
			if len(line) > maxLine || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) || i > 0 && !strings.HasPrefix(line, " ") {
				t.Fatalf("line %q", line)
			}
			if i > 0 {
				line = line[1:]
			}
			unfolded.WriteString(line)
		}
		value := strings.TrimPrefix(unfolded.String(), "SUMMARY:")
		got := strings.NewReplacer(`\\`, `\`, `\,`, `,`, `\;`, `;`, `\n`, "\n").Replace(value)
		want := strings.Map(func(r rune) rune {
			if r != '\n' && unicode.IsControl(r) {
				return unicode.ReplacementChar
			}
			return r
		}, strings.ToValidUTF8(text, "\ufffd"))
		// A run of bytes that are no text is one character to ToValidUTF8, and one for each byte to range.
		if !strings.Contains(want, "\ufffd") && got != want {
			t.Errorf("%q is read as %q", text, got)
		}
	})
}
