package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// watchTests are what a watch promises on every engine.
var watchTests = map[string]func(*testing.T, driver){
	"a watch shows everything in order, once, with values": watchesAll,
	"a watch from any position shows what followed it":     watchesFromAnywhere,
	"a watch shows what its filter wants":                  watchesSome,
	"a slow watch misses nothing and holds up nobody":      watchesSlowly,
	"a watch of what is not known says that it is gone":    watchesWhatIsGone,
	"a watch ends with its caller and with the engine":     watchesNoLonger,
}

func (d driver) watch(f engine.Filter, from *engine.Position) *engine.Watcher {
	d.t.Helper()
	f.Namespace = "default"
	w, err := engine.Watch(d.t.Context(), d.Engine, f, from)
	if err != nil {
		d.t.Fatalf("watch: %v", err)
	}
	return w
}

// next returns what a watch shows next, as text.
func next(t *testing.T, w *engine.Watcher) (texts []string) {
	t.Helper()
	events, err := w.Next(t.Context())
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	for _, e := range events {
		texts = append(texts, fmt.Sprintf("%d.%d %v %s", e.Revision, e.N, e.Kind, e.Resource))
	}
	return texts
}

// upTo reads a watch until it has shown n events.
func upTo(t *testing.T, w *engine.Watcher, n int) (texts []string) {
	t.Helper()
	for len(texts) < n {
		texts = append(texts, next(t, w)...)
	}
	return texts
}

func put(path, value string) *core.PutRecord {
	return &core.PutRecord{Namespace: "default", Path: path, Value: value}
}

