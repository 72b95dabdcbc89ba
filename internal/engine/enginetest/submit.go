package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

var submitTests = map[string]func(*testing.T, driver){
	"submitted commands take effect in their order":            submitsInOrder,
	"each submitted command has its own error":                 submitsApart,
	"a submitted command of a caller that left does nothing":   submitsForNobody,
	"who asks for a submitted command is known":                submitsForAskers,
	"what is submitted by many at once is done once":           submitsAtOnce,
	"a batch that is submitted is the caller's again":          submitsCopies,
	"commands that are submitted to a closed engine are told":  submitsToClosed,
	"commands that are submitted as it closes have one answer": submitsWhileClosing,
	"a submitted command may name a large value":               submitsValues,
}

// results are what became of the commands of a batch.
type results struct {
	mu    sync.Mutex
	got   []outcome
	calls []int // of Done
}

// submit gives a batch to an engine. The results are complete when nothing moves any more.
func (d driver) submit(ctx context.Context, commands ...core.Command) *results {
	r := &results{got: make([]outcome, len(commands)), calls: make([]int, len(commands))}
	var batch []engine.Submission
	for i, c := range commands {
		batch = append(batch, engine.Submission{Ctx: ctx, Command: c, Done: func(a core.Answer, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.got[i] = outcome{a, err}
			r.calls[i]++
		}})
	}
	d.Submit(batch)
	return r
}

// all waits for the results, and checks that each came once.
func (r *results) all(t *testing.T) []outcome {
	t.Helper()
	for range 100 { // a write may take a moment of virtual time
		synctest.Wait()
		if r.complete() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond) // for a second answer
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, n := range r.calls {
		if n != 1 {
			t.Fatalf("command %d of %d has %d answers", i, len(r.calls), n)
		}
	}
	return r.got
}

func (r *results) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.calls {
		if n == 0 {
			return false
		}
	}
	return true
}

func submitsInOrder(t *testing.T, d driver) {
	var commands []core.Command
	for i := range 100 {
		holder := fmt.Sprint("h", i)
		commands = append(commands, ask("r", holder), renew(holder+"@r"), release(holder+"@r"))
	}
	for i, got := range d.submit(t.Context(), commands...).all(t) {
		if got.err != nil {
			t.Fatalf("command %d: %v", i, got.err)
		}
		if i%3 < 2 && got.Lease.Token != leasehold.Token(i/3+1) {
			t.Fatalf("command %d has token %d", i, got.Lease.Token)
		}
	}
	d.submit(t.Context()).all(t) // nothing at all
}

func submitsApart(t *testing.T, d driver) {
	wrong := ask("q", "ann")
	wrong.TTL = time.Nanosecond
	got := d.submit(t.Context(), ask("r", "ann"), wrong, ask("r", "bob"), renew("nobody"), ask("s", "ann")).all(t)
	for i, want := range []error{nil, leasehold.ErrInvalid, leasehold.ErrHeld, leasehold.ErrNotFound, nil} {
		if !errors.Is(got[i].err, want) || want == nil && got[i].Lease == nil {
			t.Errorf("command %d: %+v, want %v", i, got[i], want)
		}
	}
}

func submitsForNobody(t *testing.T, d driver) {
	ended, end := context.WithCancel(t.Context())
	end()
	if got := d.submit(ended, ask("r", "ann")).all(t)[0]; !errors.Is(got.err, leasehold.ErrUnavailable) {
		t.Errorf("got %+v", got)
	}
	if got := d.holder("r"); got != "" {
		t.Errorf("%s holds it", got)
	}
	leaving, leave := context.WithCancel(t.Context())
	later := d.submit(leaving, ask("r", "bob"))
	leave()
	if got := later.all(t)[0]; got.err != nil || d.holder("r") != "bob" {
		t.Errorf("who left after it was taken: %+v", got)
	}
}

