package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Read returns the state of a resource.
func (s *Store) Read(ctx context.Context, resource string) (store.Resource, error) {
	if err := checkName("resource", resource); err != nil {
		return store.Resource{}, err
	}
	answers, err := s.ask(ctx, "read($1::bytea, $2::bytea)", s.namespace, []byte(resource))
	if err != nil {
		return store.Resource{}, err
	}
	if len(answers) == 0 {
		return s.resource(answer{verdict: "free", name: []byte(resource)}), nil
	}
	return s.resource(answers[0]), nil
}

// List returns the resources that are held or waited for.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	limit = min(limit, leasehold.MaxPage)
	answers, err := s.ask(ctx, "list($1::bytea, $2::bytea, $3::bytea, $4::bytea, $5::integer)", s.namespace,
		[]byte(q.Prefix), successor(q.Prefix), []byte(q.After), limit+1)
	if err != nil {
		return store.Page{}, err
	}
	var page store.Page
	if len(answers) > limit {
		answers = answers[:limit]
		page.Next = string(answers[limit-1].name)
	}
	for _, a := range answers {
		page.Items = append(page.Items, s.resource(a))
	}
	return page, nil
}

// resource returns the state that an answer of read or list describes.
func (s *Store) resource(a answer) store.Resource {
	name := string(a.name)
	r := store.Resource{Status: leasehold.Status{Namespace: string(s.namespace), Resource: name,
		State: leasehold.Available, Capacity: 1, Waiting: int(a.waiting), Queue: s.queue(a.queue, name)}}
	switch a.verdict {
	case "leased", "breaking":
		lease := s.lease(a, name)
		r.State, r.Used, r.Holding, r.Holders, r.Value = lease.State, 1, 1, []leasehold.Lease{lease}, a.value
	case "over":
		last := s.ending(a)
		r.Last = &last
		switch last.How {
		case leasehold.ByBreak:
			r.State = leasehold.Broken
		case leasehold.ByTTL:
			r.State = leasehold.Expired
		}
	}
	return r
}

// queue returns the first waiters.
func (s *Store) queue(text []byte, resource string) []leasehold.Waiter {
	var waiters []struct {
		ID           string
		Note         note
		Since, Until int64
	}
	if len(text) == 0 || json.NewDecoder(strings.NewReader(string(text))).Decode(&waiters) != nil {
		return nil
	}
	var queue []leasehold.Waiter
	for i, w := range waiters {
		id, err := hex.DecodeString(w.ID)
		if err != nil {
			continue
		}
		queue = append(queue, leasehold.Waiter{Namespace: string(s.namespace), Resource: resource, ID: string(id),
			Holder: w.Note.Holder, Labels: w.Note.labels(), Reason: w.Note.Reason, Position: i + 1,
			Since: time.UnixMicro(w.Since), Until: time.UnixMicro(w.Until)})
	}
	return queue
}
