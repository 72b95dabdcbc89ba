package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/leasetest"
)

// A holes dials connections that can be made to lead nowhere: what is written to them
// vanishes, and nothing comes back, as if a router between had forgotten them.
type holes struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex // guards what follows
	conns []*hole
}

type hole struct {
	net.Conn
	dug    atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (h *holes) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := h.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &hole{Conn: c, closed: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, conn)
	return conn, nil
}

// dig makes all connections that there are lead nowhere. New ones are fine.
func (h *holes) dig() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.dug.Store(true)
	}
	return len(h.conns)
}

// left is how many of the first n connections are still open.
func (h *holes) left(n int) (open int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns[:n] {
		select {
		case <-c.closed:
		default:
			open++
		}
	}
	return open
}

func (h *hole) Read(p []byte) (int, error) {
	for {
		n, err := h.Conn.Read(p)
		switch {
		case !h.dug.Load() || errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case err != nil:
			<-h.closed // nobody tells of the other end
			return 0, net.ErrClosed
		}
	}
}

func (h *hole) Write(p []byte) (int, error) {
	if h.dug.Load() {
		return len(p), nil
	}
	return h.Conn.Write(p)
}

func (h *hole) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.Conn.Close()
}

// wires is a listener in memory.
type wires chan net.Conn

func (w wires) Accept() (net.Conn, error) {
	c, ok := <-w
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (w wires) Close() error   { return nil }
func (w wires) Addr() net.Addr { return &net.TCPAddr{} }

func (w wires) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	w <- theirs
	return ours, nil
}

// secureServer serves HTTP/2 over TLS, and returns what a client needs to be told.
func secureServer(t *testing.T) (*holes, client.Config) {
	t.Helper()
	certificates := newCertificates(t, "n1")
	e := memory.Start(engine.NewGoClock())
	l := make(wires)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	config := door.HostConfig{TLS: certificates.ring(t, "n1", false).Listen(), DrainTimeout: time.Second}
	host := door.MustHost(e, config, native.Kind)
	go func() { ended <- host.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		close(l)
		<-ended
		_ = e.Close()
	})
	h := &holes{dial: l.dial}
	return h, client.Config{
		Servers: []string{"https://n1"}, Namespace: "default", Holder: "test", Clock: bubbleClock{time.Now()},
		HTTP: &http.Client{Transport: &http.Transport{DialContext: h.dialContext, TLSClientConfig: certificates.trusting(t), ForceAttemptHTTP2: true}},
	}
}

// bubbleClock is the time of the bubble.
type bubbleClock struct{ start time.Time }

func (c bubbleClock) Now() time.Duration { return time.Since(c.start) + time.Second }

// All connections lead nowhere, and no error tells of it. Over new ones the server could be
// reached all the time, so nothing is lost.
func TestAConnectionLeadsNowhere(t *testing.T) {
	lives := func(t *testing.T, c *client.Client, h *holes) {
		t.Helper()
		// Many at once, so that there are many connections where each carries one message.
		holds := make([]*client.Hold, 20)
		var wg sync.WaitGroup
		for i := range holds {
			wg.Go(func() { holds[i] = acquire(t, c, string(rune('a'+i)), client.TTL(10*time.Second)) })
		}
		wg.Wait()
		for range 20 {
			time.Sleep(17 * time.Second)
			h.dig()
			time.Sleep(11 * time.Second)
			for _, hold := range holds {
				if err := hold.Err(); err != nil {
					t.Fatalf("lost: %v", err)
				}
			}
		}
	}
	t.Run("plain", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			h := &holes{dial: s.DialContext}
			lives(t, s.Dial(t, func(c *client.Config) { c.HTTP, c.Dial = nil, h.dialContext }), h)
		})
	})
	for _, pings := range []bool{true, false} {
		t.Run(fmt.Sprint("secure, pings ", pings), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, config := secureServer(t)
				if !pings {
					config.HTTP.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{SendPingTimeout: time.Hour}
				}
				c, err := client.Dial(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				lives(t, c, h)
			})
		})
	}
}

// The same over RESP in TLS, where a connection also carries what waits.
func TestASecureRESPConnectionLeadsNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, config := secureServer(t)
		transport := config.HTTP.Transport.(*http.Transport)
		config.HTTP, config.Wire, config.Dial, config.TLS = nil, v1.WireRESP, h.dialContext, transport.TLSClientConfig
		c, err := client.Dial(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		busy := acquire(t, c, "busy", client.TTL(10*time.Second))
		granted := make(chan *client.Hold, 1)
		go func() {
			h, err := c.Acquire(t.Context(), "busy", client.TTL(10*time.Second))
			if err != nil {
				t.Error(err)
			}
			granted <- h
		}()
		for range 20 {
			time.Sleep(17 * time.Second)
			n := h.dig()
			time.Sleep(11 * time.Second)
			if err := busy.Err(); err != nil || h.left(n) > 0 {
				t.Fatalf("%d of %d dead connections are still believed in, %v", h.left(n), n, err)
			}
		}
		n := h.dig()
		time.Sleep(2 * time.Second) // the wait alone has its connection looked at
		if left := h.left(n); left > 2 {
			t.Errorf("%d of %d dead connections are still believed in", left, n)
		}
		if err := busy.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if next := <-granted; next == nil || !next.Valid() {
			t.Error("the wait was not granted")
		}
	})
}

// A dead connection of HTTP/2 is noticed well before a message over it would have to give
// up, also by what sends nothing and only waits.
func TestADeadConnectionIsPinged(t *testing.T) {
	for _, ttl := range []time.Duration{3 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h, config := secureServer(t)
			c, err := client.Dial(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			acquire(t, c, "r", client.TTL(ttl))
			synctest.Wait()
			n := h.dig()
			time.Sleep(ttl / 6)
			if left := h.left(n); left != 0 {
				t.Errorf("TTL %v: %d of %d dead connections are still believed in", ttl, left, n)
			}
		})
	}
}
