// Package leasetest runs a Leasehold server inside a test: in the test's own process,
// over connections in memory, and without a file.
//
// In a testing/synctest bubble the server and its clients live in the bubble's virtual time:
// hours take milliseconds, and time.Sleep ends a lease.
//
//	func TestNightlyStopsWhenItsLeaseEnds(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			server := leasetest.Start(t)
//			c := server.Dial(t)
//			h, err := c.Acquire(t.Context(), "reports/nightly")
//			…
//			server.Disconnect()         // nothing is renewed from here on
//			time.Sleep(time.Minute)     // takes no time
//			if h.Valid() { … }
//		})
//	}
//
// Outside a bubble the same server runs in real time.
package leasetest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"sync"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A Server is a whole server that keeps its state in memory. Its methods may be called from any
// goroutine.
type Server struct {
	clock  *clock
	engine *memory.Engine
	host   *door.Host
	pipe   *pipe
	stop   context.CancelFunc
	ended  chan error
}

// New starts a server. Call Close at the end, in the bubble in which it was started. In
// a test, Start does that.
func New() *Server {
	clock := &clock{start: time.Now()}
	s := &Server{clock: clock, engine: memory.Start(clock), pipe: newPipe(), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.host = door.MustHost(s.engine, door.HostConfig{}, native.Kind)
	go func() { s.ended <- s.host.Serve(ctx, s.pipe) }()
	return s
}

// Start starts a server that ends with the test. The test fails if the server's state is then
// inconsistent.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("the server ended with: %v", err)
		}
	})
	return s
}

// Close ends the server.
func (s *Server) Close() error {
	s.stop()
	err := <-s.ended
	s.pipe.cut(false)
	return errors.Join(err, s.engine.Check(), s.engine.Close())
}

// Dial returns a client of the server, which is closed when the test ends. The changes apply to
// the server's Config.
func (s *Server) Dial(t testing.TB, changes ...func(*client.Config)) *client.Client {
	t.Helper()
	config := s.Config()
	for _, change := range changes {
		change(&config)
	}
	c, err := client.Dial(context.Background(), config)
	if err != nil {
		t.Fatalf("cannot dial the server: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Config returns the configuration of a client of this server. LEASEHOLD_WIRE chooses its wire.
func (s *Server) Config() client.Config {
	return client.Config{
		Servers: []string{"http://leasetest"}, Dial: s.DialContext, Clock: s.clock,
		Namespace: "default", Holder: "test", Wire: v1.Wire(os.Getenv("LEASEHOLD_WIRE")),
	}
}

// HTTP returns an HTTP client whose requests all go to this server, whatever host they
// name.
func (s *Server) HTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: s.DialContext, MaxIdleConnsPerHost: 64}}
}

// DialContext returns a connection to this server, whatever address is named: for clients that speak RESP to it.
func (s *Server) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return s.pipe.dial(ctx, network, address)
}

// Inside returns a caller that Disconnect does not cut off: to look at the server's state, and
// to act as an operator.
func (s *Server) Inside() *v1.Caller {
	client := &http.Client{Transport: &inside{s.host}}
	caller, err := v1.NewCaller(v1.CallerConfig{Server: "http://leasetest", Client: client})
	if err != nil {
		panic(err) // the address is ours
	}
	return caller
}

// inside answers requests without a connection.
type inside struct{ host *door.Host }

func (i *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	i.host.ServeHTTP(w, r)
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	return w.Result(), nil
}

// Disconnect makes the server unreachable until Connect: all connections break, and new ones are
// refused. The server and its time go on.
func (s *Server) Disconnect() { s.pipe.cut(true) }

// Connect makes the server reachable again.
func (s *Server) Connect() { s.pipe.mend() }

// Suspend pauses the whole program under test: time passes for the server and for all deadlines,
// but no code of the program runs and no timer fires. It returns at the first moment after the
// pause.
func (s *Server) Suspend(d time.Duration) {
	s.clock.jump(d)
	// Time has passed without a timer: let waiters have what expired.
	_, _ = s.engine.Do(context.Background(), &core.Tick{})
}

// A clock is the bubble's clock plus what Suspend skipped.
type clock struct {
	start time.Time

	mu      sync.Mutex // guards what follows
	skipped time.Duration
}

// firstReading keeps the clock from zero, which engines take for no time at all.
const firstReading = time.Second

// Now is the clock of clients.
func (c *clock) Now() time.Duration { return c.Monotonic() }

func (c *clock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.start) + firstReading + c.skipped
}

func (c *clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skipped)
}

func (c *clock) Boot() string { return "" }

func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipped += d
}

// A pipe is a listener in memory.
type pipe struct {
	arrivals chan net.Conn
	closed   chan struct{}
	once     sync.Once

	mu    sync.Mutex // guards what follows
	away  bool
	conns map[net.Conn]bool
}

func newPipe() *pipe {
	return &pipe{arrivals: make(chan net.Conn), closed: make(chan struct{}), conns: map[net.Conn]bool{}}
}

var errRefused = errors.New("connection refused")

func (p *pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	if !p.admit(ours) {
		return nil, errRefused
	}
	select {
	case p.arrivals <- theirs:
		return &conn{ours, p}, nil
	case <-p.closed:
	case <-ctx.Done():
	}
	p.drop(ours)
	return nil, errRefused
}

func (p *pipe) admit(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.away {
		p.conns[c] = true
	}
	return !p.away
}

func (p *pipe) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// cut breaks all connections.
func (p *pipe) cut(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *pipe) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = false
}

// A conn is forgotten when it is closed.
type conn struct {
	net.Conn
	pipe *pipe
}

func (c *conn) Close() error {
	c.pipe.drop(c.Conn)
	return c.Conn.Close()
}

// Accept returns the next connection.
func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.arrivals:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr names the listener.
func (p *pipe) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "leasetest" }
