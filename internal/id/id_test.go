package id

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestIDsAreWellFormedAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	form := regexp.MustCompile(`^[a-z2-7]{26}$`)
	now := time.Now()
	for range 10_000 {
		id := at(now)
		if !form.MatchString(id) || seen[id] || seen[id[timed:]] {
			t.Fatalf("%q is malformed, or was there before", id)
		}
		seen[id], seen[id[timed:]] = true, true
	}
}

func TestIDsSortByTheirTime(t *testing.T) {
	last := ""
	for _, after := range []time.Duration{0, time.Millisecond, 31 * time.Millisecond, 32 * time.Millisecond, time.Second,
		time.Hour, 1000 * 24 * time.Hour, 100_000 * 24 * time.Hour} {
		id := at(time.Unix(1_700_000_000, 0).Add(after))
		if strings.Compare(id, last) <= 0 {
			t.Errorf("%s comes %v after %s", id, after, last)
		}
		last = id
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New()
	}
}
