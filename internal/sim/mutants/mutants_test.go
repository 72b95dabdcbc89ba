package mutants

import (
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	only = flag.String("only", "", "the names of mutants, separated by commas; empty: all")
)

// A found is what became of a mutant.
type found struct {
	*Mutant
	by   Finder
	said string
	err  error
	took time.Duration
}

// Every mutant is found by the tests that its patch names.
func TestMutantsAreFound(t *testing.T) {
	list := chosen(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	builds, unfit := Divide(root, list)
	for _, name := range slices.Sorted(maps.Keys(unfit)) {
		t.Errorf("%s.patch does not fit any more: %v", name, unfit[name])
	}
	var all []found
	for i, b := range builds {
		if err := b.Make(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		t.Logf("build %d has %d mutants and was made after %v", i+1, len(b.Mutants), time.Since(begun).Round(time.Second))
		all = append(all, search(b)...)
	}
	tell(t, all)
}

// chosen are the mutants to look for.
func chosen(t *testing.T) []*Mutant {
	t.Helper()
	list, err := Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if *only != "" {
		names := strings.Split(*only, ",")
		list = slices.DeleteFunc(list, func(m *Mutant) bool { return !slices.Contains(names, m.Name) })
	}
	if len(list) == 0 {
		t.Fatal("there are no mutants")
	}
	return list
}

// search looks for the mutants of a build, two at a time.
func search(b *Build) (all []found) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	work := make(chan *Mutant)
	for range 2 {
		workers.Go(func() {
			for m := range work {
				for _, by := range m.By {
					start := time.Now()
					said, err := b.Find(m.Name, by)
					mu.Lock()
					all = append(all, found{m, by, said, err, time.Since(start)})
					mu.Unlock()
				}
			}
		})
	}
	for _, m := range b.Mutants {
		work <- m
	}
	close(work)
	workers.Wait()
	return all
}

// tell prints a table of all, and fails for each that was not found.
func tell(t *testing.T, all []found) {
	t.Helper()
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.Name, b.Name) })
	var table strings.Builder
	for _, f := range all {
		said := f.said
		if f.err != nil {
			said = "NOT FOUND: " + f.err.Error()
		}
		fmt.Fprintf(&table, "\n%-18s %s\n%18s by %s %s in %.1fs: %.140s", f.Name, f.Breaks, "", f.by.Package, f.by.Test,
			f.took.Seconds(), said)
	}
	t.Logf("%d searches:%s", len(all), &table)
	for _, f := range all {
		if f.err != nil {
			t.Errorf("%s (%s) by %s %s: %v", f.Name, f.Breaks, f.by.Package, f.by.Test, f.err)
		}
	}
}
