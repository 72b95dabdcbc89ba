package storeapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// acquire asks the store for a lease. What only a server can do is refused with a sentence, and not left out.
func (a *API) acquire(ctx context.Context, s store.Store, r v1.AcquireRequest) (v1.Lease, error) {
	if r.TTL.None || r.TTL.Word() != "" {
		return v1.Lease{}, &leasehold.Error{Code: leasehold.Refused,
			Message: s.Features().Store + " needs a TTL, such as 30s: other words for it need a Leasehold server"}
	}
	request := store.Request{
		Resource: r.Resource, ID: r.ID, Holder: r.Holder, Labels: store.LabelsOf(r.Labels), Reason: r.Reason,
		TTL: time.Duration(r.TTL.Duration), Wait: time.Duration(r.Wait), Session: r.Session, Party: r.Party,
		Shared: r.Shared, Slots: max(0, int(r.Slots)), Capacity: r.Capacity, Grace: time.Duration(r.Grace),
		HoldLimit: time.Duration(r.HoldLimit), Priority: r.Priority,
	}
	if request.TTL == 0 {
		request.TTL = leasehold.DefaultTTL
	}
	made := request.ID == ""
	if made {
		request.ID = newID(r.Resource)
	}
	if err := check(s, request, r.Also); err != nil {
		return v1.Lease{}, err
	}
	grant, err := s.Acquire(ctx, request)
	if err != nil && made && (request.Wait > 0 || store.Transient(err)) {
		withdraw(ctx, s, store.Ref{Resource: request.Resource, ID: request.ID})
	}
	if err != nil {
		return v1.Lease{}, sayWhoHolds(err)
	}
	lease := a.lease(grant.Lease)
	if grant.Waited {
		lease.WaitedMS = 1 // how long is not known
	}
	return lease, nil
}

// withdrawTime limits how long a caller that has gone away is kept for what it leaves behind.
const withdrawTime = 5 * time.Second

// withdraw takes back a request whose id nobody else knows, as a server does. If the store does not
// answer, its place or lease ends with its TTL.
func withdraw(ctx context.Context, s store.Store, ref store.Ref) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	_ = s.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{ref}, Withdraw: true})
}

// sayWhoHolds gives the error about a resource that is held the words of a server's.
func sayWhoHolds(err error) error {
	var held *leasehold.Error
	if !errors.As(err, &held) || held.Code != leasehold.Held || held.Lease == nil {
		return err
	}
	told := *held
	l := held.Lease
	told.Message = fmt.Sprintf("%s is held by %s", l.Resource, l.Holder)
	if l.Reason != "" {
		told.Message += " (" + l.Reason + ")"
	}
	if l.Remaining > 0 {
		told.Message += fmt.Sprintf("; ends in %s unless renewed", v1.Duration(l.Remaining.Round(time.Second)))
	}
	return &told
}

// check refuses what a store cannot do. A lease of the command line goes on after its process.
func check(s store.Store, r store.Request, also []v1.AcquireItem) error {
	r.Also = make([]store.Item, len(also))
	if err := store.Check(s, r); err != nil {
		return err
	}
	return store.Require(s, store.Detached)
}

// separator is between the random part of an id and the resource that it belongs to. A store looks a
// lease up by its resource, and people name it by its id alone.
const separator = ":"

func newID(resource string) string {
	id := strings.ToLower(rand.Text()) + separator + resource
	if len(id) > leasehold.MaxName {
		id, _, _ = strings.Cut(id, separator)
	}
	return id
}

// find returns the lease, or the waiter, with an id. An id that names its resource needs no search.
func find(ctx context.Context, s store.Store, id string) (store.Ref, error) {
	if _, resource, ok := strings.Cut(id, separator); ok {
		return store.Ref{Resource: resource, ID: id}, nil
	}
	for after := ""; ; {
		page, err := s.List(ctx, store.Query{After: after})
		if err != nil {
			return store.Ref{}, err
		}
		for _, r := range page.Items {
			if has(r, id) {
				return store.Ref{Resource: r.Resource, ID: id}, nil
			}
		}
		if after = page.Next; after == "" {
			return store.Ref{}, &leasehold.Error{Code: leasehold.NotFound,
				Message: fmt.Sprintf("no lease has the id %s, and nobody waits with it", id)}
		}
	}
}

// has reports whether an id holds a resource or waits for it.
func has(r store.Resource, id string) bool {
	for _, l := range r.Holders {
		if l.ID == id {
			return true
		}
	}
	for _, w := range r.Queue {
		if w.ID == id {
			return true
		}
	}
	return false
}

