package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/leasetest"
)

// A reply that is lost costs nobody a lease, and nothing happens twice.
func TestALostReplyIsNotALostLease(t *testing.T) {
	for _, verb := range []string{"open", "acquire", "renew", "release", "change"} {
		for _, replies := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s %d times", verb, replies), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *leasetest.Server) {
					road, way := on(t, s)
					road.set(nil, losing(verb, replies))
					c, op := s.Dial(t, way), operator(t, s)
					h := acquire(t, c, "r")
					token := h.Token()
					time.Sleep(time.Minute)
					if err := h.Change(t.Context(), client.Change{ID: "another"}); err != nil {
						t.Fatalf("changed: %v", err)
					}
					time.Sleep(time.Minute)
					if !h.Valid() || h.Token() != token || h.ID() != "another" {
						t.Fatalf("id %s, token %d, %v", h.ID(), h.Token(), h.Err())
					}
					if err := h.Release(t.Context()); err != nil {
						t.Errorf("released: %v", err)
					}
					if road.count(verb) <= replies {
						t.Errorf("%s was sent %d times", verb, road.count(verb))
					}
					next := acquire(t, c, "r")
					if next.Token() != token+1 {
						t.Errorf("the next token is %d after %d", next.Token(), token)
					}
					if r, err := op.Resource(t.Context(), "r", 0); err != nil || len(r.Holders) != 1 || r.Waiting != 0 {
						t.Errorf("%+v, %v", r, err)
					}
				})
			})
		}
	}
}

// The reply to a wait is lost at the moment of the grant: asked again, the same lease
// is there, and its time is the session's. Over RESP, so it is if the word is lost that it waits.
func TestALostReplyToAWait(t *testing.T) {
	for _, verb := range []string{"acquire", "queued"} {
		t.Run(verb, func(t *testing.T) { losesAWait(t, verb) })
	}
}

func losesAWait(t *testing.T, verb string) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		road.set(nil, losing(verb, 1))
		a, b := s.Dial(t), s.Dial(t, way)
		h := acquire(t, a, "r")
		time.AfterFunc(47*time.Second, func() { _ = h.Release(t.Context()) })
		next := acquire(t, b, "r")
		if !next.Valid() || next.Token() != h.Token()+2 && road.count("acquire") < 2 {
			t.Errorf("token %d after %d messages", next.Token(), road.count("acquire"))
		}
	})
}

// A retried acquire is answered by what an older attempt got. Its time is counted from
// what the server says at the later attempt, not from a grant of long ago, and never
// from when the answer came.
func TestARetryIsAnsweredByAnOlderAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		lose := losing("open", 2)
		road.set(nil, func(verb string) error {
			if err := lose(verb); err != nil {
				time.Sleep(4 * time.Second) // the answer is lost slowly
				return err
			}
			return nil
		})
		c, op := s.Dial(t, way), operator(t, s)
		const ttl = 30 * time.Second
		h := acquire(t, c, "r", client.TTL(ttl))
		r, err := op.Resource(t.Context(), "r", 0)
		if err != nil {
			t.Fatal(err)
		}
		server := time.Duration(*r.Holders[0].RemainingMS) * time.Millisecond
		if server > ttl-7*time.Second || h.Remaining() > server {
			t.Errorf("the server has %v left, the holder believes in %v", server, h.Remaining())
		}
	})
}

