package client_test

import (
	"errors"
	"fmt"
	"net/http"
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

// deaf is a way on which no watch gets through.
type deaf struct{ *road }

func (d deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	if verbOf(r) == "watch" {
		return nil, errors.New("no streams here")
	}
	return d.road.RoundTrip(r)
}

// onDeaf puts a way to the server between that carries no watch.
func onDeaf(s *leasetest.Server) (*road, func(*client.Config)) {
	r, _ := on(s)
	return r, func(c *client.Config) { c.HTTP = &http.Client{Transport: deaf{r}} }
}

// A holder releases what an operator has renamed in the meantime, however often, without
// having heard of it.
func TestAReleaseFollowsARename(t *testing.T) {
	for names := range 3 {
		t.Run(fmt.Sprint(names, " names"), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *leasetest.Server) {
				_, way := onDeaf(s)
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
