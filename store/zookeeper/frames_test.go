//go:build linux

package zookeeper_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// forgetful forwards connections to a ZooKeeper, and loses one answer with its connection.
type forgetful struct {
	net.Listener
	target string
	left   atomic.Int64 // answers until then
}

func startForgetful(t testing.TB, target string) *forgetful {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	f := &forgetful{Listener: listener, target: target}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go f.serve(client)
		}
	}()
	return f
}

func (f *forgetful) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	for {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(server, frame); err != nil {
			return
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(server, frame[4:]); err != nil || f.left.Add(-1) == 0 {
			return
		}
		if _, err := client.Write(frame); err != nil {
			return
		}
	}
}

// Each answer in the life of a lease is lost once. The caller asks again: it is the same lease, and nothing is
// left of it afterwards.
func TestEachAnswerIsLostOnce(t *testing.T) {
	if !*full {
		t.Skip("left out: the driver waits for a second before it connects again (-full)")
	}
	z := peer.StartZooKeeper(t, peer.ZooKeeperConfig{Tick: time.Second})
	address := z.Members[0].Address
	other := open(t, address)
	for n, lost := int64(1), true; lost; n++ {
		f := startForgetful(t, address)
		s := open(t, f.Addr().String())
		f.left.Store(n)
		life(t, s, other, fmt.Sprint("r", n))
		lost = f.left.Load() <= 0
		_ = s.Close()
	}
}

func again(t *testing.T, what string, call func() error) {
	t.Helper()
	err := errors.New("not called")
	for range 5 {
		if err = call(); !store.Transient(err) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func life(t *testing.T, s, other store.Store, name string) {
	t.Helper()
	last := leasehold.Token(0)
	ref := func(id string) store.Ref { return store.Ref{Resource: name, ID: name + id} }
	ask := func(id string) {
		var grant store.Grant
		again(t, name+": acquire", func() (err error) {
			grant, err = s.Acquire(t.Context(), store.Request{Resource: name, ID: name + id, TTL: 10 * time.Second})
			return err
		})
		if grant.Token <= last {
			t.Errorf("%s: token %d after %d", name, grant.Token, last)
		}
		last = grant.Token
	}
	renew := func(id string) {
		again(t, name+": renew", func() error {
			renewals, err := s.Renew(t.Context(), ref(id))
			if err != nil {
				return err
			}
			if r := renewals[0]; r.Err == nil && (r.Ended != nil || r.Token != last) {
				t.Errorf("%s: the renewal of %s says %+v", name, id, r)
			}
			return renewals[0].Err
		})
	}
	release := func(id string) {
		again(t, name+": release", func() error {
			return s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{ref(id)}})
		})
	}
	ask("a")
	renew("a")
	_, err := other.Acquire(t.Context(), store.Request{Resource: name, ID: name + "x", TTL: 10 * time.Second})
	if !errors.Is(err, leasehold.ErrHeld) {
		t.Errorf("%s is held: %v", name, err)
	}
	release("a")
	ask("b")
	release("a")
	renew("b")
	again(t, name+": break", func() error {
		_, err := s.Break(t.Context(), store.BreakRequest{Ref: ref("b")})
		if errors.Is(err, leasehold.ErrLost) { // by the break whose answer was lost
			return nil
		}
		return err
	})
	release("never") // an id that nobody knows
	if r, err := other.Read(t.Context(), name); err != nil || r.Holding != 0 || r.Waiting != 0 {
		t.Errorf("%s is free: %+v, %v", name, r, err)
	}
}