// A process sleeps for longer than its TTL, at each step of the life of a hold, while
// another waits. When it wakes up the hold is not valid, before anything else has run,
// and what it writes is refused.
func TestAPausedHolder(t *testing.T) {
	const ttl = 10 * time.Second
	for _, step := range []struct{ verb, when string }{
		{"open", "before"}, {"open", "after"}, {"acquire", "before"}, {"acquire", "after"},
		{"look", "before"}, {"look", "after"}, {"renew", "before"}, {"renew", "after"}, {"change", "before"}, {"change", "after"}, {"release", "before"}, {"release", "after"},
		{"", "between"},
	} {
		t.Run(step.when+" "+step.verb, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				road, way := on(t, s)
				c, rival := s.Dial(t, way), s.Dial(t)
				guard := fence.NewMemory()
				var (
					mu   sync.Mutex
					held *client.Hold
				)
				write := func(h *client.Hold, token leasehold.Token) error {
					return guard.Do(t.Context(), "r", fence.Pass{Token: token}, func(context.Context) error { return nil })
				}
				sleeps := func() {
					mu.Lock()
					h := held
					mu.Unlock()
					var before leasehold.Token
					if h != nil {
						before = h.Token()
					}
					s.Suspend(2 * ttl)
					if h == nil {
						return
					}
					if h.Valid() || h.Token() != 0 || h.Context().Err() == nil {
						t.Errorf("it believes in its lease after the pause")
					}
					next, err := rival.Acquire(t.Context(), "r", client.TTL(ttl))
					if err != nil {
						t.Error(err)
						return
					}
					if err := write(next, next.Token()); err != nil {
						t.Errorf("the new holder is refused: %v", err)
					}
					var late *fence.LateError
					if err := write(h, before); before != 0 && (!errors.As(err, &late) || late.Token != before || late.Floor != next.Token()) {
						t.Errorf("the late holder writes: %v", err)
					}
					_ = next.Release(t.Context())
				}
				if step.when == "before" {
					road.set(once(step.verb, sleeps), nil)
				} else {
					after := once(step.verb, sleeps)
					road.set(nil, func(verb string) error { after(verb); return nil })
				}
				h, err := c.Acquire(t.Context(), "r", client.TTL(ttl))
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				held = h
				mu.Unlock()
				time.Sleep(ttl)
				_ = h.Change(t.Context(), client.Change{ID: "another"})
				if step.verb == "" {
					sleeps()
				}
				_ = h.Release(t.Context())
				again := acquire(t, c, "r", client.TTL(ttl))
				if !again.Valid() {
					t.Errorf("lost by %v", again.Err())
				}
			})
		})
	}
}

// The machine is suspended: Go's timers stop, the clock does not. The hold is lost at
// once, and its context ends as soon as the keeper looks.
func TestASuspendedMachine(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		h := acquire(t, s.Dial(t), "r", client.TTL(time.Minute))
		done := h.Context().Done()
		child, cancel := context.WithCancel(h.Context())
		defer cancel()
		s.Suspend(time.Minute)
		if h.Valid() || h.Context().Err() == nil || !errors.Is(context.Cause(h.Context()), client.ErrExpired) {
			t.Errorf("it is believed in: %v", h.Err())
		}
		<-done
		if !errors.Is(context.Cause(child), client.ErrExpired) {
			t.Errorf("a derived context ended with %v", context.Cause(child))
		}
	})
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		h := acquire(t, s.Dial(t), "r", client.TTL(time.Minute))
		s.Disconnect()
		began := time.Now()
		s.Suspend(50 * time.Second)
		<-h.Lost() // nobody looked: the keeper did
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("it was noticed after %v", took)
		}
		s.Connect()
	})
}

func TestAServerIsGoneForHalfATTL(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		random := rand.New(rand.NewPCG(1, 1))
		const ttl = 20 * time.Second
		h := acquire(t, s.Dial(t), "r", client.TTL(ttl))
		for range 200 {
			time.Sleep(time.Duration(random.Int64N(int64(ttl))))
			s.Disconnect()
			time.Sleep(ttl / 2)
			s.Connect()
			time.Sleep(3 * time.Second)
			if !h.Valid() {
				t.Fatalf("lost by %v", h.Err())
			}
		}
	})
}

// The server is gone for two TTLs, in a thousand ways. The hold is lost before the
// server could grant again, also if its clock is slow by up to 0.9 %, and its context has
// ended by then.
func TestAServerIsGoneForTwoTTLs(t *testing.T) {
	schedules := 1000
	if testing.Short() {
		schedules = 20
	}
	lost := 0
	for seed := range schedules {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			if isLostInTime(t, s, rand.New(rand.NewPCG(uint64(seed), 7))) {
				lost++
			}
		})
		if t.Failed() {
			t.Fatalf("schedule %d", seed)
		}
	}
	if lost < schedules/2 {
		t.Errorf("only %d of %d schedules lost the lease: they are too tame", lost, schedules)
	}
}

