package engine_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// TestFeedForgetsANamespace follows a namespace until it is forgotten: those who follow it
// are woken and told that history is gone, and nothing of it is kept.
func TestFeedForgetsANamespace(t *testing.T) {
	state, feed := core.NewAt(core.NewestLevel), engine.NewFeed()
	apply := func(at time.Duration, c core.Command) {
		t.Helper()
		result, err := state.Apply(core.Time(time.Hour+at), 0, []core.Command{c})
		if err != nil {
			t.Fatal(err)
		}
		feed.Publish(state.View(0), result.Events)
	}
	feed.PublishAll(state.View(0))
	apply(0, &core.PutRecord{Namespace: "green", Path: "a"})
	apply(0, &core.DeleteRecord{Namespace: "green", Path: "a"})
	seen, grew, _ := feed.History("green")
	if events, known := seen.After(1, core.AllOf); !known || len(events) != 1 {
		t.Fatalf("the last event cannot be seen: %v, %v", events, known)
	}
	apply(10*time.Minute, &core.Tick{})
	select {
	case <-grew:
	default:
		t.Fatal("who follows it was not woken")
	}
	gone, _, _ := feed.History("green")
	if _, known := gone.After(2, 0); known {
		t.Error("who saw its last event is said to know all")
	}
	if _, known := gone.After(gone.Revision, core.AllOf); !known {
		t.Error("who looks now cannot follow what begins next")
	}
	apply(11*time.Minute, &core.PutRecord{Namespace: "green", Path: "b"})
	again, _, _ := feed.History("green")
	if events, known := again.After(gone.Revision, core.AllOf); !known || len(events) != 1 {
		t.Errorf("what began next is %v, %v", events, known)
	}

	// A state that came from elsewhere may not have it.
	feed.PublishAll(core.NewAt(core.NewestLevel).View(0))
	if other, _, _ := feed.History("green"); other.Revision != 0 {
		t.Error("it is still published after it was replaced by a state without it")
	}
}
