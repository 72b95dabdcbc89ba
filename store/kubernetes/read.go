package kubernetes

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Read returns the state of a resource.
func (s *Store) Read(ctx context.Context, resource string) (store.Resource, error) {
	if err := s.ready(); err != nil {
		return store.Resource{}, err
	}
	v, err := s.get(ctx, objectName(s.namespace, resource))
	if err != nil {
		return store.Resource{}, err
	}
	return s.toResource(resource, v), nil
}

func (s *Store) toResource(resource string, v view) store.Resource {
	r := store.Resource{Status: leasehold.Status{
		Namespace: s.namespace, Resource: resource, State: leasehold.Available, Capacity: 1,
	}}
	if v.object == nil {
		return r
	}
	n, now := v.object.current(), s.watch.clock.Now()
	if v.held(now) {
		r.State, r.Used, r.Holding = leasehold.Leased, 1, 1
		r.Holders = []leasehold.Lease{s.holder(resource, v)}
		if n != nil {
			r.Value = n.Value
		}
		return r
	}
	if last := v.object.noteOf(); last != nil {
		r.Last = last.ending()
		switch r.Last.How {
		case leasehold.ByBreak:
			r.State = leasehold.Broken
		case leasehold.ByTTL:
			r.State = leasehold.Expired
		}
	}
	return r
}

// listChunk is how many Leases are asked for at once.
const listChunk = 250

type leaseList struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []*object `json:"items"`
}

// List returns the resources that are held. The API server can neither sort them by the names of resources
// nor begin in the middle, so all Leases of the namespace are read for each page.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := s.ready(); err != nil {
		return store.Page{}, err
	}
	var all []store.Resource
	err := s.walk(ctx, func(o *object) {
		resource := o.Meta.Annotations[keyResource]
		if resource <= q.After && q.After != "" || !strings.HasPrefix(resource, q.Prefix) ||
			objectName(s.namespace, resource) != o.Meta.Name {
			return
		}
		if r := s.toResource(resource, s.watch.saw(o)); r.Holding > 0 {
			all = append(all, r)
		}
	})
	if err != nil {
		return store.Page{}, err
	}
	slices.SortFunc(all, func(a, b store.Resource) int { return strings.Compare(a.Resource, b.Resource) })
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	page := store.Page{Items: all}
	if len(all) > limit {
		page.Items, page.Next = all[:limit], all[limit-1].Resource
	}
	return page, nil
}

// walk calls a function for each Lease of the namespace.
func (s *Store) walk(ctx context.Context, do func(*object)) error {
	query := url.Values{
		"labelSelector": {labelNamespace + "=" + labelOf(s.namespace)}, "limit": {strconv.Itoa(listChunk)},
	}
	found := map[string]*object{}
	for restarts := 0; ; {
		var list leaseList
		status, err := s.send(ctx, http.MethodGet, s.path("")+"?"+query.Encode(), nil, &list)
		if err != nil {
			return err
		}
		if status == http.StatusGone && restarts < tries { // the place is forgotten: from the beginning
			restarts++
			query.Del("continue")
			continue
		}
		for _, o := range list.Items {
			found[o.Meta.Name] = o
		}
		if list.Metadata.Continue == "" {
			break
		}
		query.Set("continue", list.Metadata.Continue)
	}
	for _, o := range found {
		do(o)
	}
	return nil
}
