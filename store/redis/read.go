package redis

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
	"github.com/redis/rueidis"
)

// How many waiters are shown: when one resource is read, and when many are listed.
const (
	shownInRead = 100
	shownInList = 10
)

// Read returns the state of a resource.
func (s *Store) Read(ctx context.Context, resource string) (store.Resource, error) {
	if err := checkName("resource", resource); err != nil {
		return store.Resource{}, err
	}
	all, err := s.read(ctx, shownInRead, []string{resource})
	if err != nil {
		return store.Resource{}, err
	}
	return all[0], nil
}

// List returns what is held or waited for. Redis is asked for names first, then for what they are. The
// index may still have names whose lease has ended by time; the second question removes them.
func (s *Store) List(ctx context.Context, q store.Query) (page store.Page, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	after := q.After
	for {
		want := min(chunk, limit-len(page.Items)+1)
		found, err := s.list(ctx, q.Prefix, after, want)
		if err != nil || len(found) == 0 {
			return page, err
		}
		all, err := s.read(ctx, shownInList, found)
		if err != nil {
			return page, err
		}
		for _, r := range all {
			if r.Holding == 0 && r.Waiting == 0 {
				continue
			}
			if len(page.Items) == limit {
				page.Next = page.Items[limit-1].Resource
				return page, nil
			}
			page.Items = append(page.Items, r)
		}
		if len(found) < want {
			return page, nil
		}
		after = found[len(found)-1]
	}
}

// list returns names of the index. No byte of a name is 0xff, so that byte ends the range of a prefix.
func (s *Store) list(ctx context.Context, prefix, after string, n int) ([]string, error) {
	from, to := "["+prefix, "+"
	if prefix != "" {
		to = "(" + prefix + "\xff"
	}
	if after >= prefix && after != "" {
		from = "(" + after
	}
	if after != "" && after > prefix && !strings.HasPrefix(after, prefix) {
		return nil, nil
	}
	a, err := s.call(ctx, namesScript, []string{s.names.index()}, from, to, decimal(int64(n)))
	if err != nil {
		return nil, err
	}
	return texts(a.rest[0]), nil
}

func texts(m rueidis.RedisMessage) (all []string) {
	for _, m := range list(m) {
		all = append(all, text(m))
	}
	return all
}

func (s *Store) read(ctx context.Context, shown int, resources []string) ([]store.Resource, error) {
	keys := []string{s.names.index()}
	for _, r := range resources {
		keys = append(append(keys, s.names.lease(r)), s.names.queue(r)...)
	}
	a, err := s.call(ctx, readScript, keys, append([]string{decimal(int64(shown))}, resources...)...)
	if err != nil {
		return nil, err
	}
	answers := list(a.rest[0])
	if len(answers) != len(resources) {
		return nil, undecided("Redis answered for %d of %d resources", len(answers), len(resources))
	}
	all := make([]store.Resource, len(resources))
	for i, m := range answers {
		all[i] = s.resource(a.now, resources[i], list(m))
	}
	return all, nil
}

// resource reads {lease, value, waiting, waiters}.
func (s *Store) resource(now int64, name string, parts []rueidis.RedisMessage) store.Resource {
	r := store.Resource{Status: leasehold.Status{
		Namespace: s.namespace, Resource: name, State: leasehold.Available, Capacity: 1, Waiting: int(number(parts[2])),
	}}
	if fields := list(parts[0]); text(fields[fieldID]) != "" {
		l := s.lease(now, name, fields)
		r.State, r.Last = l.State, last(l, fields)
		if r.Last == nil {
			r.Holding, r.Used, r.Holders = 1, 1, []leasehold.Lease{l}
			r.Value = []byte(text(parts[1]))
		}
	}
	for i, m := range list(parts[3]) {
		w := list(m)
		n := readNote(text(w[3]))
		r.Queue = append(r.Queue, leasehold.Waiter{
			Namespace: s.namespace, Resource: name, ID: text(w[0]),
			Holder: n.Holder, Labels: n.labels(), Reason: n.Reason,
			Position: i + 1, Since: time.UnixMicro(number(w[1])), Until: time.UnixMicro(number(w[2])),
		})
	}
	return r
}

// One of sweepEvery grants looks at sweepMany names of the index. More are looked at than grants add, so that
// the index stays in proportion to what lives, even if every lease is on another resource.
const (
	sweepEvery = 64
	sweepMany  = chunk
)

// sweep removes some names from the index whose leases ended by time. Nobody else does, if nobody
// lists. It samples, as Redis does for its own expiry. Chance decides when, and not a count: a program may
// end after one grant.
func (s *Store) sweep(ctx context.Context) {
	if rand.N(sweepEvery) != 0 {
		return
	}
	a, err := s.call(ctx, namesScript, []string{s.names.index()}, "some", decimal(sweepMany))
	if err != nil {
		return // the next one will do
	}
	if some := texts(a.rest[0]); len(some) > 0 {
		_, _ = s.read(ctx, 0, some) // as above
	}
}
