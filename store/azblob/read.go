package azblob

import (
	"context"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Read returns the state of a resource.
func (s *Store) Read(ctx context.Context, resource string) (store.Resource, error) {
	if err := s.ready(ctx); err != nil {
		return store.Resource{}, err
	}
	v, err := s.look(ctx, resource)
	if err != nil {
		return store.Resource{}, s.failure(err)
	}
	r := store.Resource{Status: leasehold.Status{
		Namespace: s.namespace, Resource: resource, State: leasehold.Available, Capacity: 1,
	}}
	switch {
	case v == nil:
	case v.leased():
		r.State, r.Used, r.Holding, r.Value = leasehold.Leased, 1, 1, v.note.Value
		r.Holders = []leasehold.Lease{s.toLease(resource, v.note, v.token(), s.remaining(v))}
	case v.state == azure.StateTypeBroken:
		r.State = leasehold.Broken
	case v.state == azure.StateTypeExpired:
		r.State = leasehold.Expired
	}
	return r, nil
}

// List returns the resources that are held. Blobs stay when they are free, so a list reads the names of
// all: 5,000 in a request.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := s.ready(ctx); err != nil {
		return store.Page{}, err
	}
	names, err := s.leased(ctx, q)
	if err != nil {
		return store.Page{}, s.failure(err)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	var page store.Page
	if len(names) > limit {
		names = names[:limit]
		page.Next = names[limit-1]
	}
	page.Items = make([]store.Resource, len(names))
	errs := make([]error, len(names))
	store.Each(len(names), atOnce, func(i int) { page.Items[i], errs[i] = s.Read(ctx, names[i]) })
	for _, err := range errs {
		if err != nil {
			return store.Page{}, err
		}
	}
	page.Items = slices.DeleteFunc(page.Items, func(r store.Resource) bool { return r.Holding == 0 }) // ended since
	return page, nil
}

// leased returns the names of resources that are held, in order.
func (s *Store) leased(ctx context.Context, q store.Query) ([]string, error) {
	prefix := s.names.leases()
	pager := s.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix,
		Include: container.ListBlobsInclude{Metadata: true}})
	var names []string
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Segment.BlobItems {
			if item.Properties == nil || value(item.Properties.LeaseStatus) != azure.StatusTypeLocked {
				continue
			}
			name := s.nameOf(value(item.Name), item.Metadata)
			if name != "" && strings.HasPrefix(name, q.Prefix) && (q.After == "" || name > q.After) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// nameOf returns the resource of a blob; empty if it is somebody else's.
func (s *Store) nameOf(blob string, meta map[string]*string) string {
	text := strings.TrimPrefix(blob, s.names.leases())
	if strings.HasPrefix(text, hashPrefix) {
		return fromHeader(value(lower(meta)[metaName]))
	}
	name, err := unescaped(text)
	if err != nil {
		return ""
	}
	return name
}
