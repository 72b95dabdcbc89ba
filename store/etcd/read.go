package etcd

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

const (
	queueShown = 100 // waiters in the state of a resource
	readMany   = 16  // resources of a page that are read at the same time
	scanChunk  = 256 // keys of one request of a list
)

// Read returns the state of a resource.
func (s *Store) Read(ctx context.Context, resource string) (store.Resource, error) {
	if err := s.ready(); err != nil {
		return store.Resource{}, err
	}
	r, err := s.read(ctx, resource)
	return r, s.failure(err)
}

// read looks at the holder and the queue in one transaction, so that both are of one revision.
func (s *Store) read(ctx context.Context, resource string) (store.Resource, error) {
	r := store.Resource{Status: leasehold.Status{
		Namespace: s.namespace, Resource: resource, State: leasehold.Available, Capacity: 1,
	}}
	waiters := s.keys.waiters(resource)
	answer, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.keys.holder(resource)),
		clientv3.OpGet(waiters, clientv3.WithPrefix(), clientv3.WithLimit(queueShown),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(waiters, clientv3.WithPrefix(), clientv3.WithCountOnly()),
		clientv3.OpGet(s.keys.last(resource)),
	).Commit()
	if err != nil {
		return r, err
	}
	holder := s.heldBy(resource, firstOf(answer, 0), firstOf(answer, 3))
	r.Waiting = int(answer.Responses[2].GetResponseRange().Count)
	for i, kv := range answer.Responses[1].GetResponseRange().Kvs {
		r.Queue = append(r.Queue, s.toWaiter(resource, kv, i+1))
	}
	if err := s.ended(ctx, &r, holder, noteOf(firstOf(answer, 3))); err != nil {
		return r, err
	}
	if holder == nil {
		return r, nil
	}
	remaining, err := s.remaining(ctx, holder.lease)
	r.State, r.Used, r.Holding, r.Value = leasehold.Leased, 1, 1, holder.Value
	r.Holders = []leasehold.Lease{s.toLease(holder, max(remaining, 1))}
	return r, err
}

// ended adds how the last lease ended, and the state that this leaves if nobody holds the resource.
func (s *Store) ended(ctx context.Context, r *store.Resource, holder *claim, last note) error {
	if last.ID == "" || holder != nil && holder.ID == last.ID {
		return nil
	}
	answer, err := s.client.Get(ctx, s.keys.mark(last.ID))
	if err != nil || len(answer.Kvs) == 0 {
		return err
	}
	r.Last = markOf(answer.Kvs[0]).ending(last.ID)
	r.Last.Holder, r.Last.TTL = last.Holder, time.Duration(last.TTL)*time.Second
	switch r.Last.How {
	case leasehold.ByBreak:
		r.State = leasehold.Broken
	case leasehold.ByTTL:
		r.State = leasehold.Expired
	}
	return nil
}

func (s *Store) toWaiter(resource string, kv *mvccpb.KeyValue, position int) leasehold.Waiter {
	n := noteOf(kv)
	return leasehold.Waiter{Namespace: s.namespace, Resource: resource, ID: n.ID, Holder: n.Holder,
		Labels: store.LabelsOf(n.Labels), Reason: n.Reason, Position: position, Since: n.Since}
}

// List returns the resources that are held or waited for.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := s.ready(); err != nil {
		return store.Page{}, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	names, err := s.names(ctx, q, limit+1)
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
	store.Each(len(names), readMany, func(i int) { page.Items[i], errs[i] = s.Read(ctx, names[i]) })
	for _, err := range errs {
		if err != nil {
			return store.Page{}, err
		}
	}
	page.Items = slices.DeleteFunc(page.Items, func(r store.Resource) bool { // ended since
		return r.Holding == 0 && r.Waiting == 0
	})
	return page, nil
}

// names returns the names of resources with a holder or waiters, in order. A resource may have many
// waiters: what is left of them is jumped over, so that the cost depends on the page alone.
func (s *Store) names(ctx context.Context, q store.Query, limit int) ([]string, error) {
	from, end := s.keys.prefixed(q.Prefix), clientv3.GetPrefixRangeEnd(s.keys.prefixed(q.Prefix))
	if after := clientv3.GetPrefixRangeEnd(s.keys.resource(q.After)); q.After != "" && after > from {
		from = after
	}
	var names []string
	for len(names) < limit && from < end {
		answer, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(),
			clientv3.WithLimit(scanChunk), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
		if err != nil {
			return nil, err
		}
		for _, kv := range answer.Kvs {
			name, _, err := s.keys.parse(string(kv.Key))
			if err != nil {
				from = string(kv.Key) + "\x00"
				continue // written by somebody else
			}
			if n := len(names); n == 0 || names[n-1] != name {
				names = append(names, name)
			}
			from = clientv3.GetPrefixRangeEnd(s.keys.resource(name))
		}
		if !answer.More {
			break
		}
	}
	return names[:min(limit, len(names))], nil
}
