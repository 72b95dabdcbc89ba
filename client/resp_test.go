package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/leasetest"
)

// cycle has goroutines hold one of a few resources in turn, until a number of holds, and finds no two holders and no
// token twice. Each hold is counted before it ends.
func cycle(t *testing.T, c *client.Client, holds int64, held *atomic.Int64) {
	t.Helper()
	var inside, last [4]atomic.Int64
	once := func(i int) error {
		h, err := c.Acquire(t.Context(), fmt.Sprint("r", i), client.TTL(10*time.Second))
		if err != nil {
			return err
		}
		if inside[i].Add(1) != 1 {
			t.Error("two hold it")
		}
		if token := int64(h.Token()); last[i].Swap(token) >= token {
			t.Errorf("token %d is not larger than the one before", token)
		}
		held.Add(1)
		inside[i].Add(-1)
		return h.Release(t.Context())
	}
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for held.Load() < holds {
				if err := once(g % len(last)); err != nil {
					t.Errorf("after %d holds: %v", held.Load(), err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A dying is a connection whose other end dies, at any byte of what it has to say.
type dying struct {
	net.Conn
	left   int
	deaths *atomic.Int64
}

var errDead = errors.New("connection reset by peer")

func (d *dying) Read(b []byte) (int, error) {
	if d.left == 0 {
		d.deaths.Add(1)
		_ = d.Close()
		return 0, errDead
	}
	n, err := d.Conn.Read(b[:min(len(b), d.left)])
	d.left -= n
	return n, err
}

// The server is gone in the midst of a pipeline, again and again: whatever was sent is asked for again, and done once.
func TestRESPConnectionsThatDie(t *testing.T) {
	for seed := range uint64(10) {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			var mu sync.Mutex
			var deaths, held atomic.Int64
			chance := rand.New(rand.NewPCG(seed, 0))
			c := s.Dial(t, func(config *client.Config) {
				config.Wire = v1.WireRESP
				config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := s.DialContext(ctx, network, address)
					mu.Lock()
					defer mu.Unlock()
					return &dying{conn, 500 + chance.IntN(5000), &deaths}, err
				}
			})
			cycle(t, c, 500, &held)
			if deaths.Load() < 5 {
				t.Errorf("%d connections died", deaths.Load())
			}
		})
	}
}

// A server that is drained answers what it has, and the client goes on at another. Both are on TCP, where many
// connections share batches.
func TestRESPServersThatDrain(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	serve := func() (address string, stop func()) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		host := door.MustHost(e, door.HostConfig{}, native.Kind)
		go func() { ended <- host.Serve(ctx, l) }()
		return "http://" + l.Addr().String(), sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	first, stopFirst := serve()
	defer stopFirst()
	second, stopSecond := serve()
	defer stopSecond()
	c, err := client.Dial(t.Context(), client.Config{Servers: []string{first, second}, Wire: v1.WireRESP, Holder: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mine, err := c.Acquire(t.Context(), "mine", client.TTL(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var held atomic.Int64
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for held.Load() < 100 {
			time.Sleep(time.Millisecond)
		}
		stopFirst()
	}()
	cycle(t, c, 500, &held)
	<-drained
	if err := mine.Release(t.Context()); err != nil {
		t.Errorf("what was held all the time: %v", err)
	}
}
