//go:build linux

// Package crash runs real servers and kills them.
package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/test/process"
)

const (
	kills   = 10 // over each wire
	workers = 16
	ttl     = time.Hour
)

// A server is one process and a way to ask it.
type server struct {
	*process.Process
	caller *v1.Caller
}

// serve starts a server and returns when it answers. It is asked over a wire.
func serve(t *testing.T, binary, data string, wire v1.Wire) *server {
	t.Helper()
	var said bytes.Buffer
	listen := process.Reserve(t)
	p, err := process.Start(&said, binary, "serve", "--listen", listen, "--data", data,
		"--segment-size", "1MiB", "--snapshot-every", "1MiB", "--min-free", "0")
	if err != nil {
		t.Fatal(err)
	}
	return answering(t, p, &said, listen, wire)
}

// answering returns when a server that was started answers.
func answering(t *testing.T, p *process.Process, said *bytes.Buffer, listen string, wire v1.Wire) *server {
	t.Helper()
	caller, err := v1.NewCaller(v1.CallerConfig{Server: "http://" + listen, Wire: wire})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.CloseIdle)
	for {
		if _, err := caller.Ready(t.Context()); err == nil {
			return &server{p, caller}
		}
		if !p.Runs() {
			t.Fatalf("the server ended with %d:\n%s", p.Code(), said)
		}
		time.Sleep(5 * time.Millisecond) // a server that starts answers at once that it does
	}
}

// A fact is what a worker was told of one lease.
type fact struct {
	token    uint64
	released bool
	asked    bool      // to release, without an answer
	earliest time.Time // it cannot end before
	latest   time.Time // it cannot end after
}

// A worker acquires, renews and releases on resources of its own.
type worker struct {
	name  string
	n     int
	facts map[string]*fact // by lease id
	doubt string           // an acquire that got no answer
	last  uint64           // the token of its last grant
}

func (w *worker) resource(id string) string { return "crash/" + id }

// work goes on until the server is gone.
func (w *worker) work(ctx context.Context, c *v1.Caller) error {
	for ctx.Err() == nil {
		w.n++
		id := fmt.Sprintf("%s-%d", w.name, w.n)
		if err := w.acquire(ctx, c, id); err != nil {
			return err
		}
		if w.n%4 == 0 {
			continue // this one is kept
		}
		w.facts[id].asked = true
		if err := c.Release(ctx, v1.ReleaseRequest{ID: id}); err != nil {
			return err
		}
		w.facts[id].released = true
	}
	return ctx.Err()
}

func (w *worker) acquire(ctx context.Context, c *v1.Caller, id string) error {
	w.doubt = id
	sent := time.Now()
	lease, err := c.Acquire(ctx, v1.AcquireRequest{Resource: w.resource(id), Holder: w.name, ID: id, TTL: v1.TTL{Duration: v1.Duration(ttl)}})
	if err != nil {
		return err
	}
	w.doubt = ""
	if lease.Token <= w.last {
		return fmt.Errorf("%s has token %d, after %d", id, lease.Token, w.last)
	}
	w.last = lease.Token
	w.facts[id] = &fact{token: lease.Token, earliest: sent.Add(ttl), latest: time.Now().Add(ttl)}
	return nil
}

// check asks a server that came back for everything that was answered before.
func (w *worker) check(t *testing.T, c *v1.Caller) {
	t.Helper()
	for id, f := range w.facts {
		sent := time.Now()
		r, err := c.Resource(t.Context(), w.resource(id), 0)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		switch held := len(r.Holders) == 1 && r.Holders[0].ID == id; {
		case f.released && held:
			t.Errorf("%s was released and is held", id)
		case !held && !f.asked:
			t.Errorf("%s was granted and is gone: %+v", id, r)
		case held && r.Holders[0].Token != f.token:
			t.Errorf("%s had token %d and has %d", id, f.token, r.Holders[0].Token)
		case held:
			w.checkTime(t, id, f, r.Holders[0], sent)
		}
	}
}

// slack is by how much time may be wrong across a restart within one boot.
const slack = 100 * time.Millisecond

func (w *worker) checkTime(t *testing.T, id string, f *fact, l v1.Lease, sent time.Time) {
	t.Helper()
	remaining := time.Duration(*l.RemainingMS) * time.Millisecond
	if least := time.Until(f.earliest); remaining < least-2*time.Millisecond {
		t.Errorf("%s has %v left, and should have at least %v", id, remaining, least)
	}
	if most := f.latest.Sub(sent); remaining > most+slack {
		t.Errorf("%s has %v left, and should have at most %v", id, remaining, most)
	}
}

