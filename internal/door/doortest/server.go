package doortest

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// linger is how long a server that stops still answers.
const linger = 5 * time.Second

// An Engine is one in memory that can be broken.
type Engine struct {
	*memory.Engine
	down      atomic.Bool  // there is no leader: nothing happens, and that is said
	undecided atomic.Int64 // how many of the next commands happen, and nobody can tell
	lost      atomic.Bool  // no command happens, and nobody can tell
}

// Do carries out a command, unless it is broken.
func (e *Engine) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	switch {
	case e.down.Load():
		return core.Answer{}, engine.Unavailable("there is no leader: try again")
	case e.lost.Load():
		return core.Answer{}, engine.Undecided("nobody can tell whether it happened")
	}
	answer, err := e.Engine.Do(ctx, command)
	if e.undecided.Add(-1) >= 0 {
		return core.Answer{}, engine.Undecided("nobody can tell whether it happened")
	}
	e.undecided.Store(0)
	return answer, err
}

// Submit does commands one after the other.
func (e *Engine) Submit(batch []engine.Submission) { engine.SubmitEach(e.Do, batch) }

// Read reads the state, which needs a leader too.
func (e *Engine) Read(ctx context.Context, fn func(core.View)) error {
	if e.down.Load() {
		return engine.Unavailable("there is no leader: try again")
	}
	return e.Engine.Read(ctx, fn)
}

// A server is one door at a port of its own.
type server struct {
	t       testing.TB
	adapter *Adapter
	engine  *Engine
	backend *door.Backend
	pipe    *Pipe
	stop    context.CancelFunc
	ended   chan error
	clients []Client
}

// newEngine returns an engine with what clients expect to be there.
func newEngine(t testing.TB, a *Adapter) *Engine {
	e := &Engine{Engine: memory.Start(engine.NewGoClock())}
	if a.Prepare != nil {
		a.Prepare(t, e)
	}
	return e
}

// start starts a server. Without an engine it goes on starting until somebody opens it.
func start(t testing.TB, a *Adapter, e *Engine, options door.Options) *server {
	t.Helper()
	s := &server{t: t, adapter: a, engine: e, backend: door.NewStarting(options), pipe: NewPipe(),
		ended: make(chan error, 1)}
	if e != nil {
		s.backend.Open(e)
	}
	opened := a.Open(t, s.backend)
	config := door.HostConfig{Linger: linger}
	host := door.NewHost(s.backend, config, opened)
	if opened.Port != nil {
		host = door.NewOwnHost(s.backend, config, opened.Port)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() { s.ended <- host.Serve(ctx, s.pipe) }()
	return s
}

// govern turns access on, unless the door's clients expect that anyway.
func (s *server) govern() {
	s.t.Helper()
	if engine.PolicyOf(s.engine) != nil {
		return
	}
	_, err := s.engine.Do(engine.WithAsker(context.Background(), &access.System), &core.ChangeAccess{Put: access.Items{
		Tokens:   []*access.Token{{ID: "t", Hash: secretHash, Principal: "root"}},
		Bindings: []*access.Binding{{Name: "b", Role: "admin", Principal: "root", Namespace: access.AllNamespaces}},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
}

// dial returns a client.
func (s *server) dial() Client {
	c := s.adapter.Dial(s.t, s.pipe.Dial)
	s.clients = append(s.clients, c)
	return c
}

// expect acquires for a holder at once, and fails unless the answer is the one that is wanted.
func (s *server) expect(c Client, holder string, want leasehold.Code) Answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got, err := c.Acquire(ctx, holder, 0)
	if err != nil {
		s.t.Fatalf("acquire by %s got no answer: %v", holder, err)
	}
	if got.Code != want {
		s.t.Errorf("acquire by %s was answered %v, want %v: %s", holder, codeName(got.Code), codeName(want), got.Text)
	}
	return got
}

func (s *server) release(c Client, holder string) {
	s.t.Helper()
	if got, err := c.Release(context.Background(), holder); err != nil || got.Code != 0 {
		s.t.Errorf("release by %s: %v %s", holder, err, got.Text)
	}
}

// A wait is an acquire that stays.
type wait struct {
	Answer
	err error
}

// wait lets a client wait, and returns when it does.
func (s *server) wait(ctx context.Context, c Client, holder string) <-chan wait {
	done := make(chan wait, 1)
	go func() {
		answer, err := c.Acquire(ctx, holder, time.Hour)
		done <- wait{answer, err}
	}()
	synctest.Wait()
	return done
}

// status reads the resource past all doors.
func (s *server) status() (status leasehold.Status) {
	s.t.Helper()
	err := s.engine.Engine.Read(context.Background(), func(v core.View) {
		status = v.Status(leasehold.DefaultNamespace, s.adapter.Resource, 10)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return status
}

// end stops the server, and fails unless it leaves nothing behind. The bubble sees to
// goroutines.
func (s *server) end() {
	s.t.Helper()
	for _, c := range s.clients {
		c.Close()
	}
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("the server did not end well: %v", err)
		}
	case <-time.After(time.Minute):
		s.t.Errorf("the server has not ended a minute after it was stopped")
	}
	metrics := s.backend.Metrics()
	for name, gauge := range map[string]prometheus.Gauge{
		"wait": metrics.Waiting, "watch": metrics.Watches, "export": metrics.Exports,
	} {
		if n := value(gauge); n != 0 {
			s.t.Errorf("%v requests still %s", n, name)
		}
	}
}

func value(g prometheus.Metric) float64 {
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		panic(err) // a gauge can always be written
	}
	return m.GetGauge().GetValue()
}

func codeName(c leasehold.Code) string {
	if c == 0 {
		return "granted"
	}
	return c.String()
}
