package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

func applyOne(t testing.TB, s *core.State, at time.Duration, c core.Command) core.Answer {
	t.Helper()
	r, err := s.Apply(core.Time(at), int64(at), []core.Command{c})
	if err != nil {
		t.Fatal(err)
	}
	return r.Answers[0]
}

func take(path, id string) *core.Acquire {
	return &core.Acquire{Namespace: ns, Resource: path, ID: id, Holder: id, TTL: 10 * time.Second}
}

// TestNamesOfAnAreaAreBounded fills an area with names that all have to be compared.
func TestNamesOfAnAreaAreBounded(t *testing.T) {
	s := core.NewAt(core.NewestLevel)
	for i := range leasehold.MaxAreaNames {
		path := fmt.Sprintf("repo/web:src/*.%d", i)
		if answer := applyOne(t, s, time.Second, take(path, path)); answer.Lease == nil {
			t.Fatal(answer.Err)
		}
	}
	answer := applyOne(t, s, time.Second, take("repo/web:src/one/more", "more"))
	if answer.Err == nil || answer.Err.Code != leasehold.Limited || !strings.Contains(answer.Err.Message, "1024") {
		t.Fatalf("one more got %+v, %v", answer.Lease, answer.Err)
	}
	if answer := applyOne(t, s, time.Second, take("repo/api:src", "other")); answer.Lease == nil {
		t.Error(answer.Err)
	}
	again := take("repo/web:src/*.7", "again")
	if answer := applyOne(t, s, time.Second, again); answer.Err == nil || answer.Err.Code != leasehold.Held {
		t.Errorf("a name that is in use got %+v, %v", answer.Lease, answer.Err)
	}
	applyOne(t, s, 12*time.Second, &core.Tick{}) // all of them end
	for s.Work() > 10 {
		applyOne(t, s, 12*time.Second, &core.Tick{})
	}
	if answer := applyOne(t, s, 12*time.Second, take("repo/web:**", "all")); answer.Lease == nil {
		t.Error(answer.Err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// BenchmarkPatterns is an acquire and the release of a file in an area where a thousand others are held.
func BenchmarkPatterns(b *testing.B) {
	s := core.NewAt(core.NewestLevel)
	for i := range 1000 {
		path := fmt.Sprintf("repo/web:src/d%d/*.go", i)
		applyOne(b, s, time.Second, take(path, path))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint(i)
		applyOne(b, s, time.Second, take("repo/web:src/d7/x.md", id))
		applyOne(b, s, time.Second, &core.Release{Namespace: ns, ID: id})
	}
}