func TestKilledServersLoseNothing(t *testing.T) {
	binary := process.BuildTree(t, t.TempDir())
	// Over RESP the workers share connections, so that a kill cuts off many commands on each.
	for wire, door := range map[v1.Wire]string{v1.WireHTTP: "native", v1.WireRESP: "resp"} {
		t.Run(string(wire), func(t *testing.T) { killOften(t, binary, wire, door) })
	}
}

// killOften kills a server again and again under the hands of workers that use one wire. The journal calls it a door.
func killOften(t *testing.T, binary string, wire v1.Wire, door string) {
	data := filepath.Join(t.TempDir(), "data")
	all := make([]*worker, workers)
	for i := range all {
		all[i] = &worker{name: fmt.Sprint("w", i), facts: map[string]*fact{}}
	}
	tokens := map[uint64]string{}
	for range kills {
		s := serve(t, binary, data, wire)
		for _, w := range all {
			w.settle(t, s.caller)
			w.check(t, s.caller)
			w.collect(t, tokens)
		}
		if t.Failed() {
			s.End(syscall.SIGKILL)
			return
		}
		load(t, s, all)
	}
	s := serve(t, binary, data, wire)
	for _, w := range all {
		w.settle(t, s.caller)
		w.check(t, s.caller)
		w.collect(t, tokens)
	}
	checkJournal(t, s.caller, door, tokens)
	if code := s.End(syscall.SIGTERM); code != 0 {
		t.Errorf("after SIGTERM it ended with %d", code)
	}
	t.Logf("%d grants, %d kills", len(tokens), kills)
	if out, err := exec.Command(binary, "check", "--data", data).CombinedOutput(); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
}

// load lets all workers work and kills the server under their hands.
func load(t *testing.T, s *server, all []*worker) {
	t.Helper()
	var wg sync.WaitGroup
	for _, w := range all {
		wg.Go(func() {
			err := w.work(t.Context(), s.caller)
			if !errors.Is(err, leasehold.ErrUnavailable) && !errors.Is(err, leasehold.ErrUndecided) {
				t.Errorf("%s: %v", w.name, err)
			}
		})
	}
	time.AfterFunc(150*time.Millisecond, func() { s.Signal(syscall.SIGKILL) })
	wg.Wait()
	<-s.Ended()
}

// settle asks again, with the same id, for what got no answer.
func (w *worker) settle(t *testing.T, c *v1.Caller) {
	t.Helper()
	for id, f := range w.facts {
		if !f.asked || f.released {
			continue
		}
		if err := c.Release(t.Context(), v1.ReleaseRequest{ID: id}); err != nil {
			t.Errorf("%s releases %s again: %v", w.name, id, err)
		}
		f.released = true
	}
	if w.doubt == "" {
		return
	}
	id := w.doubt
	if err := w.acquire(t.Context(), c, id); err != nil {
		t.Errorf("%s asks again for %s: %v", w.name, id, err)
		return
	}
	// It may have been granted by the first try, so it can end earlier than that.
	w.facts[id].earliest = time.Now()
}

// collect makes sure that no two grants have the same token, and keeps the number
// of leases to look at small.
func (w *worker) collect(t *testing.T, tokens map[uint64]string) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(w.facts)) {
		f := w.facts[id]
		if other, ok := tokens[f.token]; ok && other != id {
			t.Errorf("%s and %s have the token %d", id, other, f.token)
		}
		tokens[f.token] = id
		if f.asked {
			delete(w.facts, id)
		}
	}
}

// checkJournal wants each grant that was answered in the audit once, and each end of a
// lease in the timeline once, whatever was killed in between.
func checkJournal(t *testing.T, c *v1.Caller, door string, tokens map[uint64]string) {
	t.Helper()
	granted, held := map[uint64]string{}, map[uint64]bool{}
	for d, err := range c.Audit(t.Context(), v1.JournalQuery{Verb: "acquire", Limit: v1.MaxLimit}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Outcome != "ok" || granted[d.Token] != "" || d.Door != door || d.Address == "" {
			t.Errorf("the audit has %+v, and token %d for %q", d, d.Token, granted[d.Token])
		}
		granted[d.Token] = d.ID
	}
	for token, id := range tokens {
		if granted[token] != id {
			t.Errorf("the grant of token %d to %s is %q in the audit", token, id, granted[token])
		}
	}
	for h, err := range c.Holds(t.Context(), v1.JournalQuery{Limit: v1.MaxLimit}) {
		if err != nil {
			t.Fatal(err)
		}
		if held[h.Token] || granted[h.Token] != h.ID {
			t.Errorf("the timeline has %+v", h)
		}
		held[h.Token] = true
	}
	if len(held) < len(tokens)/2 {
		t.Errorf("%d grants were answered, and only %d holds are over", len(tokens), len(held))
	}
}
