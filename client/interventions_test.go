package client_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// onTeller puts a way to a server between on which no watch gets through. If it is silent, answers do not say what
// others did to a session, as those of older servers do not.
func onTeller(t *testing.T, s *leasetest.Server, silent bool) (*road, func(*client.Config)) {
	r, way := onDeaf(t, s)
	if silent {
		r.without = []string{"interventions", "intervened"}
	}
	return r, way
}

// breaks is an operator who breaks a lease, by default after what remains.
func breaks(t *testing.T, s *leasetest.Server, id string, period *v1.Duration) {
	t.Helper()
	if _, err := s.Inside().Break(t.Context(), v1.BreakRequest{ID: id, Period: period, By: "op"}); err != nil {
		t.Error(err)
	}
}

// No watch tells of a break. The renewals do: the holder no longer believes it when somebody else
// gets the resource, whether or not the server counts.
func TestARenewalTellsOfABreak(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for after := range 10 {
			t.Run(fmt.Sprint("counts ", !silent, ", after ", after), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *leasetest.Server) {
					_, through := onTeller(t, s, silent)
					a, b := s.Dial(t, through), s.Dial(t)
					h, other := acquire(t, a, "r", client.TTL(15*time.Second)), acquire(t, a, "other", client.TTL(15*time.Second))
					lost := h.Lost()
					time.Sleep(time.Minute + time.Duration(after)*time.Second)
					breaks(t, s, h.ID(), nil)
					next := acquire(t, b, "r")
					select {
					case <-lost:
					default:
						t.Errorf("both believe: %v left", h.Remaining())
					}
					if h.Valid() || !next.Valid() {
						t.Errorf("the former holder: %v, the next: %v", h.Err(), next.Err())
					}
					time.Sleep(5 * time.Minute)
					if !other.Valid() {
						t.Errorf("another lease of the session is lost: %v", other.Err())
					}
				})
			})
		}
	}
}

// A change of the holder is heard of by the next renewal.
func TestARenewalTellsOfAnotherHolder(t *testing.T) {
	for _, to := range []v1.ChangeRequest{{Holder: "eve"}, {Holder: "eve", NewID: "new"}} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			_, through := onTeller(t, s, false)
			h := acquire(t, s.Dial(t, through), "r")
			to.ID = h.ID()
			if _, err := s.Inside().Change(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			time.Sleep(12 * time.Second)
			if !errors.Is(h.Err(), client.ErrChanged) {
				t.Errorf("changed to %+v: %v", to, h.Err())
			}
		})
	}
}

// Of many holds one is broken: the server is asked about that one. When more are broken
// than it can name, it is asked about all, and none of the others is lost.
func TestWhatIsNotNamedIsConfirmed(t *testing.T) {
	for _, broken := range []int{1, 256, 300} {
		t.Run(fmt.Sprint(broken), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				way, through := onTeller(t, s, false)
				c := s.Dial(t, through)
				holds := make([]*client.Hold, 400)
				for i := range holds {
					holds[i] = acquire(t, c, fmt.Sprint("r", i))
				}
				looked := way.count("look")
				now := v1.Duration(0)
				for _, h := range holds[:broken] {
					breaks(t, s, h.ID(), &now)
				}
				time.Sleep(15 * time.Minute)
				for i, h := range holds {
					if i < broken && !errors.Is(h.Err(), client.ErrBroken) || i >= broken && !h.Valid() {
						t.Fatalf("%d: %v", i, h.Err())
					}
				}
				most := broken
				if broken > 256 {
					most = len(holds)
				}
				if asked := way.count("look") - looked; asked > most {
					t.Errorf("%d were broken, and it was asked about %d", broken, asked)
				}
			})
		})
	}
}

// A hold that was touched and cannot be confirmed keeps the deadline it had, however well
// its session is renewed.
func TestAnUnconfirmedHoldKeepsItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		way, through := onTeller(t, s, false)
		c := s.Dial(t, through)
		h, other := acquire(t, c, "r"), acquire(t, c, "other")
		time.Sleep(time.Minute)
		left := h.Remaining()
		way.set(nil, func(verb string) error {
			if verb == "look" {
				return errCut
			}
			return nil
		})
		began := time.Now()
		period := v1.Duration(time.Hour)
		breaks(t, s, h.ID(), &period)
		<-h.Lost()
		if took := time.Since(began); took > left || !errors.Is(h.Err(), client.ErrExpired) {
			t.Errorf("it had %v, and lasted for %v: %v", left, took, h.Err())
		}
		way.set(nil, nil)
		time.Sleep(time.Minute)
		if h.Valid() || !other.Valid() {
			t.Errorf("the hold: %v, the other: %v", h.Err(), other.Err())
		}
	})
}

