package storeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// watch answers with a stream of events, from now on.
func (a *API) watch(r *http.Request, s store.Store) *http.Response {
	query := r.URL.Query()
	if query.Has("session") || r.Header.Get("Last-Event-ID") != "" {
		return problem(&leasehold.Error{Code: leasehold.Refused,
			Message: s.Features().Store + " tells what happens from now on: what was before needs a Leasehold server"})
	}
	q := store.WatchQuery{Prefix: query.Get("prefix")}
	exact := query.Get("resource")
	if exact != "" {
		q.Prefix = exact
	}
	out, in := io.Pipe()
	events := a.events(r.Context(), s, q)
	go func() {
		in.CloseWithError(a.send(in, events, exact))
	}()
	return response(http.StatusOK, "text/event-stream", out)
}

// events returns what happens: as the store tells it, or by looking again and again.
func (a *API) events(ctx context.Context, s store.Store, q store.WatchQuery) iter.Seq2[leasehold.Event, error] {
	if watcher, ok := s.(store.Watcher); ok {
		return watcher.Watch(ctx, q)
	}
	return poll(ctx, s, q.Prefix)
}

// send writes events as a stream until there are no more.
func (a *API) send(w io.Writer, events iter.Seq2[leasehold.Event, error], exact string) error {
	hello, _ := json.Marshal(v1.Hello{Namespace: a.namespace, Time: v1.Time{Time: time.Now()}})
	if _, err := fmt.Fprintf(w, "event: hello\ndata: %s\n\n", hello); err != nil {
		return err
	}
	for e, err := range events {
		if err != nil {
			return err
		}
		if exact != "" && e.Resource != exact {
			continue
		}
		data, _ := json.Marshal(event(e, a.namespace))
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
			return err
		}
	}
	return io.EOF
}

// pollEvery is how often a store without a watch is looked at.
const pollEvery = time.Second

// poll yields the differences between one look at the resources and the next. A lease that began and
// ended in between is not seen.
func poll(ctx context.Context, s store.Store, prefix string) iter.Seq2[leasehold.Event, error] {
	return func(yield func(leasehold.Event, error) bool) {
		before, err := look(ctx, s, prefix)
		for ; err == nil; before, err = next(ctx, s, prefix, before, yield) {
		}
		if err != errStopped {
			yield(leasehold.Event{}, err)
		}
	}
}

var errStopped = fmt.Errorf("the reader has stopped")

// next waits, looks again and yields what changed.
func next(
	ctx context.Context, s store.Store, prefix string, before map[string]leasehold.Lease,
	yield func(leasehold.Event, error) bool,
) (map[string]leasehold.Lease, error) {
	select {
	case <-time.After(pollEvery):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	now, err := look(ctx, s, prefix)
	if err != nil {
		return nil, err
	}
	for _, e := range changes(before, now) {
		if !yield(e, nil) {
			return nil, errStopped
		}
	}
	return now, nil
}

// look returns the leases of all resources with a prefix, by id.
func look(ctx context.Context, s store.Store, prefix string) (map[string]leasehold.Lease, error) {
	found := map[string]leasehold.Lease{}
	for after := ""; ; {
		page, err := s.List(ctx, store.Query{Prefix: prefix, After: after})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Items {
			for _, l := range r.Holders {
				found[l.ID] = l
			}
		}
		if after = page.Next; after == "" {
			return found, nil
		}
	}
}

// changes returns the events between two looks, ends first.
func changes(before, now map[string]leasehold.Lease) (events []leasehold.Event) {
	tell := func(kind leasehold.Kind, l leasehold.Lease) {
		events = append(events, leasehold.Event{
			Kind: kind, At: time.Now(), Resource: l.Resource, ID: l.ID, Holder: l.Holder, Token: l.Token,
			Reason: l.Reason,
		})
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, ok := now[id]; !ok {
			tell(leasehold.Ended, before[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if _, ok := before[id]; !ok {
			tell(leasehold.Acquired, now[id])
		}
	}
	return events
}
