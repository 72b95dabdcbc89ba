package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

func TestElect(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		var observed []string
		watcher := s.Dial(t)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for l, err := range watcher.Observe(ctx, "lead") {
				if err != nil {
					break
				}
				observed = append(observed, fmt.Sprintf("%s %s", l.Holder, l.Value))
			}
		})
		synctest.Wait()
		first, err := watcher.Leader(t.Context(), "lead")
		if err != nil || first.Token != 0 {
			t.Errorf("before the election %+v leads, %v", first, err)
		}
		terms := make(chan string, 9)
		campaign := func(name string) {
			c := s.Dial(t)
			wg.Go(func() {
				_ = c.Elect(ctx, "lead", []byte("http://"+name), func(ctx context.Context, h *client.Hold) error {
					terms <- name
					<-ctx.Done()
					return ctx.Err()
				}, client.Holder(name))
			})
		}
		campaign("ann")
		if name := <-terms; name != "ann" {
			t.Fatal(name)
		}
		time.Sleep(time.Second)
		campaign("bob")
		synctest.Wait()
		l, err := watcher.Leader(t.Context(), "lead")
		if err != nil || l.Holder != "ann" || string(l.Value) != "http://ann" || l.Token == 0 {
			t.Errorf("%+v leads, %v", l, err)
		}
		// An operator ends ann's lead: bob follows, and ann campaigns again.
		r, _ := s.Inside().Resource(t.Context(), "lead", 0)
		now := v1.Duration(0)
		if _, err := s.Inside().Break(t.Context(), v1.BreakRequest{ID: r.Holders[0].ID, Period: &now}); err != nil {
			t.Fatal(err)
		}
		if name := <-terms; name != "bob" {
			t.Fatal(name)
		}
		time.Sleep(time.Second)
		if r, err = s.Inside().Resource(t.Context(), "lead", 0); err != nil || r.Waiting != 1 || r.Queue[0].Holder != "ann" {
			t.Errorf("%+v, %v", r, err)
		}
		stop()
		wg.Wait()
		time.Sleep(time.Second) // ann's wait is taken back
		l, err = watcher.Leader(t.Context(), "lead")
		if err != nil || l.Token != 0 {
			t.Errorf("%+v leads, %v", l, err)
		}
		if len(observed) < 3 || observed[0] != " " || observed[len(observed)-1] == observed[1] {
			t.Errorf("observed: %q", observed)
		}
	})
}

func TestElectResigns(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		enough := errors.New("enough")
		err := c.Elect(t.Context(), "lead", []byte("me"), func(context.Context, *client.Hold) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("the error is %v", err)
		}
		if _, err := c.Get(t.Context(), "lead"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("the value is still there: %v", err)
		}
		if _, err := c.TryAcquire(t.Context(), "lead"); err != nil {
			t.Errorf("it still leads: %v", err)
		}
	})
}

func TestMutex(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		n, most := 0, 0
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				m := c.Mutex("m")
				for range 5 {
					m.Lock()
					n++
					most = max(most, n)
					time.Sleep(time.Second)
					n--
					m.Unlock()
				}
			})
		}
		wg.Wait()
		if most != 1 {
			t.Errorf("%d at once", most)
		}
		m := c.Mutex("m")
		if !m.TryLock() || c.Mutex("m").TryLock() {
			t.Error("tried wrongly")
		}
		s.Disconnect()
		<-m.Context().Done()
		s.Connect()
		defer func() {
			if recover() == nil {
				t.Error("unlocked what was lost")
			}
			if m.Context().Err() == nil {
				t.Error("a mutex that nobody locked has a context")
			}
		}()
		m.Unlock()
	})
}

// What is written under a lost lease is turned away by the server itself.
func TestPutIsFenced(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c := s.Dial(t)
		h := acquire(t, c, "r")
		if err := h.Put(t.Context(), "state", []byte("1")); err != nil {
			t.Fatal(err)
		}
		if v, err := c.Get(t.Context(), "state"); err != nil || string(v) != "1" {
			t.Errorf("%s, %v", v, err)
		}
		s.Suspend(time.Minute)
		if err := h.Put(t.Context(), "state", []byte("2")); !errors.Is(err, client.ErrLost) {
			t.Errorf("written late: %v", err)
		}
		session, err := c.OpenSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Put(t.Context(), "mail/1", []byte("here")); err != nil {
			t.Fatal(err)
		}
		if err := session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context(), "mail/1"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("the record outlived its session: %v", err)
		}
	})
}

func TestAskReachesTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		a, b := s.Dial(t), s.Dial(t)
		h := acquire(t, a, "r")
		if err := b.Ask(t.Context(), "r", "please"); err != nil {
			t.Fatal(err)
		}
		if m := <-h.Messages(); m.Text != "please" || m.By != "test" || m.Break {
			t.Errorf("%+v", m)
		}
		if err := b.Ask(t.Context(), "nothing", "please"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("nobody was asked: %v", err)
		}
	})
}

// No server can be reached when a new leader wants to publish its value: it leads all the
// same, or campaigns again if that takes too long. Elect does not end for it.
func TestAnElectionSurvivesAnOutageAtItsStart(t *testing.T) {
	for _, outage := range []time.Duration{20 * time.Second, 2 * time.Minute} {
		t.Run(fmt.Sprint(outage), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				road, way := on(t, s)
				c := s.Dial(t, way)
				road.set(once("records/lead", func() {
					s.Disconnect()
					time.AfterFunc(outage, s.Connect)
				}), nil)
				led := 0
				err := c.Elect(t.Context(), "lead", []byte("v"), func(ctx context.Context, h *client.Hold) error {
					led++
					if l, err := c.Leader(ctx, "lead"); err != nil || string(l.Value) != "v" || l.Token != h.Token() {
						t.Errorf("%+v leads, %v", l, err)
					}
					return nil
				}, client.TTL(time.Minute))
				if err != nil || led != 1 {
					t.Errorf("it led %d times, and ended with %v", led, err)
				}
			})
		})
	}
}

// Who leads is read without those who would like to.
func TestTheLeaderIsReadWithoutItsQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		var read atomic.Value
		r, way := on(t, s)
		r.refuse = func(m message) string {
			if strings.HasPrefix(m.verb, "resources/") {
				read.Store(m.text)
			}
			return ""
		}
		c := s.Dial(t, way)
		acquire(t, c, "leader")
		if l, err := c.Leader(t.Context(), "leader"); err != nil || l.Token == 0 {
			t.Fatalf("%+v leads: %v", l, err)
		}
		if text := read.Load(); text != "namespace=default&queue=1" && text != "LH.GET leader QUEUE 1" {
			t.Errorf("asked was %v", text)
		}
	})
}
