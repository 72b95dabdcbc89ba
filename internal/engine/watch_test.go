package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// A still is an engine that only reads a state, which the test changes.
type still struct {
	engine.Engine
	state *core.State
	feed  *engine.Feed
}

func newStill(s *core.State) *still {
	e := &still{state: s, feed: engine.NewFeed()}
	e.feed.PublishAll(s.View(0))
	return e
}

func (s *still) Feed() *engine.Feed { return s.feed }

func (s *still) Read(_ context.Context, fn func(core.View)) error {
	fn(s.state.View(0))
	return nil
}

func (s *still) apply(t *testing.T, c core.Command) {
	t.Helper()
	result, err := s.state.Apply(max(s.state.Now(), core.Time(time.Hour)), 0, []core.Command{c})
	if err != nil {
		t.Fatal(err)
	}
	s.feed.Publish(s.state.View(0), result.Events)
}

func put(path, value string) *core.PutRecord {
	return &core.PutRecord{Namespace: "default", Path: path, Value: value}
}

func watch(e engine.Engine, from engine.Position) (*engine.Watcher, error) {
	return engine.Watch(context.Background(), e, engine.Filter{Namespace: "default"}, &from)
}

// TestWatchOfDroppedHistory writes more than history keeps: a watch that was left behind is told so,
// and where it can go on.
func TestWatchOfDroppedHistory(t *testing.T) {
	e := newStill(core.NewAt(core.NewestLevel))
	e.apply(t, put("a", ""))
	slow, err := watch(e, engine.Position{})
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", leasehold.MaxValue)
	for range 1000 { // each event has the value before it, too
		e.apply(t, put("b", large))
	}
	var gone *engine.GoneError
	if _, err := slow.Next(t.Context()); !errors.As(err, &gone) || gone.Revision != 1001 || gone.Oldest.Revision < 2 {
		t.Fatalf("a watch that was left behind: %v", err)
	}
	if _, err := watch(e, gone.Since); !errors.As(err, &gone) {
		t.Errorf("a watch from there: %v", err)
	}
	again, err := watch(e, gone.Oldest)
	if err != nil {
		t.Fatal(err)
	}
	if events, err := again.Next(t.Context()); err != nil || events[0].Revision != gone.Oldest.Revision+1 {
		t.Errorf("from the oldest position it shows %d events, %v", len(events), err)
	}
}

// TestWatchAcrossARestore goes on with a state that was restored from a backup: what lies between the
// backup and the restore never was in it.
func TestWatchAcrossARestore(t *testing.T) {
	old := core.NewAt(core.NewestLevel)
	e := newStill(old)
	e.apply(t, put("a", ""))
	e.apply(t, put("b", ""))
	behind, err := watch(e, engine.Position{Revision: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.FromBackup(core.Restoration{}); err != nil {
		t.Fatal(err)
	}
	e.feed.PublishAll(old.View(0))
	e.apply(t, put("c", ""))
	events, err := behind.Next(t.Context())
	if err != nil || len(events) != 2 || events[0].Resource != "b" || events[1].Resource != "c" {
		t.Errorf("a watch from before the backup shows %d events, %v", len(events), err)
	}
	var gone *engine.GoneError
	if _, err := watch(e, engine.Position{Revision: 3}); !errors.As(err, &gone) {
		t.Errorf("a watch from a revision that the backup does not have: %v", err)
	}
}
