//go:build linux

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// A watchman checks that nobody believes in a lease while somebody else does, and that tokens grow.
type watchman struct {
	mu     sync.Mutex
	until  time.Time
	token  leasehold.Token
	grants int
}

// enter is called by a holder before it relies on its lease, and leave after it.
func (w *watchman) enter(t *testing.T, token leasehold.Token, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Before(w.until) || token <= w.token {
		t.Errorf("token %d was granted while token %d was held for another %v", token, w.token, w.until.Sub(now))
	}
	w.until, w.token, w.grants = until, token, w.grants+1
}

func (w *watchman) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Time{}
}

// The server is killed again and again while holders come and go: with every crash some of them do not
// know whether their calls happened.
func TestKilledInMidRun(t *testing.T) {
	t.Parallel()
	p := peer.StartPostgres(t, peer.PostgresConfig{})
	kills := 2
	if *full {
		kills = 30
	}
	s := openStore(t, Config{URL: p.URL() + "&pool_max_conns=8", Migrate: true})
	ctx, stop := context.WithCancel(t.Context())
	var w watchman
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				holdOnce(ctx, t, s, &w, fmt.Sprint(i, " ", n), n%3 == 0)
			}
		})
	}
	for range kills {
		time.Sleep(700 * time.Millisecond)
		p.Kill()
		p.Restart()
	}
	time.Sleep(time.Second)
	stop()
	all.Wait()
	if w.grants < 3 {
		t.Errorf("only %d grants", w.grants)
	}
	t.Logf("%d grants during %d crashes", w.grants, kills)
}

// holdOnce asks for the resource until it is clear whether it has it, holds it for a moment, and lets it go;
// or forgets it, if it dies.
func holdOnce(ctx context.Context, t *testing.T, s *Store, w *watchman, id string, dies bool) {
	r := store.Request{Resource: "a", ID: id, TTL: 400 * time.Millisecond, Wait: 100 * time.Millisecond}
	ref := store.Ref{Resource: r.Resource, ID: id}
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		g, err := s.Acquire(one, r)
		sent := time.Now()
		var list []store.Renewal
		if err == nil {
			list, err = s.Renew(one, ref)
		}
		cancel()
		if store.Transient(err) {
			continue
		}
		if err == nil && list[0].Ended == nil && list[0].Err == nil {
			w.enter(t, g.Token, sent.Add(list[0].Remaining))
			time.Sleep(5 * time.Millisecond)
			if dies {
				return
			}
			w.leave()
		} else if err != nil && !errors.Is(err, leasehold.ErrHeld) && !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("acquire: %v", err)
		}
		one, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		_ = s.Release(one, store.ReleaseRequest{Leases: []store.Ref{ref}})
		cancel()
		return
	}
}