// renew renews the lease of an id, and changes its note if one is given and the store keeps notes.
func (a *API) renew(ctx context.Context, s store.Store, r v1.RenewRequest) (v1.Lease, error) {
	noter, notes := s.(store.Noter)
	if r.Note != nil && !notes {
		return v1.Lease{}, store.Require(s, store.NotePower)
	}
	ref, err := find(ctx, s, r.ID)
	if err != nil {
		return v1.Lease{}, err
	}
	if r.Note != nil {
		if err := noter.Note(ctx, ref, *r.Note); err != nil {
			return v1.Lease{}, err
		}
	}
	answers, err := s.Renew(ctx, ref)
	if err != nil {
		return v1.Lease{}, err
	}
	switch answer := answers[0]; {
	case answer.Err != nil:
		return v1.Lease{}, answer.Err
	case answer.Ended != nil:
		return v1.Lease{}, ended(ref, answer.Ended)
	default:
		lease := answer.Lease
		lease.Resource, lease.ID = ref.Resource, ref.ID
		return a.lease(lease), nil
	}
}

// ended returns the error of a lease that is over.
func ended(ref store.Ref, e *leasehold.Ending) error {
	message := fmt.Sprintf("the lease of %s with id %s has ended", ref.Resource, ref.ID)
	if e.How != 0 {
		message += ": " + e.How.String()
	}
	if e.By != "" {
		message += " by " + e.By
	}
	if e.Reason != "" {
		message += ": " + e.Reason
	}
	return &leasehold.Error{Code: leasehold.Lost, Message: message}
}

func (a *API) release(ctx context.Context, s store.Store, r v1.ReleaseRequest) error {
	request := store.ReleaseRequest{Withdraw: r.Withdraw}
	ids := r.IDs
	if r.ID != "" {
		ids = append(ids, r.ID)
	}
	for _, id := range ids {
		ref, err := find(ctx, s, id)
		if err != nil {
			return err
		}
		request.Leases = append(request.Leases, ref)
	}
	var gone error
	if !r.Withdraw {
		gone = lostBefore(ctx, s, request.Leases)
	}
	if err := s.Release(ctx, request); err != nil {
		return err
	}
	return gone
}

// lostBefore returns the error about the first lease that ended otherwise than by its release. For the
// release of a store that is no error; a person should know that the work was not covered to its end.
func lostBefore(ctx context.Context, s store.Store, leases []store.Ref) error {
	answers, err := s.Renew(ctx, leases...)
	if err != nil {
		return nil // the release will fail as well, or matters more
	}
	for i, a := range answers {
		if a.Ended != nil && a.Ended.How != 0 && a.Ended.How != leasehold.Released {
			return ended(leases[i], a.Ended)
		}
	}
	return nil
}

// breakLease ends the lease of an id, or the one that holds the resource with a token.
func (a *API) breakLease(ctx context.Context, s store.Store, r v1.BreakRequest) (v1.Lease, error) {
	ref, err := store.Ref{Resource: r.Resource, ID: r.ID}, error(nil)
	if r.ID != "" {
		ref, err = find(ctx, s, r.ID)
	}
	if err != nil {
		return v1.Lease{}, err
	}
	seen, err := s.Read(ctx, ref.Resource)
	if err != nil {
		return v1.Lease{}, err
	}
	request := store.BreakRequest{Ref: ref, By: r.By, Reason: r.Reason}
	for _, l := range seen.Holders {
		if l.ID == ref.ID || ref.ID == "" && uint64(l.Token) == r.Token {
			request.ID, request.Period = l.ID, l.Remaining
		}
	}
	if request.ID == "" {
		return v1.Lease{}, &leasehold.Error{Code: leasehold.Lost,
			Message: fmt.Sprintf("%s has no lease with the token %d any more", ref.Resource, r.Token)}
	}
	// Without a period the holder keeps what it has left, without renewals.
	if r.Period != nil {
		request.Period = min(request.Period, time.Duration(*r.Period))
	}
	if request.Period > 0 && !s.Features().Has(store.BreakPeriod) {
		return v1.Lease{}, &leasehold.Error{Code: leasehold.Refused,
			Message: s.Features().Store + " ends a lease at once or not at all: break it with --now"}
	}
	lease, err := s.Break(ctx, request)
	return a.lease(lease), err
}

func (a *API) resource(ctx context.Context, s store.Store, name string) (v1.Resource, error) {
	r, err := s.Read(ctx, name)
	return a.status(r.Status), err
}

func (a *API) list(ctx context.Context, s store.Store, query url.Values) (v1.List[v1.Resource], error) {
	list := v1.List[v1.Resource]{Items: []v1.Resource{}}
	for _, filter := range []string{"holder", "session", "door", "state", "label"} {
		if query.Has(filter) {
			return list, &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
				"%s cannot filter by %s: list by a prefix, or use a Leasehold server", s.Features().Store, filter)}
		}
	}
	limit, _ := strconv.Atoi(query.Get("limit"))
	page, err := s.List(ctx, store.Query{Prefix: query.Get("prefix"), After: query.Get("after"), Limit: limit})
	for _, r := range page.Items {
		list.Items = append(list.Items, a.status(r.Status))
	}
	list.Next = page.Next
	return list, err
}
