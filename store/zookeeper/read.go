package zookeeper

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

const (
	queueShown = 100 // waiters in the state of a resource
	listChunk  = 64  // resources that are looked at together
)

// Read returns the state of a resource.
func (s *Store) Read(ctx context.Context, resource string) (store.Resource, error) {
	if err := s.ready(ctx); err != nil {
		return store.Resource{}, err
	}
	r, err := run(ctx, func(ctx context.Context) (store.Resource, error) {
		c, err := s.anySession(ctx)
		if err != nil {
			return store.Resource{}, err
		}
		defer c.done()
		if _, err := c.conn.Sync(s.paths.leases()); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return store.Resource{}, err
		}
		return s.status(c, resource)
	})
	return r, s.failure(err)
}

func (s *Store) status(c *session, resource string) (store.Resource, error) {
	places, err := s.places(c, resource)
	for err == nil {
		var r store.Resource
		r, err = s.show(c, resource, places)
		if !errors.Is(err, zk.ErrNoNode) {
			return r, err
		}
		places, err = s.places(c, resource) // one of them has just ended
	}
	return store.Resource{}, err
}

func (s *Store) show(c *session, resource string, places []place) (store.Resource, error) {
	r := store.Resource{Status: leasehold.Status{
		Namespace: s.namespace, Resource: resource, State: leasehold.Available, Capacity: 1,
	}}
	if len(places) == 0 {
		return r, nil
	}
	for i, p := range places[:min(len(places), queueShown+1)] {
		lease, n, err := s.read(c, resource, p)
		if err != nil {
			return r, err
		}
		if i == 0 {
			r.State, r.Used, r.Holding, r.Value = leasehold.Leased, 1, 1, n.Value
			r.Holders = []leasehold.Lease{lease}
			continue
		}
		r.Queue = append(r.Queue, leasehold.Waiter{Namespace: s.namespace, Resource: resource, ID: n.ID,
			Holder: n.Holder, Labels: store.LabelsOf(n.Labels), Reason: n.Reason, Position: i, Since: n.Since})
	}
	r.Waiting = len(places) - 1
	return r, nil
}

// read reads the node of a lease or waiter. ZooKeeper does not tell what is left of the time of another
// process' lease: its TTL is the most.
func (s *Store) read(c *session, resource string, p place) (leasehold.Lease, note, error) {
	data, stat, err := c.conn.Get(path.Join(s.paths.resource(resource), p.name))
	if err != nil {
		return leasehold.Lease{}, note{}, err
	}
	n := noteOf(data, p.id)
	remaining := n.ttl()
	if l, _ := s.known(p.id); l != nil {
		s.mu.Lock()
		remaining = min(remaining, max(l.until-s.clock.Now(), 1))
		s.mu.Unlock()
	}
	return s.toLease(resource, n, leasehold.Token(stat.Czxid), remaining), n, nil
}

// List returns the resources that are held or waited for. ZooKeeper has no pages: the names of all are
// read each time, and the state of those on the page.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := s.ready(ctx); err != nil {
		return store.Page{}, err
	}
	page, err := run(ctx, func(ctx context.Context) (store.Page, error) { return s.list(ctx, q) })
	return page, s.failure(err)
}

// list reads a page of resources, in the order of their names.
func (s *Store) list(ctx context.Context, q store.Query) (page store.Page, err error) {
	c, err := s.anySession(ctx)
	if err != nil {
		return page, err
	}
	defer c.done()
	names, err := s.names(c, q)
	if err != nil {
		return page, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	for len(names) > 0 {
		chunk := names[:min(listChunk, len(names))]
		names = names[len(chunk):]
		items, errs := make([]store.Resource, len(chunk)), make([]error, len(chunk))
		store.Each(len(chunk), atOnce, func(i int) { items[i], errs[i] = s.status(c, chunk[i]) })
		for i, item := range items {
			if errs[i] != nil {
				return store.Page{}, errs[i]
			}
			if item.Holding == 0 {
				continue // its parent has not been deleted yet
			}
			if len(page.Items) == limit {
				page.Next = page.Items[limit-1].Resource
				return page, nil
			}
			page.Items = append(page.Items, item)
		}
	}
	return page, nil
}

// names returns the names that a query may show, in order.
func (s *Store) names(c *session, q store.Query) ([]string, error) {
	if _, err := c.conn.Sync(s.paths.leases()); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	children, _, err := c.conn.Children(s.paths.leases())
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, child := range children {
		name, err := unescaped(child)
		if err == nil && strings.HasPrefix(name, q.Prefix) && (q.After == "" || name > q.After) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