// isLostInTime runs one schedule: replies get lost, messages take their time, the
// server goes away, and a rival waits at the server's very door.
func isLostInTime(t *testing.T, s *leasetest.Server, random *rand.Rand) bool {
	var mu sync.Mutex
	chance := func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Int64N(n)
	}
	ttl := time.Duration(1+chance(30)) * time.Second
	road, way := on(t, s)
	slow := &slowClock{s.Config().Clock, 1000 - chance(10)}
	c := s.Dial(t, way, func(c *client.Config) { c.Clock = slow })
	slowest := ttl / 8
	if !overHTTP(s) {
		slowest = ttl / 20 // there and back, a connection on which nothing comes for an eighth is given up
	}
	delay := func(string) { time.Sleep(time.Duration(chance(int64(slowest)))) }
	road.set(delay, func(verb string) error {
		delay(verb)
		if verb != "watch" && chance(4) == 0 {
			return errCut
		}
		return nil
	})
	h, err := c.Acquire(t.Context(), "r", client.TTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	// The rival's road is not disturbed: it asks the server from inside.
	granted := make(chan struct{})
	inside := s.Inside()
	go func() {
		defer close(granted)
		id := "rival"
		for {
			_, err := inside.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "rival", ID: id, Wait: v1.Duration(time.Hour), TTL: v1.TTL{Duration: v1.Duration(time.Hour)}})
			if err == nil {
				break
			}
			if !errors.Is(err, leasehold.ErrUndecided) {
				t.Errorf("the rival: %v", err)
				return
			}
		}
		// Valid reads the clock; the context must have ended by itself.
		select {
		case <-h.Lost():
		default:
			t.Errorf("the rival has it, and the holder's context goes on: %v", h.Remaining())
		}
	}()
	synctest.Wait()
	time.Sleep(time.Duration(chance(int64(2 * ttl))))
	valid := h.Valid()
	s.Disconnect()
	time.Sleep(2 * ttl)
	if h.Valid() {
		t.Errorf("it is believed in after two TTLs")
	}
	s.Connect()
	<-granted
	return valid
}

// slowClock is a holder's clock that runs too slowly, by a number of thousandths.
type slowClock struct {
	client.Clock
	rate int64
}

func (c *slowClock) Now() time.Duration { return c.Clock.Now() / 1000 * time.Duration(c.rate) }

// Replies are lost for longer than the TTL, so that the session is over before anything is held: it
// is asked for again, and the caller does not notice.
func TestAnAcquireOutlivesItsSession(t *testing.T) {
	for _, verbs := range [][]string{{"open"}, {"acquire", "renew"}} {
		t.Run(strings.Join(verbs, " and "), func(t *testing.T) {
			for seed := range 50 {
				bubble(t, func(t *testing.T, s *leasetest.Server) {
					road, way := on(t, s)
					c := s.Dial(t, way)
					until := time.Now().Add(5*time.Second + time.Duration(seed)*7*time.Millisecond)
					road.set(nil, func(verb string) error {
						if slices.Contains(verbs, verb) && time.Now().Before(until) {
							return errCut
						}
						return nil
					})
					h := acquire(t, c, "r", client.TTL(time.Second))
					if !h.Valid() || time.Now().Before(until) {
						t.Errorf("valid is %v", h.Valid())
					}
				})
			}
		})
	}
}

// A grant whose reply was lost is followed by a refusal: the lease must not stay, where
// the session would keep it alive for nobody.
func TestARefusalAfterALostReply(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		road.set(nil, losing("acquire", 1))
		var acquires atomic.Int32
		road.refuse = func(m message) string {
			if m.verb != "acquire" || acquires.Add(1) == 1 {
				return ""
			}
			return limited("too many wait here")
		}
		c := s.Dial(t, way)
		acquire(t, s.Dial(t), "other") // so that nothing depends on tokens
		if _, err := c.Acquire(t.Context(), "r"); !errors.Is(err, leasehold.ErrLimited) {
			t.Fatalf("the error is %v", err)
		}
		time.Sleep(time.Second)
		if r, err := s.Inside().Resource(t.Context(), "r", 0); err != nil || len(r.Holders) != 0 {
			t.Errorf("it is held by %+v, %v", r.Holders, err)
		}
	})
}

// Two servers: when one does not answer, the other is asked.
func TestTheNextServerIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		road.dead = "one"
		c := s.Dial(t, way, func(c *client.Config) { c.Servers = []string{"http://one", "http://two"} })
		h := acquire(t, c, "r", client.TTL(5*time.Second))
		time.Sleep(time.Minute)
		if !h.Valid() {
			t.Errorf("lost by %v", h.Err())
		}
	})
}

// An answer that comes after the deadline brings nothing back, even if nobody had
// looked in the meantime and the server would still agree.
func TestALateAnswerRevivesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		const ttl = 30 * time.Second
		road, way := on(t, s)
		h := acquire(t, s.Dial(t, way), "r", client.TTL(ttl))
		slept := make(chan struct{})
		after := once("renew", func() {
			s.Suspend(22 * time.Second)
			close(slept)
		})
		road.set(nil, func(verb string) error { after(verb); return nil })
		<-slept
		synctest.Wait()
		r, err := s.Inside().Resource(t.Context(), "r", 0)
		if err != nil || len(r.Holders) != 1 {
			t.Fatalf("the server has ended it: %+v, %v", r, err)
		}
		if h.Valid() || !errors.Is(h.Err(), client.ErrExpired) {
			t.Errorf("it came back: %v", h.Err())
		}
	})
}
