package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/store"
)

// Watch yields what happens.
func (s *Store) Watch(ctx context.Context, q store.WatchQuery) iter.Seq2[leasehold.Event, error] {
	return func(yield func(leasehold.Event, error) bool) {
		ctx, done, err := s.begin(ctx)
		if err == nil {
			defer done()
			err = s.watch(ctx, q, yield)
		}
		if err != nil {
			yield(leasehold.Event{}, err)
		}
	}
}

// watch yields events until yield returns false, or something fails.
func (s *Store) watch(ctx context.Context, q store.WatchQuery, yield func(leasehold.Event, error) bool) error {
	from, err := parsePosition(q.Since)
	if err != nil {
		return err
	}
	filter := engine.Filter{Namespace: s.namespace, Prefix: q.Prefix, Session: q.Session}
	w, err := engine.Watch(ctx, s.world.engine, filter, from)
	if err != nil {
		return gone(err)
	}
	if q.Started != nil {
		q.Started()
	}
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return gone(err)
		}
		for _, e := range events {
			if !yield(*e, nil) {
				return nil
			}
			if q.Passed != nil {
				q.Passed(fmt.Sprintf("%d.%d", e.Revision, e.N))
			}
		}
	}
}

// gone makes Lost of a position whose events are no longer known.
func gone(err error) error {
	var g *engine.GoneError
	if errors.As(err, &g) {
		return &leasehold.Error{Code: leasehold.Lost, Message: g.Error()}
	}
	return err
}

// parsePosition reads what Passed was called with.
func parsePosition(text string) (*engine.Position, error) {
	if text == "" {
		return nil, nil
	}
	revision, n, dotted := strings.Cut(text, ".")
	r, err1 := strconv.ParseUint(revision, 10, 64)
	at := &engine.Position{Revision: leasehold.Revision(r), N: core.AllOf}
	if !dotted && err1 == nil {
		return at, nil
	}
	number, err2 := strconv.ParseUint(n, 10, 32)
	if err1 != nil || err2 != nil {
		return nil, invalid("%q is not a position of a watch: leave it out to watch from now on", text)
	}
	at.N = uint32(number)
	return at, nil
}
