package server_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/leasetest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/server"
	"github.com/leasehold/leasehold/store/storetest"
)

// A handle is a store on a server in the same bubble.
type handle struct {
	*server.Store
	server *leasetest.Server
}

// A wire is how a suite asks its servers. It counts the connections that began with RESP, and others.
type wire struct {
	name       v1.Wire
	resp, http atomic.Int64
}

// open opens a handle on a server, with connections of its own.
func (w *wire) open(t testing.TB, s *leasetest.Server) store.Store {
	config := v1.CallerConfig{Servers: []string{"http://leasetest"}, Timeout: 10 * time.Second, Wire: w.name}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := s.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &counted{Conn: c, wire: w}, nil
	}
	opened, err := server.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return handle{opened, s}
}

// counted is a connection that shows its wire by the first byte.
type counted struct {
	net.Conn
	wire  *wire
	begun atomic.Bool
}

func (c *counted) Write(b []byte) (int, error) {
	if len(b) > 0 && !c.begun.Swap(true) {
		if b[0] == '*' {
			c.wire.resp.Add(1)
		} else {
			c.wire.http.Add(1)
		}
	}
	return c.Conn.Write(b)
}

func (w *wire) run(t *testing.T) {
	storetest.Run(t, storetest.Config{
		Open:       func(t testing.TB) store.Store { return w.open(t, leasetest.Start(t)) },
		Second:     func(t testing.TB, first store.Store) store.Store { return w.open(t, first.(handle).server) },
		Virtual:    true,
		TTL:        10 * time.Second,
		WaiterLife: 15 * time.Second, // whatever the TTL
		ForgetsHow: "the history knows",
		Omit:       map[string]string{"tokens/floor": "a server does not forget its tokens, and asks nobody for them"},
	})
}

func TestStoreOverHTTP(t *testing.T) {
	w := wire{name: v1.WireHTTP}
	t.Cleanup(func() {
		if w.resp.Load() > 0 {
			t.Errorf("RESP was spoken over %d connections", w.resp.Load())
		}
	})
	w.run(t)
}

func TestStore(t *testing.T) {
	var w wire
	t.Cleanup(func() {
		if w.resp.Load() < 50 {
			t.Errorf("RESP was spoken over %d connections, HTTP over %d", w.resp.Load(), w.http.Load())
		}
	})
	w.run(t)
}
