package client_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// A gateway is what is between a client and its server. It counts the connections of each wire, and those of RESP end
// as it says.
type gateway struct {
	server     *leasetest.Server
	resp, http atomic.Int64
	answer     atomic.Pointer[string] // to RESP; nil: the server's. Empty: none, ever
}

func (g *gateway) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := g.server.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &passage{Conn: c, gateway: g, closed: make(chan struct{})}, nil
}

// A passage is one connection through a gateway. The first byte says which wire it is.
type passage struct {
	net.Conn
	gateway *gateway
	begin   sync.Once
	once    sync.Once
	closed  chan struct{}
	instead atomic.Pointer[string]
	told    bool
}

func (p *passage) Write(b []byte) (int, error) {
	p.begin.Do(func() {
		if b[0] != '*' {
			p.gateway.http.Add(1)
			return
		}
		p.gateway.resp.Add(1)
		p.instead.Store(p.gateway.answer.Load())
	})
	if p.instead.Load() != nil {
		return len(b), nil
	}
	return p.Conn.Write(b)
}

func (p *passage) Read(b []byte) (int, error) {
	answer := p.instead.Load()
	switch {
	case answer == nil:
		return p.Conn.Read(b)
	case *answer == "" || p.told:
		<-p.closed
		return 0, net.ErrClosed
	}
	p.told = true
	return copy(b, *answer), nil
}

// SetDeadline makes reads end that nobody answers.
func (p *passage) SetDeadline(at time.Time) error {
	if p.gateway.answer.Load() != nil && !at.IsZero() {
		time.AfterFunc(time.Until(at), func() { _ = p.Close() })
		return nil
	}
	return p.Conn.SetDeadline(at)
}

func (p *passage) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Conn.Close()
}

// through makes clients use a gateway.
func (g *gateway) through(c *client.Config) { c.Dial, c.HTTP, c.Wire = g.dial, nil, "" }

// A program that says nothing speaks RESP, and HTTP if it names an HTTP client or the environment does.
func TestWhichWireIsSpoken(t *testing.T) {
	for _, c := range []struct {
		environ  string
		change   func(g *gateway, c *client.Config)
		overRESP bool
	}{
		{"", nil, true},
		{"auto", nil, true},
		{"resp", nil, true},
		{"http", nil, false},
		{"http", func(_ *gateway, c *client.Config) { c.Wire = v1.WireAuto }, true},
		{"resp", func(g *gateway, c *client.Config) {
			c.HTTP = &http.Client{Transport: &http.Transport{DialContext: g.dial}}
		}, false},
		{"", func(_ *gateway, c *client.Config) { c.Servers = []string{"http://leasetest/"} }, true},
	} {
		t.Setenv("LEASEHOLD_WIRE", c.environ)
		synctest.Test(t, func(t *testing.T) {
			g := &gateway{server: leasetest.Start(t)}
			client := g.server.Dial(t, g.through, func(config *client.Config) {
				if c.change != nil {
					c.change(g, config)
				}
			})
			h := acquire(t, client, "r")
			time.Sleep(time.Minute)
			if !h.Valid() || (g.resp.Load() > 0) != c.overRESP || g.http.Load() == 0 { // the watch is HTTP
				t.Errorf("%+v: RESP over %d connections, HTTP over %d; %v", c, g.resp.Load(), g.http.Load(), h.Err())
			}
		})
	}
}

// Something between speaks only HTTP. That costs one greeting and not one for each call, and is noticed when it ends.
func TestAProxyThatSpeaksOnlyHTTP(t *testing.T) {
	t.Setenv("LEASEHOLD_WIRE", "")
	for answer, costs := range map[string]time.Duration{
		"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n": 0,
		"": 3 * time.Second, // it waits for the rest of a request
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &gateway{server: leasetest.Start(t)}
			g.answer.Store(&answer)
			began := time.Now()
			c := g.server.Dial(t, g.through)
			mine := acquire(t, c, "mine")
			if took := time.Since(began); took > costs {
				t.Errorf("%q: to dial and acquire took %v", answer, took)
			}
			for range 100 {
				began := time.Now()
				if err := acquire(t, c, "r").Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 0 {
					t.Fatalf("%q: to acquire and release took %v", answer, took)
				}
				time.Sleep(10 * time.Second)
			}
			if n := g.resp.Load(); n < 10 || n > 25 {
				t.Errorf("%q: RESP was tried %d times in a quarter of an hour", answer, n)
			}
			before := g.resp.Load()
			g.answer.Store(nil)
			for range 10 {
				time.Sleep(10 * time.Second)
				if err := acquire(t, c, "r").Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n := g.resp.Load() - before; n != 3 || !mine.Valid() { // to look, for commands, and for renewals
				t.Errorf("%q: RESP is spoken over %d connections, %v", answer, n, mine.Err())
			}
		})
	}
}
