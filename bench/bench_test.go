//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/workload"
	"github.com/leasehold/leasehold/test/process"
)

func TestMain(m *testing.M) {
	workload.HoldIfAsked() // the test's own program is the holder that is killed
	os.Exit(m.Run())
}

// Every workload runs, in small, and so does every system that is installed here; what is measured is no
// concern of the test.
func TestEveryWorkloadRuns(t *testing.T) {
	binary := process.BuildTree(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second) // what comes later is left out, not wrong
	defer cancel()
	tryRun(ctx, t, binary, "-only", "leasehold")
	tryRun(ctx, t, binary, "-workloads", "cycle-64,handover", "-nodes", "1")
	if left := leftovers(t, binary); len(left) > 0 {
		t.Errorf("it has left processes: %v", left)
	}
}

// tryRun runs the benchmark and looks for what Leasehold could not do.
func tryRun(ctx context.Context, t *testing.T, binary string, args ...string) {
	t.Helper()
	out := t.TempDir()
	args = append(args, "-quick", "-binary", binary, "-out", out)
	if err := run(ctx, args, t.Output(), t.Output()); err != nil && err != errEarly {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(out, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Run
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	for _, table := range r.Tables {
		i := slices.IndexFunc(table.Rows, func(r *report.Row) bool { return r.System == report.Ours })
		if (i < 0 || len(table.Rows[i].Rounds) == 0) && !r.Early {
			t.Errorf("%s: Leasehold has no figures", table.Heading())
		}
		for _, row := range table.Rows {
			if row.Note != "" {
				t.Logf("%s, %s: %s", table.Heading(), row.System, row.Note)
			}
		}
	}
}

// leftovers returns the processes of a program.
func leftovers(t *testing.T, binary string) (left []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if exe, err := os.Readlink(link); err == nil && strings.HasPrefix(exe, binary) {
			left = append(left, link)
		}
	}
	return left
}

// Somebody who ends it gets what there is, and nothing goes on.
func TestItEndsWhenItIsTold(t *testing.T) {
	binary := process.BuildTree(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	args := []string{"-only", "leasehold", "-workloads", "cycle", "-seconds", "60", "-binary", binary, "-out", ""}
	if err := run(ctx, args, t.Output(), t.Output()); err != errEarly {
		t.Errorf("the error is %v, want %v", err, errEarly)
	}
	if left := leftovers(t, binary); len(left) > 0 {
		t.Errorf("it has left processes: %v", left)
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-only mongo", `there is no system "mongo": choose from leasehold`},
		{"-workloads dance", `there is no workload "dance": choose from cycle-1`},
		{"-nodes 2", `-nodes is 1, 3 or 1,3, not "2"`},
		{"-wire carrier", `-wire is resp, http or resp,http, not "carrier"`},
		{"redis", `"redis" is not a flag`},
	} {
		if err := run(t.Context(), strings.Fields(c.args), t.Output(), t.Output()); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
}
