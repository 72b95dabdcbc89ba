package server

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/load"
)

func TestProgressFitsOnALine(t *testing.T) {
	figures := load.Figures{Count: 123456, Rate: 123456.7, P50: 1234567 * time.Microsecond,
		P99: 12345 * time.Millisecond}
	for want, p := range map[string]load.Progress{
		"renew     acquiring: 1,000 of 1,000,000 leases": {Operation: load.Renew,
			Phase: load.Acquiring, Done: 1000, Of: 1000000},
		"handover  warming up   errors 1,234": {Operation: load.Handover,
			Phase: load.WarmingUp, Figures: load.Figures{Errors: 1234}},
		"renew     releasing: 0 of 7 leases": {Operation: load.Renew,
			Phase: load.Releasing, Of: 7},
		"cycle       3s of 10s   123,457/s   p50 1234.57ms   p99 12345.00ms": {Operation: load.Cycle,
			Phase: load.Measuring, Elapsed: 3100 * time.Millisecond, Figures: figures},
		"cycle       1s of 10s       0.0/s   p50   0.00ms   p99   0.00ms": {Operation: load.Cycle,
			Phase: load.Measuring, Elapsed: time.Second},
		"cycle     1m5s of 10s      12.5/s   p50   0.42ms   p99   1.00ms": {Operation: load.Cycle,
			Phase: load.Measuring, Elapsed: 65 * time.Second, Figures: load.Figures{Rate: 12.5,
				P50: 420 * time.Microsecond, P99: time.Millisecond}},
	} {
		got := progressLine(p, 10*time.Second)
		if got != want || utf8.RuneCountInString(got) > progressWidth {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Progress is for a person at a terminal who did not ask for silence or JSON.
func TestProgressIsForPeople(t *testing.T) {
	for _, c := range []struct {
		terminal, quiet bool
		output          string
		want            bool
	}{
		{true, false, cli.FormatTable, true}, {false, false, cli.FormatTable, false}, {true, true, cli.FormatTable,
			false}, {true, false, cli.FormatJSON, false},
	} {
		var shown strings.Builder
		a := cli.New()
		a.Stderr, a.Terminal, a.Quiet, a.Output = &shown, func(any) bool { return c.terminal }, c.quiet, c.output
		config := benchConfig(a, &cli.Conn{}, benchFlags{duration: cli.SpanOf(time.Second)})
		if got := config.Progress != nil; got != c.want {
			t.Errorf("%+v: progress is shown: %v", c, got)
			continue
		}
		if c.want {
			config.Progress(load.Progress{Operation: load.Cycle, Phase: load.WarmingUp})
			if got := shown.String(); !strings.HasPrefix(got, "\r ") ||
				!strings.HasSuffix(got, " \rcycle     warming up") {
				t.Errorf("%q", got)
			}
		}
	}
}

func TestBenchErrorKeepsItsCode(t *testing.T) {
	lost := &leasehold.Error{Code: leasehold.Lost, Message: "it is gone"}
	for want, errors := range map[string]uint64{"renew: one error: it is gone": 1,
		"renew: 1,200 errors, the first: it is gone": 1200} {
		r := load.Result{Operation: load.Renew, First: lost}
		r.Errors = errors
		if err := benchError(r); err.Error() != want || cli.ExitCode(cli.Several{err}) != cli.ExitLost {
			t.Errorf("%q with code %d", err, cli.ExitCode(err))
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567",
		-1: "-1", -999: "-999", -1000: "-1,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
	for r, want := range map[float64]string{0: "0.0", 12.34: "12.3", 1234.5: "1,235"} {
		if got := rate(r); got != want {
			t.Errorf("%v is written %s, want %s", r, got, want)
		}
	}
}
