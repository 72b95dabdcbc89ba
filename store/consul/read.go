package consul

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// readMany is how many resources of a page are read at the same time.
const readMany = 16

// Read returns the state of a resource. Consul does not tell when a session ends, so the whole TTL
// is shown as what remains.
func (s *Store) Read(ctx context.Context, resource string) (store.Resource, error) {
	if err := s.ready(); err != nil {
		return store.Resource{}, err
	}
	r, err := s.read(ctx, resource)
	return r, s.failure(err)
}

// read looks at the holder and at what is known of the one before, in one request.
func (s *Store) read(ctx context.Context, resource string) (store.Resource, error) {
	r := store.Resource{Status: leasehold.Status{
		Namespace: s.namespace, Resource: resource, State: leasehold.Available, Capacity: 1,
	}}
	kvs, err := s.get(ctx, s.keys.lease(resource), s.keys.last(resource))
	if err != nil {
		return r, err
	}
	holder, last := claimOf(resource, kvs[0]), noteOf(kvs[1])
	id := last.ID
	if holder != nil {
		id = holder.ID
	}
	if id == "" {
		return r, nil
	}
	if kvs, err = s.get(ctx, s.keys.mark(id)); err != nil {
		return r, err
	}
	used := markOf(kvs[0])
	if holder != nil {
		token := holder.token()
		if used != nil {
			token = used.token
		}
		r.State, r.Used, r.Holding, r.Value = leasehold.Leased, 1, 1, holder.Value
		r.Holders = []leasehold.Lease{s.toLease(holder, token, holder.ttl())}
		return r, nil
	}
	if used == nil {
		return r, nil
	}
	r.Last = used.ending(id)
	r.Last.Holder, r.Last.TTL = last.Holder, last.ttl()
	switch r.Last.How {
	case leasehold.ByBreak:
		r.State = leasehold.Broken
	case leasehold.ByTTL:
		r.State = leasehold.Expired
	}
	return r, nil
}

// List returns the resources that are held. Consul has no pages: it sends all names with the prefix, and
// the state is read of those on the page.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := s.ready(); err != nil {
		return store.Page{}, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	names, err := s.names(ctx, q)
	if err != nil {
		return store.Page{}, s.failure(err)
	}
	var page store.Page
	if len(names) > limit {
		names = names[:limit]
		page.Next = names[limit-1]
	}
	page.Items = make([]store.Resource, len(names))
	errs := make([]error, len(names))
	store.Each(len(names), readMany, func(i int) { page.Items[i], errs[i] = s.read(ctx, names[i]) })
	for _, err := range errs {
		if err != nil {
			return store.Page{}, s.failure(err)
		}
	}
	page.Items = slices.DeleteFunc(page.Items, func(r store.Resource) bool { return r.Holding == 0 }) // ended since
	return page, nil
}

// names returns the names of held resources after a name, in order.
func (s *Store) names(ctx context.Context, q store.Query) (names []string, err error) {
	options := (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
	found, _, err := s.client.KV().Keys(s.keys.lease(q.Prefix), "", options)
	if err != nil {
		return nil, err
	}
	for _, key := range found {
		name, err := s.keys.resource(key)
		if err == nil && name > q.After && strings.HasPrefix(name, q.Prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
