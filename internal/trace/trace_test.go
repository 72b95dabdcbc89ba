package trace

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
)

var (
	seed  = flag.Uint64("seed", 1, "of the jobs")
	write = flag.String("write", "", "file that the plot is written to; the table is printed")
)

var choices = []choice{
	{"1 min", time.Minute}, {"10 min", 10 * time.Minute}, {"1 h", time.Hour}, {"4 h", 4 * time.Hour}, {"learned", 0},
}

// TestLearnedTTLs: learned TTLs cut no job off, although they let go of dead hosts sooner than any fixed one that cuts off
// as few; and forecasts by kind are closer than those by resource.
func TestLearnedTTLs(t *testing.T) {
	weeks, some := 1, []choice{choices[1], choices[len(choices)-1]}
	if *write != "" {
		weeks, some = 2, choices
	}
	list := jobs(*seed, weeks)
	if *write == "" {
		list = slices.DeleteFunc(list, func(j job) bool { return j.at > 3*24*time.Hour })
	}
	var all []figures
	for _, c := range some {
		f, err := replay(list, c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
		t.Logf("%s: %d jobs, %d crashes, %d forecasts, %d within what they said", f.choice, f.jobs,
			f.crashed.crashes+f.silent.crashes, len(f.errors), f.within)
	}
	t.Logf("\n%s", table(all))
	learned := all[len(all)-1]
	if learned.cut != 0 || learned.crashed.crashes == 0 || len(learned.errors) == 0 {
		t.Errorf("%d jobs were cut off by learned TTLs, of %d crashes and %d forecasts", learned.cut, learned.crashed.crashes, len(learned.errors))
	}
	for _, f := range all[:len(all)-1] {
		if f.cut == 0 && f.lost() <= learned.lost() {
			t.Errorf("%s cuts no job off, and loses %v; learned: %v", f.choice, f.lost(), learned.lost())
		}
		if f.said() > learned.said() {
			t.Errorf("%s: without kinds %.2f of the waits have a forecast, with kinds %.2f", f.choice, f.said(), learned.said())
		}
	}
	if *write != "" {
		if err := os.WriteFile(*write, []byte(plot(all)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJobsAreSeeded: a seed makes the same jobs each time, and they come to the same.
func TestJobsAreSeeded(t *testing.T) {
	list := jobs(7, 1)
	if !reflect.DeepEqual(list, jobs(7, 1)) || reflect.DeepEqual(list, jobs(8, 1)) {
		t.Fatal("the seed does not decide")
	}
	list = list[:400]
	a, _ := replay(list, choice{"learned", 0})
	b, _ := replay(list, choice{"learned", 0})
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v", a, b)
	}
}