// watchesAll begins after what was there, and sees each event once and in order.
func watchesAll(t *testing.T, d driver) {
	d.do(put("before", ""))
	w := d.watch(engine.Filter{}, nil)
	if w.Began() != 1 || w.At() != (engine.Position{Revision: 1, N: core.AllOf}) {
		t.Errorf("it begins at %+v, after revision %d", w.At(), w.Began())
	}
	first := make(chan []*leasehold.Event)
	go func() {
		events, _ := w.Next(t.Context())
		first <- events
	}()
	synctest.Wait()
	d.do(put("config", "one"))
	got := <-first
	if len(got) != 1 || got[0].Revision != 2 || got[0].Record.Value != "one" || got[0].Previous != nil {
		t.Fatalf("the first event is %+v", got)
	}
	d.do(put("config", "two"))
	events, err := w.Next(t.Context())
	if err != nil || len(events) != 1 || events[0].Record.Value != "two" || events[0].Previous == nil ||
		events[0].Previous.Value != "one" {
		t.Fatalf("the next is %+v, %v: want both values", events, err)
	}
	d.do(ask("r", "ann"))
	time.Sleep(11 * time.Second)
	want := []string{"4.0 acquired r", "5.0 ended r", "5.1 alarmed r"}
	if got := upTo(t, w, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func watchesFromAnywhere(t *testing.T, d driver) {
	for _, path := range []string{"a", "b", "c"} {
		d.do(put(path, ""))
	}
	d.do(&core.Txn{Namespace: "default", Then: []core.Op{{Do: core.Put, Path: "d"}, {Do: core.Put, Path: "e"}}})
	d.do(put("f", ""))
	all := upTo(t, d.watch(engine.Filter{}, &engine.Position{}), 6)
	want := []string{"1.0 put a", "2.0 put b", "3.0 put c", "4.0 put d", "4.1 put e", "5.0 put f"}
	if !slices.Equal(all, want) {
		t.Fatalf("got %q, want %q", all, want)
	}
	places := []engine.Position{{Revision: 1}, {Revision: 2}, {Revision: 3}, {Revision: 4}, {Revision: 4, N: 1}}
	for i, at := range places {
		w := d.watch(engine.Filter{}, &at)
		if got := upTo(t, w, len(all)-i-1); !slices.Equal(got, all[i+1:]) {
			t.Errorf("after %+v it shows %q", at, got)
		}
		if w.At() != (engine.Position{Revision: 5}) {
			t.Errorf("it is at %+v", w.At())
		}
	}
	whole := engine.Position{Revision: 4, N: core.AllOf}
	if got := next(t, d.watch(engine.Filter{}, &whole)); !slices.Equal(got, all[5:]) {
		t.Errorf("after all of a revision it shows %q", got)
	}
}

// watchesSome filters: each watch sees what is its own, and passes by the rest.
func watchesSome(t *testing.T, d driver) {
	d.do(&core.OpenSession{Namespace: "default", ID: "s-1", TTL: time.Hour})
	bound := ask("jobs/a", "ann")
	bound.TTL, bound.Session = 0, "s-1"
	d.do(bound)
	d.do(ask("jobs/b", "bob"))
	d.do(put("jobs/b/note", ""))
	d.do(release("bob@jobs/b"))
	d.do(put("end", ""))
	for name, c := range map[string]struct {
		filter engine.Filter
		want   []string
	}{
		"resource": {engine.Filter{Resource: "jobs/b"}, []string{"3.0 acquired jobs/b", "5.0 ended jobs/b"}},
		"prefix": {engine.Filter{Prefix: "jobs/b"}, []string{
			"3.0 acquired jobs/b", "4.0 put jobs/b/note", "5.0 ended jobs/b",
		}},
		"session": {engine.Filter{Session: "s-"}, []string{"1.0 session opened ", "2.0 acquired jobs/a"}},
		"kinds": {engine.Filter{Kinds: []leasehold.Kind{leasehold.Acquired, leasehold.Ended}}, []string{
			"2.0 acquired jobs/a", "3.0 acquired jobs/b", "5.0 ended jobs/b",
		}},
	} {
		w := d.watch(c.filter, &engine.Position{})
		if got := next(t, w); !slices.Equal(got, c.want) {
			t.Errorf("by %s it shows %q, want %q", name, got, c.want)
		}
		if w.At() != (engine.Position{Revision: 6}) {
			t.Errorf("by %s it has passed %+v: a quiet watch must not fall behind", name, w.At())
		}
	}
}

// watchesSlowly writes more than one batch, and more than a reader takes at a time.
func watchesSlowly(t *testing.T, d driver) {
	w := d.watch(engine.Filter{}, nil)
	const entries, each = 24, leasehold.MaxOps
	for i := range entries {
		c := &core.Txn{Namespace: "default"}
		for n := range each {
			c.Then = append(c.Then, core.Op{Do: core.Put, Path: fmt.Sprint("p", n)})
		}
		if d.do(c); i == 0 {
			if _, err := w.Each(func(*leasehold.Event) bool { return false }); err != nil { // takes one
				t.Fatal(err)
			}
		}
	}
	last := w.At()
	for seen := 1; seen < entries*each; {
		events, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if seen += len(events); len(events) > 1024 {
			t.Fatalf("%d events came at once", len(events))
		}
		for _, e := range events {
			follows := e.Revision == last.Revision && e.N == last.N+1 || e.Revision == last.Revision+1 && e.N == 0
			if !follows {
				t.Fatalf("%d.%d came after %+v", e.Revision, e.N, last)
			}
			last = engine.Position{Revision: e.Revision, N: e.N}
		}
	}
}

func watchesWhatIsGone(t *testing.T, d driver) {
	d.do(put("a", ""))
	d.do(&core.DeleteRecord{Namespace: "default", Path: "a"})
	var gone *engine.GoneError
	_, err := engine.Watch(t.Context(), d.Engine, engine.Filter{Namespace: "default"}, &engine.Position{Revision: 9})
	newest := engine.Position{Revision: 2, N: core.AllOf}
	if !errors.As(err, &gone) || gone.Revision != 2 || gone.Since.Revision != 9 || gone.Oldest != newest {
		t.Errorf("a watch from the future: %v", err)
	}
	// A namespace in which there is nothing is forgotten, and its history with it.
	w := d.watch(engine.Filter{}, &engine.Position{Revision: 1})
	time.Sleep(11 * time.Minute)
	d.do(&core.PutRecord{Namespace: "other", Path: "a"})
	time.Sleep(11 * time.Minute)
	d.do(&core.PutRecord{Namespace: "other", Path: "b"})
	if _, err := w.Next(t.Context()); !errors.As(err, &gone) {
		t.Errorf("a watch of a namespace that was forgotten: %v", err)
	}
	d.do(put("new", ""))
	from := gone.Oldest
	if got := next(t, d.watch(engine.Filter{}, &from)); len(got) != 1 {
		t.Errorf("from where it was told to go on it shows %q", got)
	}
}

func watchesNoLonger(t *testing.T, d driver) {
	w := d.watch(engine.Filter{}, nil)
	ctx, leave := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := w.Next(ctx)
		over <- err
	}()
	synctest.Wait()
	leave()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("a watch whose caller left: %v", err)
	}
	go func() {
		_, err := w.Next(t.Context())
		over <- err
	}()
	synctest.Wait()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-over; !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("a watch of a closed engine: %v", err)
	}
}
