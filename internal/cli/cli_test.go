package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

func TestEveryCodeHasAnExitCode(t *testing.T) {
	want := map[leasehold.Code]int{
		leasehold.Held: 75, leasehold.Lost: 76, leasehold.NotFound: 66, leasehold.Invalid: 64, leasehold.Denied: 77,
		leasehold.Limited: 73, leasehold.Unavailable: 69, leasehold.Undecided: 74, leasehold.Refused: 64,
	}
	for _, code := range leasehold.Codes {
		err := Hint(&leasehold.Error{Code: code}, "try again")
		if got := ExitCode(err); got != want[code] || got == 0 {
			t.Errorf("%v ends with %d, want %d", code, got, want[code])
		}
		if p := Problem(err); p.Code != code.String() || p.Exit != want[code] {
			t.Errorf("%v is told as %+v", code, p)
		}
	}
	for err, want := range map[error]int{
		nil: 0, errors.New("what nobody foresaw"): 70, SignalError(syscall.SIGINT): 130,
		SignalError(syscall.SIGTERM):   143,
		&outputError{io.ErrShortWrite}: 74, Hint(UnfitError("clock"), ""): 71, Several{leasehold.ErrLost,
			leasehold.ErrHeld}.first(): 76,
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v ends with %d, want %d", err, got, want)
		}
	}
}

func TestEveryExitCodeIsExplained(t *testing.T) {
	codes := []int{ExitUsage, ExitConflict, ExitNotFound, ExitUnavailable, ExitBug, ExitUnfit, exitLimited, exitUndecided, ExitHeld,
		ExitLost, exitDenied, exitSignal + 2}
	help := exitHelp()
	for _, code := range codes {
		if !regexp.MustCompile(`(?m)^  ` + jsonNumber(code) + ` +\S`).MatchString(help) {
			t.Errorf("the help does not say what %d means:\n%s", code, help)
		}
	}
}

// The first signal ends the context with the signal as its cause.
func TestSignal(t *testing.T) {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	err := interrupted(ctx, leasehold.ErrUndecided)
	if ExitCode(err) != 143 {
		t.Errorf("after SIGTERM the error is %v", err)
	}
}

func TestSignalsHaveTheNamesThatPeopleKnow(t *testing.T) {
	for s, want := range map[syscall.Signal]string{syscall.SIGINT: "stopped by ctrl-C", syscall.SIGTERM: "stopped by SIGTERM"} {
		if got := SignalError(s).Error(); got != want {
			t.Errorf("the error is %q, want %q", got, want)
		}
	}
}

// A wait of a day ends at the same time of another day.
func TestClockHasTheDateOfOtherDays(t *testing.T) {
	noon := time.Date(2031, 4, 1, 12, 0, 0, 0, time.Local)
	a := &App{Now: func() time.Time { return noon }}
	for at, want := range map[time.Time]string{noon.Add(time.Minute): "12:01:00", noon.AddDate(0, 0, 1): "2031-04-02 12:00:00",
		noon.AddDate(0, 0, -1): "2031-03-31 12:00:00"} {
		if got := a.Clock(at); got != want {
			t.Errorf("%v is shown as %s, want %s", at, got, want)
		}
	}
}

func TestParagraphsOfHelpFitATerminal(t *testing.T) {
	long := strings.Repeat("word ", 20) + "end\nof it."
	got := fitParagraphs(long + "\n\n  " + long + "\nshort\nlines\n")
	want := strings.Repeat("word ", 15) + "word\nword word word word end of it.\n\n  " +
		strings.Repeat("word ", 20) + "end\nof it.\nshort\nlines\n"
	if got != want {
		t.Errorf("it is broken like this:\n%s", got)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 40 * time.Millisecond: "0s", 250 * time.Millisecond: "300ms",
		1240 * time.Millisecond: "1.2s",
		9960 * time.Millisecond: "10s", 22400 * time.Millisecond: "22s", 59900 * time.Millisecond: "1m",
		90 * time.Second:             "1m30s",
		time.Hour - time.Millisecond: "1h", 2*time.Hour + 5*time.Minute: "2h5m", 24*time.Hour - time.Second: "1d",
		76 * time.Hour: "3d4h",
	} {
		if got := Short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestFitTakesFromTheWidest(t *testing.T) {
	columns := []Column{{Name: "A"}, {Name: "B", Flexible: true}, {Name: "C", Flexible: true}}
	widths := []int{30, 40, 20}
	Fit(columns, widths, 80)
	if !slices.Equal(widths, []int{30, 26, 20}) {
		t.Errorf("got %v", widths)
	}
	Fit(columns, widths, 10)
	if !slices.Equal(widths, []int{30, 12, 12}) {
		t.Errorf("got %v, want no column cut below %d", widths, leastCut)
	}
	columns[0].Name = "RESOURCE"
	if Fit(columns, widths, 10); !slices.Equal(widths, []int{12, 12, 12}) {
		t.Errorf("got %v, want that names are cut at last", widths)
	}
	Fit(columns, widths, 0)
}

// A holder can call itself what it likes. It must not be able to write on the
// terminal of somebody who lists the leases.
func TestNamesCanNotMoveTheCursor(t *testing.T) {
	for given, want := range map[string]string{
		"plain": "plain", "dé vil": "dé vil", "a\x1b[2Jb": `a\u001b[2Jb`, "a\nb": `a\u000ab`, "a\u202eb": `a\u202eb`,
		"a\xffb": "a�b", "日本": "日本",
	} {
		if got := Printable(given); got != want {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
	}
}

// What East Asians write takes two columns a character, and marks take none. A cell that is cut is
// never wider than its column.
func TestWideCharactersKeepColumns(t *testing.T) {
	for text, want := range map[string]int{
		"plain": 5, "日本": 4, "한국어": 6, "ｆｕｌｌ": 8, "é": 1, "e\u0301": 1, "שלום": 4, "🚀": 2, "a…": 2, "": 0,
	} {
		if got := columnsOf(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
	for _, text := range []string{"日本語の名前がとても長い", "a日本語の名前がとても長い", "plain and rather long",
		"e\u0301e\u0301e\u0301e\u0301 and so on, for long"} {
		for width := 4; width < 12; width++ {
			got := cut(text, width)
			if n := columnsOf(got); n > width || n < width-1 || !strings.HasSuffix(got, "…") {
				t.Errorf("%q cut to %d columns is %q, of %d", text, width, got, n)
			}
		}
	}
	var b strings.Builder
	columns := []Column{{Name: "RESOURCE", Flexible: true}, {Name: "HOLDER"}}
	for _, row := range [][]string{{"日本語の名前がとても長い", "ann"}, {"plain", "bob"}} {
		writeRow(&b, columns, []int{12, 6}, row, false)
	}
	for line := range strings.Lines(b.String()) {
		before, _, _ := strings.Cut(strings.NewReplacer("ann", "|", "bob", "|").Replace(line), "|")
		if columnsOf(before) != 14 {
			t.Errorf("the second column begins at %d:\n%s", columnsOf(before), b.String())
		}
	}
}

// first makes a several, which is no key of a map, into something that is.
func (s Several) first() error { return Hint(s, "") }

func jsonNumber(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
