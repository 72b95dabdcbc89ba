package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// While room is short ticks forget history but for its last minute, in as many entries as it takes.
func TestOldHistoryIsForgottenWhileRoomIsShort(t *testing.T) {
	s := core.New()
	const records = 2*kernel.MaxWork + 100
	for i := range records {
		applyOne(t, s, time.Second, &core.PutRecord{Namespace: ns, Path: fmt.Sprint("p", i), Value: strings.Repeat("x", 100)})
	}
	for i := range records {
		applyOne(t, s, 2*time.Second, &core.DeleteRecord{Namespace: ns, Path: fmt.Sprint("p", i)})
	}
	all := func() int { return len(s.View(0).History(ns).All()) }
	applyOne(t, s, 3*time.Minute, take("r", "late"))
	kept := all()
	applyOne(t, s, 3*time.Minute, &core.Tick{})
	if all() != kept {
		t.Errorf("a tick forgot %d events although there is room", kept-all())
	}
	entries := 0
	for now := 3 * time.Minute; s.Forgets(int64(now)); entries++ {
		before := all()
		applyOne(t, s, now, &core.Tick{Short: true})
		if gone := before - all(); gone == 0 || gone > kernel.MaxWork {
			t.Fatalf("one entry forgot %d events", gone)
		}
	}
	if entries < 4 || all() != 1 {
		t.Errorf("%d events are left after %d entries", all(), entries)
	}
	if _, known := s.View(0).History(ns).After(5, core.AllOf); known {
		t.Error("who resumes early is not told that events are missing")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
