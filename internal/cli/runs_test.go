package cli

import (
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestRunsAreFewAndSmall(t *testing.T) {
	long := JobRun{Started: v1.Time{Time: time.Unix(1e9, 0)}, Outcome: RunSucceeded, Holder: strings.Repeat("\x01", 1024)}
	for _, c := range []struct {
		run  JobRun
		kept int
	}{{JobRun{Started: long.Started, Outcome: RunFailed}, maxRuns}, {long, 5}} {
		var runs Runs
		for i := range 3 * maxRuns {
			c.run.Token = uint64(i)
			runs.Last = append(runs.Last, c.run)
		}
		value := runs.Value()
		read, err := ParseRuns(value)
		if err != nil || len(read.Last) != c.kept || len(value) > maxRunsBytes {
			t.Errorf("%d runs, %d bytes, %v", len(read.Last), len(value), err)
		}
		if newest := read.Newest(); newest == nil || newest.Token != 3*maxRuns-1 {
			t.Errorf("the newest is %+v", newest)
		}
	}
}

func FuzzParseRuns(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", "[]", `{"last":[]}`, `{"last":[{}]}`, `{"last":null,"counted":"x"}`,
		`{"counted":"2026-03-01T02:00:00Z","last":[{"started":"2026-03-01T02:00:00Z","outcome":"succeeded","duration":"4m","code":0,"new":1}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		runs, err := ParseRuns(value)
		if err != nil {
			return
		}
		if runs.Newest() == nil || len(runs.Events("n", "job")) != len(runs.Last) {
			t.Fatalf("%q has no newest run", value)
		}
		// What was read and is written again is the same, but for what is too much or too fine.
		first, err := ParseRuns(runs.Value())
		if err != nil {
			t.Fatalf("%q is written as %s: %v", value, runs.Value(), err)
		}
		again, err := ParseRuns(first.Value())
		if err != nil || !reflect.DeepEqual(first, again) {
			t.Fatalf("%q changes: %+v, %+v, %v", value, first, again, err)
		}
	})
}

// Runs stand where they were written, among what else happened.
func TestRunsInHistory(t *testing.T) {
	code := 3
	runs := Runs{Last: []JobRun{
		{Started: v1.Time{Time: time.Unix(1e9, 0)}, Outcome: RunFailed, Code: &code, Machine: "web-1", Duration: v1.Duration(time.Minute), Revision: 3},
		{Started: v1.Time{Time: time.Unix(2e9, 0)}, Outcome: RunBegan, Machine: "web-2", Revision: 7},
	}}
	all := MergeEvents([]v1.Event{{Revision: 2, Kind: "acquired"}, {Revision: 4, Kind: "ended"}, {Revision: 4, N: 1, Kind: "acquired"}},
		runs.Events("default", "job"))
	var said []string
	for _, e := range all {
		said = append(said, e.Kind+" "+e.Reason)
	}
	want := []string{"acquired ", "ran failed with code 3 after 1m on web-1", "ended ", "acquired ",
		"ran began on web-2; no end is recorded"}
	if !reflect.DeepEqual(said, want) {
		t.Errorf("history is %q", said)
	}
}
