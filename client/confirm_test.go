package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// A teller is a way to a server whose answers say, as the test wants it, what others did to
// a session, or say nothing of it. No watch gets through.
type teller struct {
	deaf
	silent bool

	mu    sync.Mutex // guards what follows
	names map[string][]string
	late  func(verb string) // before an answer arrives
}

func onTeller(s *leasetest.Server, silent bool) (*teller, func(*client.Config)) {
	r, _ := on(s)
	t := &teller{deaf: deaf{r}, silent: silent, names: map[string][]string{}}
	return t, func(c *client.Config) { c.HTTP = &http.Client{Transport: t} }
}

func (t *teller) note(session, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names[session] = append(t.names[session], id)
}

func (t *teller) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.deaf.RoundTrip(r)
	verb := verbOf(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	switch verb {
	case "open", "renew", "acquire", "look", "change":
	default:
		return response, nil
	}
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	session, _ := answer["session"].(string)
	if verb == "open" || verb == "renew" {
		session, _ = answer["id"].(string)
	}
	delete(answer, "interventions")
	delete(answer, "intervened")
	if !t.silent {
		t.mu.Lock()
		names := t.names[session]
		answer["interventions"] = len(names)
		if verb == "open" || verb == "renew" {
			answer["intervened"] = names[max(0, len(names)-256):]
		}
		t.mu.Unlock()
	}
	body, err := json.Marshal(answer)
	t.mu.Lock()
	late := t.late
	t.mu.Unlock()
	if late != nil {
		late(verb)
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, err
}

// breaks is an operator who breaks a lease, by default after what remains.
func (t *teller) breaks(test *testing.T, s *leasetest.Server, h *client.Hold, period *v1.Duration) {
	test.Helper()
	lease, err := s.Inside().Break(test.Context(), v1.BreakRequest{ID: h.ID(), Period: period, By: "op"})
	if err != nil {
		test.Fatal(err)
	}
	t.note(lease.Session, h.ID())
}

// No watch tells of a break. The renewals do: the holder does not believe any more when
// somebody else gets the resource, whether or not the server counts.
func TestARenewalTellsOfABreak(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for after := range 10 {
			t.Run(fmt.Sprint("counts ", !silent, ", after ", after), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *leasetest.Server) {
					way, through := onTeller(s, silent)
					a, b := s.Dial(t, through), s.Dial(t)
					h, other := acquire(t, a, "r", client.TTL(15*time.Second)), acquire(t, a, "other", client.TTL(15*time.Second))
					lost := h.Lost()
					time.Sleep(time.Minute + time.Duration(after)*time.Second)
					way.breaks(t, s, h, nil)
					next := acquire(t, b, "r")
					select {
					case <-lost:
					default:
						t.Errorf("both believe: %v left", h.Remaining())
					}
					if h.Valid() || !next.Valid() {
						t.Errorf("the former holder: %v, the next: %v", h.Err(), next.Err())
					}
					time.Sleep(time.Hour)
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
			way, through := onTeller(s, false)
			h := acquire(t, s.Dial(t, through), "r")
			to.ID = h.ID()
			lease, err := s.Inside().Change(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			way.note(lease.Session, to.ID)
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
				way, through := onTeller(s, false)
				c := s.Dial(t, through)
				holds := make([]*client.Hold, 400)
				for i := range holds {
					holds[i] = acquire(t, c, fmt.Sprint("r", i))
				}
				looked := way.count("look")
				now := v1.Duration(0)
				for _, h := range holds[:broken] {
					way.breaks(t, s, h, &now)
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

// A hold that was touched and can not be confirmed keeps the deadline it had, however well
// its session is renewed.
func TestAnUnconfirmedHoldKeepsItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		way, through := onTeller(s, false)
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
		way.breaks(t, s, h, &period)
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
		way, through := onTeller(s, false)
		c := s.Dial(t, through)
		acquire(t, c, "other")
		before := acquire(t, s.Dial(t), "r")
		way.mu.Lock()
		way.late = once("acquire", func() { time.Sleep(25 * time.Second) })
		way.mu.Unlock()
		time.AfterFunc(time.Second, func() { _ = before.Release(t.Context()) })
		time.AfterFunc(2*time.Second, func() {
			r, err := s.Inside().Resource(t.Context(), "r", 0)
			if err != nil {
				t.Error(err)
				return
			}
			now, lease := v1.Duration(0), r.Holders[0]
			if _, err := s.Inside().Break(t.Context(), v1.BreakRequest{ID: lease.ID, Period: &now, By: "op"}); err != nil {
				t.Error(err)
			}
			way.note(lease.Session, lease.ID)
		})
		if h, err := c.Acquire(t.Context(), "r"); !errors.Is(err, client.ErrBroken) {
			t.Errorf("acquired: %+v, %v", h, err)
		}
	})
}