func submitsForAskers(t *testing.T, d driver) {
	d.do(&core.ChangeAccess{By: "setup", Put: access.Items{
		Tokens: []*access.Token{{ID: "t1", Hash: fmt.Sprintf("%032d", 1), Principal: "root"},
			{ID: "t2", Hash: fmt.Sprintf("%032d", 2), Principal: "ann"}},
		Bindings: []*access.Binding{
			{Name: "root", Role: "admin", Principal: "root", Namespace: access.AllNamespaces},
			{Name: "ann", Role: "member", Principal: "ann", Namespace: "default", Prefix: "r"},
		},
	}})
	ann := engine.WithAsker(t.Context(), &access.Asker{Principal: "ann", Token: "t2"})
	got := d.submit(ann, ask("r", "worker"), ask("other", "worker")).all(t)
	if got[0].err != nil || !errors.Is(got[1].err, leasehold.ErrDenied) {
		t.Errorf("got %v, %v", got[0].err, got[1].err)
	}
	if got := d.submit(t.Context(), renew("worker@r")).all(t)[0]; !errors.Is(got.err, leasehold.ErrDenied) {
		t.Errorf("of nobody: %v", got.err)
	}
}

// submitsAtOnce sends batches from many goroutines that want the same resources: each has one holder.
func submitsAtOnce(t *testing.T, d driver) {
	var wg sync.WaitGroup
	all := make([]*results, 16)
	for i := range all {
		wg.Go(func() {
			var commands []core.Command
			for j := range 64 {
				commands = append(commands, ask(fmt.Sprint("r", j), fmt.Sprint("h", i)))
			}
			all[i] = d.submit(t.Context(), commands...)
		})
	}
	wg.Wait()
	won := map[int]int{}
	for _, r := range all {
		for j, got := range r.all(t) {
			switch {
			case got.err == nil:
				won[j]++
			case !errors.Is(got.err, leasehold.ErrHeld):
				t.Error(got.err)
			}
		}
	}
	for j := range 64 {
		if won[j] != 1 {
			t.Errorf("r%d was granted %d times", j, won[j])
		}
	}
}

func submitsCopies(t *testing.T, d driver) {
	done := make(chan error, 2)
	batch := []engine.Submission{{Ctx: t.Context(), Command: ask("r", "ann"),
		Done: func(_ core.Answer, err error) { done <- err }}}
	d.Submit(batch)
	batch[0] = engine.Submission{}
	if err := <-done; err != nil || d.holder("r") != "ann" {
		t.Errorf("%v, held by %q", err, d.holder("r"))
	}
}

func submitsToClosed(t *testing.T, d driver) {
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, got := range d.submit(t.Context(), ask("r", "ann"), ask("q", "bob")).all(t) {
		if !errors.Is(got.err, leasehold.ErrUnavailable) {
			t.Errorf("got %v", got.err)
		}
	}
}

func submitsWhileClosing(t *testing.T, d driver) {
	var all []*results
	for i := range 20 {
		all = append(all, d.submit(t.Context(), ask(fmt.Sprint("r", i), "ann"), renew(fmt.Sprint("ann@r", i))))
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		for _, got := range r.all(t) {
			if got.err != nil && !errors.Is(got.err, leasehold.ErrUnavailable) &&
				!errors.Is(got.err, leasehold.ErrUndecided) && !errors.Is(got.err, leasehold.ErrNotFound) {
				t.Errorf("got %v", got.err)
			}
		}
	}
}

func submitsValues(t *testing.T, d driver) {
	large := d.putValue(aLargeValue("v"))
	missing := leasehold.Large{Size: 7}
	got := d.submit(t.Context(), &core.PutRecord{Namespace: "default", Path: "a", Large: large},
		&core.PutRecord{Namespace: "default", Path: "b", Large: &missing}).all(t)
	if got[0].err != nil || !errors.Is(got[1].err, leasehold.ErrInvalid) {
		t.Errorf("got %v, %v", got[0].err, got[1].err)
	}
}