// The answer to a wait comes late: the lease was granted and broken meanwhile, and the
// session renewed. The count in the answer is that of the grant.
func TestAGrantIsHeardOfAfterItsBreak(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		way, through := onTeller(t, s, false)
		c := s.Dial(t, through)
		acquire(t, c, "other")
		before := acquire(t, s.Dial(t), "r")
		delay := once("acquire", func() { time.Sleep(25 * time.Second) })
		way.set(nil, func(verb string) error { delay(verb); return nil })
		time.AfterFunc(time.Second, func() { _ = before.Release(t.Context()) })
		time.AfterFunc(2*time.Second, func() {
			r, err := s.Inside().Resource(t.Context(), "r", 0)
			if err != nil {
				t.Error(err)
				return
			}
			now := v1.Duration(0)
			breaks(t, s, r.Holders[0].ID, &now)
		})
		if h, err := c.Acquire(t.Context(), "r"); !errors.Is(err, client.ErrBroken) {
			t.Errorf("acquired: %+v, %v", h, err)
		}
	})
}

// A break is announced that is further away than the holder's deadline, and the holder changes
// its lease itself before the next renewal: the answer to that counts the break already.
func TestAChangeTellsOfABreak(t *testing.T) {
	for _, to := range []client.Change{{ID: "another"}, {Holder: "eve"}} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			road, way := onDeaf(t, s)
			h := acquire(t, s.Dial(t, way), "r", client.TTL(15*time.Second))
			period := v1.Duration(20 * time.Second)
			breaks(t, s, h.ID(), &period)
			if err := h.Change(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(19*time.Second, func() { road.set(nil, func(string) error { return errCut }) })
			other := acquire(t, s.Dial(t), "r", client.TTL(time.Minute)) // waits
			if h.Valid() || !other.Valid() {
				t.Errorf("changed to %+v: the former holder has %v left, the next: %v", to, h.Remaining(), other.Err())
			}
		})
	}
}

// A server that is too busy to answer for a lease is asked again before the hold ends.
func TestABusyServerIsAskedAgain(t *testing.T) {
	for _, looks := range []int32{1, 5} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			r, way := onDeaf(t, s)
			var looked atomic.Int32
			r.refuse = func(m message) string {
				if m.verb != "look" || looked.Add(1) > looks {
					return ""
				}
				return limited("try again in a moment")
			}
			h := acquire(t, s.Dial(t, way), "r", client.TTL(15*time.Second))
			hour := v1.Duration(time.Hour)
			breaks(t, s, h.ID(), &hour)
			time.Sleep(59 * time.Minute)
			if err := h.Err(); err != nil {
				t.Errorf("it breaks in an hour, and %d looks were refused: %v", looks, err)
			}
			<-h.Lost()
		})
	}
}

// noneIsLost lets two minutes pass, in which all holds stay.
func noneIsLost(t *testing.T, holds []*client.Hold) {
	t.Helper()
	time.Sleep(2 * time.Minute)
	lost, why := 0, error(nil)
	for _, h := range holds {
		if err := h.Err(); err != nil {
			lost, why = lost+1, err
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d holds are lost: %v", lost, len(holds), why)
	}
}

// A far server that counts nothing is not asked for more than can be answered in time.
func TestManyHoldsAtAServerThatDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		way, through := onTeller(t, s, true)
		c := s.Dial(t, through)
		holds := acquireMany(t, c, 1000, func(i int) string { return fmt.Sprint("r", i) }, client.In(openSession(t, c)))
		way.set(func(string) { time.Sleep(50 * time.Millisecond) }, nil)
		before := way.count("look")
		noneIsLost(t, holds)
		// Each would be rechecked every 5 s of two minutes, that is 24,000 times in all.
		if asked := way.count("look") - before; asked > 10000 {
			t.Errorf("it was asked %d times", asked)
		}
	})
}

// More ends at once than a far server can name: it is asked about all others in time.
func TestManyHoldsAfterManyInterventions(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		way, through := onTeller(t, s, false)
		c := s.Dial(t, through)
		session := openSession(t, c)
		holds := acquireMany(t, c, 2000, func(i int) string { return fmt.Sprint("r", i) }, client.In(session))
		limit := client.HoldLimit(20 * time.Second)
		acquireMany(t, c, 300, func(i int) string { return fmt.Sprint("limited", i) }, client.In(session), limit)
		way.set(func(string) { time.Sleep(50 * time.Millisecond) }, nil)
		noneIsLost(t, holds)
	})
}

// A server begins to count while the session goes on: what it holds is asked about once, and
// a break is heard of by a renewal from then on.
func TestAServerBeginsToCount(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		way, through := onTeller(t, s, true)
		c := s.Dial(t, through)
		holds := acquireMany(t, c, 400, func(i int) string { return fmt.Sprint("r", i) }, client.In(openSession(t, c)))
		way.change(func(r *road) { r.without = nil })
		time.Sleep(time.Minute)
		for _, h := range holds {
			breaks(t, s, h.ID(), nil)
		}
		time.Sleep(16 * time.Second)
		for i, h := range holds {
			if h.Valid() {
				t.Fatalf("hold %d was broken, and has %v left", i, h.Remaining())
			}
		}
	})
}
