package memory

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// maxQueue is how many waiters a read shows, and maxPage how many resources a page has.
const (
	maxQueue = 1000
	maxPage  = 1000
)

// Read returns the state of a resource.
func (s *Store) Read(ctx context.Context, resource string) (r store.Resource, err error) {
	err = s.read(ctx, func(v core.View) { r.Status = v.Status(s.namespace, resource, maxQueue) })
	return r, err
}

// List returns the resources that are held or waited for. A page may be short and still have a
// next one, because what a read may look at is bounded.
func (s *Store) List(ctx context.Context, q store.Query) (page store.Page, err error) {
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	var found []leasehold.Status
	err = s.read(ctx, func(v core.View) {
		found, page.Next = v.Find(s.namespace, core.ListQuery{
			Prefix: q.Prefix, After: q.After, Most: min(q.Limit, maxPage),
		})
	})
	for _, status := range found {
		if status.Holding > 0 || status.Waiting > 0 { // and not one that remembers an unclean end
			page.Items = append(page.Items, store.Resource{Status: status})
		}
	}
	return page, err
}
