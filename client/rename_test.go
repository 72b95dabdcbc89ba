package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// One session holds several slots of a resource, and an operator gives one of them another
// id, and then another holder too. It is that one which follows, and that one which is lost.
func TestOneOfManySlotsIsRenamed(t *testing.T) {
	for which := range 5 {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			c, op := s.Dial(t), s.Inside()
			holds, ids := make([]*client.Hold, 5), make([]string, 5)
			for i := range holds {
				holds[i] = acquire(t, c, "r", client.Slots(1, 5))
				ids[i] = holds[i].ID()
			}
			synctest.Wait()
			change := func(r v1.ChangeRequest) {
				t.Helper()
				if _, err := op.Change(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			change(v1.ChangeRequest{ID: ids[which], NewID: "another"})
			ids[which] = "another"
			for i, h := range holds {
				if h.ID() != ids[i] || !h.Valid() {
					t.Errorf("slot %d of which %d was renamed: id %s, want %s, %v", i, which, h.ID(), ids[i], h.Err())
				}
			}
			change(v1.ChangeRequest{ID: "another", NewID: "third", Holder: "eve"})
			for i, h := range holds {
				if i == which && !errors.Is(h.Err(), client.ErrChanged) || i != which && !h.Valid() {
					t.Errorf("slot %d of which %d was given to eve: %v", i, which, h.Err())
				}
			}
		})
	}
}

// A holder releases what an operator has renamed in the meantime, however often, without
// having heard of it.
func TestAReleaseFollowsARename(t *testing.T) {
	for names := range 3 {
		t.Run(fmt.Sprint(names, " names"), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				_, way := onDeaf(t, s)
				c, op := s.Dial(t, way), s.Inside()
				h := acquire(t, c, "r")
				id := h.ID()
				for i := range names {
					next := fmt.Sprint("name ", i)
					if _, err := op.Change(t.Context(), v1.ChangeRequest{ID: id, NewID: next}); err != nil {
						t.Fatal(err)
					}
					id = next
				}
				if err := h.Release(t.Context()); err != nil {
					t.Errorf("released: %v", err)
				}
				if r, err := op.Resource(t.Context(), "r", 0); err != nil || len(r.Holders) != 0 {
					t.Errorf("it is still held: %+v, %v", r.Holders, err)
				}
			})
		})
	}
}

// acquireMany acquires n resources in one session, many at a time.
func acquireMany(
	t *testing.T, c *client.Client, n int, name func(i int) string, options ...client.Option,
) []*client.Hold {
	t.Helper()
	holds := make([]*client.Hold, n)
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := w; i < n; i += 32 {
				holds[i] = acquire(t, c, name(i), options...)
			}
		})
	}
	wg.Wait()
	return holds
}

// openSession opens a session for holds of 15 s.
func openSession(t *testing.T, c *client.Client) *client.Session {
	t.Helper()
	session, err := c.OpenSession(t.Context(), client.TTL(15*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// One slot of very many is given to another holder under another id. Any could be the one,
// and the server is asked about all of them, some at a time.
func TestRechecksRunSomeAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		const n, most = 2000, 64
		r, through := on(t, s)
		c := s.Dial(t, through)
		holds := acquireMany(t, c, n, func(int) string { return "pool" }, client.In(openSession(t, c)), client.Slots(1, n))
		var asked atomic.Int64
		r.set(func(verb string) {
			if verb != "look" {
				return
			}
			if now := asked.Add(1); now > most {
				t.Errorf("%d looks are under way at once", now)
			}
			time.Sleep(50 * time.Millisecond)
			asked.Add(-1)
		}, nil)
		to := v1.ChangeRequest{ID: holds[0].ID(), Holder: "eve", NewID: "another"}
		if _, err := s.Inside().Change(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		for i, h := range holds {
			if i == 0 && !errors.Is(h.Err(), client.ErrChanged) || i > 0 && !h.Valid() {
				t.Errorf("slot %d, of which the first is eve's: %v", i, h.Err())
			}
		}
	})
}

// A watch that missed something has the server asked about every hold, at once.
func TestAWatchThatMissedSomethingLooksAtAll(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		r, way := on(t, s)
		end := make(chan struct{})
		// The first watch says nothing until it ends with word that history is gone.
		r.watch = carrier(func(request *http.Request) (*http.Response, error) {
			r.change(func(r *road) { r.watch = nil })
			<-end
			body := "event: gone\nid: 1\ndata: {\"since\":\"9\",\"oldest\":\"1\",\"revision\":1}\n\n"
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: request,
				Body: io.NopCloser(strings.NewReader(body)),
			}, nil
		})
		h := acquire(t, s.Dial(t, way), "r")
		now := v1.Duration(0)
		breaks(t, s, h.ID(), &now)
		close(end)
		time.Sleep(2 * time.Second)
		if !errors.Is(h.Err(), client.ErrBroken) || r.count("renew") > 0 {
			t.Errorf("it was broken, the watch missed that, and the hold says: %v; %d renewals", h.Err(), r.count("renew"))
		}
	})
}

// A change whose first reply is lost may have happened, whatever the second one says. A change names no session, so that
// it counts as an intervention: the hold finds out what it is called before it relies on another renewal.
func TestAChangeThatIsRefusedAfterALostReply(t *testing.T) {
	for _, to := range []client.Change{{ID: "another"}, {Holder: "bob"}} {
		bubble(t, func(t *testing.T, s *leasetest.Server) {
			road, way := onDeaf(t, s)
			h := acquire(t, s.Dial(t, way), "r", client.TTL(10*time.Second))
			lose := losing("change", 1)
			road.set(nil, func(verb string) error {
				err := lose(verb)
				if err != nil {
					road.change(refusing("change", "denied"))
				}
				return err
			})
			if err := h.Change(t.Context(), to); err == nil {
				t.Fatal("changed")
			}
			for _, lease := range holders(t, s, "r") {
				now := v1.Duration(0)
				if _, err := operator(t, s).Break(t.Context(), v1.BreakRequest{ID: lease.ID, Period: &now}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			if h.Valid() {
				t.Errorf("%+v: it was broken a minute ago, and is believed in", to)
			}
		})
	}
}
