package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
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

// TestOnePublicationDeliversOnlySoMuch publishes thousands of grants at once, more than one entry makes: those whose
// wake-up carries no lease are told to read it.
func TestOnePublicationDeliversOnlySoMuch(t *testing.T) {
	const many = 4000
	state, feed := core.New(), engine.NewFeed()
	apply := func(c core.Command) []*leasehold.Event {
		t.Helper()
		result, err := state.Apply(core.Time(time.Hour), 0, []core.Command{c})
		if err != nil || len(result.Answers) != 1 || result.Answers[0].Err != nil {
			t.Fatalf("%+v: %v", result.Answers, err)
		}
		return result.Events
	}
	apply(&core.Acquire{Namespace: "green", Resource: "r", ID: "first", Holder: "h", TTL: time.Hour})
	turns := make([]*engine.Turn, many)
	for i := range turns {
		id := fmt.Sprint("id-", i)
		c := &core.Acquire{Namespace: "green", Resource: "r", ID: id, Holder: id, TTL: time.Hour, Wait: time.Hour, Slots: 1, Capacity: many}
		apply(c)
		turns[i] = feed.Turn(c)
	}
	events := apply(&core.Release{Namespace: "green", ID: "first"})
	for more := events; len(more) > 0; {
		more = apply(&core.Tick{})
		events = append(events, more...)
	}
	view := state.View(0)
	feed.Publish(view, events)
	delivered := 0
	for i, turn := range turns {
		select {
		case <-turn.Came():
		default:
			t.Fatalf("turn %d did not come", i)
		}
		if _, granted := turn.Granted(); granted {
			delivered++
		}
	}
	if delivered < 1000 || delivered == many || view.Work() > 5000 {
		t.Errorf("%d of %d leases were delivered with %d units of work", delivered, many, view.Work())
	}
}
