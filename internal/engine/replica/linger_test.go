package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

// callHere is call for a command that was encoded on this node.
func (s *stage) callHere(c core.Command) *outcome {
	o := &outcome{}
	s.step(Commands{{Bytes: bytesOf(s.t, c), Command: c,
		Done: func(a core.Answer, err error) { *o = outcome{true, a, err} }}})
	return o
}

func waiter(id string) *core.Acquire {
	return &core.Acquire{Namespace: "default", Resource: "r", ID: id, Holder: id, TTL: time.Minute, Wait: time.Hour}
}

// leased returns a node on which somebody has r, which another has just released.
func leased(t *testing.T) *stage {
	s := started(t)
	s.callHere(waiter("zeroth"))
	s.syncs()
	s.callHere(&core.Release{Namespace: "default", ID: "zeroth"})
	s.syncs()
	s.callHere(waiter("first"))
	if s.inFlight == nil {
		t.Fatal("an acquire of something free lingers")
	}
	s.syncs()
	return s
}

func TestNobodyLingersLongAfterARelease(t *testing.T) {
	s := leased(t)
	s.passes(time.Second)
	s.callHere(waiter("second"))
	if s.inFlight == nil {
		t.Fatal("a waiter lingers, although no release is to be expected")
	}
	s.syncs()
}

func TestAWaiterSharesTheWriteOfTheRelease(t *testing.T) {
	s := leased(t)
	waits := s.callHere(waiter("second"))
	if s.inFlight != nil {
		t.Fatal("a waiter that nobody needs to hear of has a write of its own")
	}
	release := s.callHere(&core.Release{Namespace: "default", ID: "first"})
	if n := s.commandsInFlight(); n != 2 {
		t.Fatalf("%d commands share the write", n)
	}
	s.syncs()
	if !waits.told || !release.told || release.err != nil {
		t.Fatalf("waiter %+v, release %+v", waits, release)
	}
	if h := s.state().View(0).Status("default", "r", 0).Holders; len(h) != 1 || h[0].ID != "second" {
		t.Fatalf("holders %+v", h)
	}
}

func TestAWaiterLingersForAMoment(t *testing.T) {
	s := leased(t)
	waits := s.callHere(waiter("second"))
	after, ok := s.node.NextWake()
	if !ok || after <= 0 || after > time.Millisecond {
		t.Fatalf("the node wants to be woken after %v, %v", after, ok)
	}
	s.passes(after / 2)
	s.callHere(waiter("third")) // which does not make the second linger for longer
	s.step(Wake{})
	if s.inFlight != nil {
		t.Fatal("woken early, it is written")
	}
	s.passes(after - after/2)
	s.step(Wake{})
	if n := s.commandsInFlight(); n != 2 {
		t.Fatalf("%d commands are written when the moment is over", n)
	}
	if after, ok := s.node.NextWake(); ok && after == 0 {
		t.Fatal("the node wants to be woken all the time while it writes")
	}
	s.syncs()
	if !waits.told || waits.answer.Waiter == nil {
		t.Fatalf("%+v", waits)
	}
}

func TestWhatMayBeGrantedDoesNotLinger(t *testing.T) {
	s := leased(t)
	release := s.callHere(&core.Release{Namespace: "default", ID: "first"})
	granted := s.callHere(waiter("second")) // while r is leased as far as the state knows
	s.sync()
	if !release.told || s.commandsInFlight() != 1 {
		t.Fatalf("release %+v; %d commands in flight", release, s.commandsInFlight())
	}
	s.syncs()
	if !granted.told || granted.answer.Lease == nil {
		t.Fatalf("%+v", granted)
	}
}

func TestAskingWithoutWaitingDoesNotLinger(t *testing.T) {
	s := leased(t)
	c := waiter("second")
	c.Wait = 0
	o := s.callHere(c)
	s.syncs()
	if !o.told {
		t.Fatal("who does not want to wait has no answer")
	}
}

func TestManyWaitersDoNotLinger(t *testing.T) {
	s := leased(t)
	for i := range lingering + 1 {
		s.callHere(waiter(fmt.Sprint("w", i)))
	}
	if n := s.commandsInFlight(); n != lingering+1 {
		t.Fatalf("%d commands in flight", n)
	}
}

func TestAServerThatStopsDoesNotLetThemLinger(t *testing.T) {
	s := leased(t)
	o := s.callHere(waiter("second"))
	s.step(Stop{})
	s.syncs()
	if !o.told || !s.node.Idle() {
		t.Fatalf("%+v, idle %v", o, s.node.Idle())
	}
}
