package door

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func from(address string) context.Context {
	return engine.WithOrigin(context.Background(), leasehold.Origin{Address: address})
}

func by(principal, address string) context.Context {
	return engine.WithAsker(from(address), &access.Asker{Principal: principal})
}

// fill takes all places that a client gets.
func fill(t *testing.T, enter func(context.Context) (func(), error), ctx context.Context) (n int, leave func()) {
	t.Helper()
	var all []func()
	for {
		left, err := enter(ctx)
		if err != nil {
			if !errors.Is(err, leasehold.ErrLimited) {
				t.Fatal(err)
			}
			return n, func() {
				for _, left := range all {
					left()
				}
			}
		}
		n++
		all = append(all, left)
	}
}

// One principal cannot take all places, from however many addresses, and each client that takes all it gets leaves a
// fifth of what it found.
func TestPlacesAreShared(t *testing.T) {
	p := NewPlaces(12500, 10000, "")
	n, leave := 0, []func(){}
	for i := range 8 {
		more, left := fill(t, p.Enter, by("ann", fmt.Sprintf("192.0.2.%d:1", i)))
		n, leave = n+more, append(leave, left)
	}
	if n != 10000 {
		t.Errorf("one principal alone has %d places, want 10000", n)
	}
	for i, want := range []int{2000, 400, 80, 16} {
		n, left := fill(t, p.Enter, by(fmt.Sprint("greedy", i), "192.0.2.1:1"))
		if n != want {
			t.Errorf("the next one that takes all it gets has %d places, want %d", n, want)
		}
		leave = append(leave, left)
	}
	left, err := p.Enter(by("bob", "192.0.2.1:1"))
	if err != nil {
		t.Fatalf("nothing is left for somebody who wants one: %v", err)
	}
	for _, left := range append(leave, left) {
		left()
	}
	if n := p.Now(); n != 0 {
		t.Errorf("%d places are taken after all have left", n)
	}
}

// Where nobody is proven, an address is a client, and a /64 of IPv6 is one address.
func TestPlacesByAddress(t *testing.T) {
	p := NewPlaces(100, 80, "")
	total := 0
	for i := range 100 {
		n, _ := fill(t, p.Enter, from(fmt.Sprintf("[2001:db8:1:1::%x]:%d", i, i)))
		total += n
	}
	if total != 80 {
		t.Errorf("one network has %d places, want 80", total)
	}
	if n, _ := fill(t, p.Enter, from("[2001:db8:1:2::1]:1")); n == 0 {
		t.Error("nothing is left for another network")
	}
}

// A limit that is too small to be parted is one for all.
func TestFewPlaces(t *testing.T) {
	for most := 1; most < 4; most++ {
		b := NewBackend(start(t), Options{MaxStay: most})
		if n, _ := fill(t, b.Stay, from("192.0.2.1:1")); n != most {
			t.Errorf("%d of %d places were given", n, most)
		}
		if n, _ := fill(t, b.Stay, from("192.0.2.2:1")); n != 0 {
			t.Errorf("%d more were given", n)
		}
	}
}

// Whoever watches leaves the places of those alone who renew, and the other way round; the health of a server, which
// anybody may watch, has places of its own.
func TestRenewalsDoNotCompeteWithWatches(t *testing.T) {
	b := NewBackend(start(t), Options{MaxStay: 40})
	ann, anybody := by("ann", "192.0.2.1:1"), from("192.0.2.1:1")
	places := map[string]func(context.Context) (func(), error){
		"waits and watches": b.Stay, "renewals": b.StayRenewing, "health": b.StayChecking,
	}
	for full, enter := range places {
		_, first := fill(t, enter, ann)
		_, second := fill(t, enter, anybody)
		for name, other := range places {
			left, err := other(ann)
			if err == nil {
				left()
			} else if name != full {
				t.Errorf("places for %s are taken, and those for %s are refused: %v", full, name, err)
			}
		}
		first()
		second()
	}
}

func start(t *testing.T) engine.Engine {
	e := memory.Start(engine.NewGoClock())
	t.Cleanup(func() { _ = e.Close() })
	return e
}
