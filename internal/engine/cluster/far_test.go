package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/peer"
)

// far is wires on which everything takes a while, each way.
type far struct {
	*wires
	oneWay atomic.Int64
	pumps  sync.WaitGroup
}

func (f *far) dial(ctx context.Context, address string) (net.Conn, error) {
	select { // as TCP takes a round trip
	case <-time.After(2 * time.Duration(f.oneWay.Load())):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	there, err := f.wires.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	here, end := net.Pipe()
	f.pumps.Go(func() { f.pump(end, there) })
	f.pumps.Go(func() { f.pump(there, end) })
	return here, nil
}

// pump carries bytes from one connection to another, and ends both when one does.
func (f *far) pump(from, to net.Conn) {
	type piece struct {
		at    time.Time
		bytes []byte
	}
	pieces := make(chan piece, 1<<16)
	f.pumps.Go(func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close()
			}
		}
	})
	defer close(pieces)
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		if n > 0 {
			pieces <- piece{time.Now().Add(time.Duration(f.oneWay.Load())), slices.Clone(b[:n])}
		}
		if err != nil {
			if err != io.EOF && err != io.ErrClosedPipe {
				panic(err)
			}
			return
		}
	}
}

// Servers that are as far from each other as the election timeout allows are read and
// written, hand the lead over, and know of each other.
func TestServersFarApart(t *testing.T) {
	for _, oneWay := range []time.Duration{time.Millisecond, 140 * time.Millisecond, 300 * time.Millisecond, 450 * time.Millisecond} {
		t.Run(fmt.Sprint(2*oneWay), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *site) { serversFarApart(t, s, oneWay) })
		})
	}
}

func serversFarApart(t *testing.T, s *site, oneWay time.Duration) {
	f := &far{wires: s.wires}
	s.dial = f.dial
	defer func() {
		s.close()
		f.pumps.Wait()
	}()
	s.begin("n1", "n2", "n3")
	f.oneWay.Store(int64(oneWay))
	time.Sleep(5 * time.Second)
	for range 5 {
		for _, name := range sortedKeys(s.engines) {
			e := s.engines[name]
			if err := e.Read(t.Context(), func(core.View) {}); err != nil {
				t.Errorf("%s: read: %v", name, err)
			}
			if _, err := e.Do(t.Context(), lease("of-"+name, time.Hour)); err != nil {
				t.Errorf("%s: write: %v", name, err)
			}
		}
	}
	for _, name := range sortedKeys(s.engines) {
		o := s.outlook(s.engines[name])
		if away := slices.ContainsFunc(o.Servers, func(x engine.Server) bool { return !x.Reachable || x.Applied == 0 }); away || !o.Confirmed || o.Leader == 0 {
			t.Errorf("%s sees %+v", name, o)
		}
	}
	old, next := s.leader().id, s.follower().self.Name
	if leader, err := s.follower().Transfer(t.Context(), next); err != nil || leader != next {
		t.Errorf("%d gave the lead to %q, and not to %s: %v", old, leader, next, err)
	}
}

// A server that is cut off says what it knows, and by whom; the others that they go on.
func TestOutlookOfTheLonely(t *testing.T) { inVirtualTime(t, outlookOfTheLonely) }

func outlookOfTheLonely(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	time.Sleep(3 * time.Second) // each says every second how it does
	lonely := s.follower()
	s.wires.isolate(s, lonely.self.Name)
	time.Sleep(10 * time.Second)
	for _, name := range sortedKeys(s.engines) {
		o := s.outlook(s.engines[name])
		if alone := name == lonely.self.Name; o.Confirmed == alone {
			t.Errorf("%s sees %+v", name, o)
		}
		for _, x := range o.Servers {
			cut := x.ID == lonely.id
			switch {
			case x.ID == o.Self:
				if !x.Answered || !x.Reachable {
					t.Errorf("%s of itself: %+v", name, x)
				}
			case o.Self == lonely.id || cut:
				if x.Answered || x.Reachable || x.HeardBy == 0 || x.Heard < 8*time.Second || x.Heard > 20*time.Second {
					t.Errorf("%s of one that it cannot reach: %+v", name, x)
				}
			case !x.Answered || x.HeardBy == 0 || x.Heard > 2*time.Second:
				t.Errorf("%s of one that is there: %+v", name, x)
			}
		}
	}
}

// isolate lets nothing through to a server, nor from it.
func (w *wires) isolate(s *site, name string) {
	e := s.engines[name]
	w.cut(e.self.Peer)
	nowhere := map[uint64]peer.Peer{}
	for _, m := range e.network.current().Members {
		if m.ID != e.id {
			nowhere[m.ID] = peer.Peer{Name: m.Name, Address: "nowhere"}
		}
	}
	e.network.mesh.SetPeers(nowhere)
}

// A server that has found its cluster may have more to do before it lets clients in.
func TestAServerSaysThatItIsStarting(t *testing.T) { inVirtualTime(t, aServerSaysThatItIsStarting) }

func aServerSaysThatItIsStarting(t *testing.T, s *site) {
	s.begin("n1", "n2", "n3")
	starting := func() (names []string) {
		for _, server := range s.outlook(s.engines["n1"]).Servers {
			if server.Starting {
				names = append(names, server.Name)
			}
		}
		return names
	}
	s.engines["n1"].Opened()
	s.engines["n3"].Opened()
	if got := starting(); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("it says that %q are starting", got)
	}
	s.engines["n2"].Opened()
	if got := starting(); got != nil {
		t.Errorf("it says that %q are starting", got)
	}
}
