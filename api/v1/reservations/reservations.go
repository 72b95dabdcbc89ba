// Package reservations has the part of the API that is about reservations: resources, or units of them, that are kept
// for somebody from one moment to another.
//
//	r, err := reservations.Reserve(ctx, caller, reservations.Request{
//		Resource: "staging", Holder: "ann", From: v1.Time{Time: monday}, Length: v1.Duration(4 * time.Hour),
//	})
//
// From its start on a reservation is claimed by an acquire that names it:
//
//	lease, err := caller.Acquire(ctx, v1.AcquireRequest{
//		Resource: r.Resource, Holder: r.Holder, Reservation: r.ID, Wait: v1.Duration(time.Minute),
//	})
//
// One that nobody claims within 15 minutes is freed.
package reservations

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Request reserves a resource, or slots of it. With Every it recurs: At says when, by the clocks of Zone, and From
// and Until bound the days on which it begins.
type Request struct {
	Resource string      `json:"resource"`
	Holder   string      `json:"holder"`
	ID       string      `json:"id,omitempty"` // empty: the server makes one
	Reason   string      `json:"reason,omitempty"`
	Slots    v1.Slots    `json:"slots,omitempty"`  // left out: all of them
	Where    string      `json:"where,omitempty"`  // of a pool: conditions on its units, such as model=H100
	Spread   bool        `json:"spread,omitempty"` // of a pool: the units may be on several hosts
	Units    []string    `json:"units,omitempty"`  // of a pool: these, and as many slots
	From     v1.Time     `json:"from,omitzero"`    // left out: now
	Length   v1.Duration `json:"length"`
	Every    string      `json:"every,omitempty"` // day, weekdays, weekends, or days such as mon,wed
	At       string      `json:"at,omitempty"`    // such as 14:00
	Zone     string      `json:"zone,omitempty"`  // of the tz database, such as Europe/Berlin
	Until    v1.Time     `json:"until,omitzero"`  // it begins before then for the last time
}

// A Reservation is a promise of a resource, or of slots of it. Of one that recurs, From, Until and State are those of
// its next occurrence.
type Reservation struct {
	Namespace string   `json:"namespace"`
	ID        string   `json:"id"`
	Resource  string   `json:"resource"`
	Holder    string   `json:"holder"`
	Reason    string   `json:"reason,omitempty"`
	Slots     int      `json:"slots,omitempty"` // 0: all
	Where     string   `json:"where,omitempty"`
	Spread    bool     `json:"spread,omitempty"`
	From      *v1.Time `json:"from,omitempty"` // absent: nothing of it is planned yet
	Until     *v1.Time `json:"until,omitempty"`
	State     string   `json:"state,omitempty"`    // planned, begun, claimed, in use or over
	ClaimBy   *v1.Time `json:"claim_by,omitempty"` // it is freed then, unless somebody claims it
	Lease     string   `json:"lease,omitempty"`    // the id of the lease, or of the waiter, that claims it
	Units     []string `json:"units,omitempty"`    // of a pool: those that are planned, or in use
	Series    string   `json:"series,omitempty"`   // the id of the recurring reservation that it is one of
	Why       string   `json:"why,omitempty"`      // it is over

	Rule *Rule `json:"rule,omitempty"` // with the id of a series: when it recurs
}

// A Rule says when a reservation recurs.
type Rule struct {
	Every   string      `json:"every"`
	At      string      `json:"at"`
	Zone    string      `json:"zone"`
	Length  v1.Duration `json:"length"`
	Until   *v1.Time    `json:"until,omitempty"` // absent: it never ends
	Planned v1.Time     `json:"planned"`         // up to where its occurrences are planned
}

// A Query says which reservations to list: those that share time with the span from From to Until.
type Query struct {
	Resource string
	Prefix   string // instead of Resource
	Holder   string
	From     time.Time // zero: now
	Until    time.Time // zero: all that come
	After    string    // Next of the previous page
	Limit    int       // 0: the server's default
}

// Reserve reserves a resource. If it is reserved already the error says who is in the way, and the next times at which
// it is free.
func Reserve(ctx context.Context, c *v1.Caller, r Request, options ...v1.Option) (done Reservation, err error) {
	err = c.Send(ctx, "POST", path, nil, r, &done, options...)
	return done, err
}

// Cancel takes a reservation back, or a series and all of it that has not begun. A lease that claimed one stays.
func Cancel(ctx context.Context, c *v1.Caller, id, by, reason string, options ...v1.Option) error {
	query := url.Values{}
	set(query, "by", by)
	set(query, "reason", reason)
	return c.Send(ctx, "DELETE", path+"/"+url.PathEscape(id), query, nil, &v1.Nothing{}, options...)
}

// Get returns a reservation, or a series.
func Get(ctx context.Context, c *v1.Caller, id string) (r Reservation, err error) {
	err = c.Send(ctx, "GET", path+"/"+url.PathEscape(id), nil, nil, &r)
	return r, err
}

// Page returns one page of reservations that are not over, by resource and then by when they begin.
func Page(ctx context.Context, c *v1.Caller, q Query) (page v1.List[Reservation], err error) {
	query := q.values()
	set(query, "after", q.After)
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	err = c.Send(ctx, "GET", path, query, nil, &page)
	return page, err
}

// All returns all reservations that a query asks for, page by page, until the first error.
func All(ctx context.Context, c *v1.Caller, q Query) iter.Seq2[Reservation, error] {
	return func(yield func(Reservation, error) bool) {
		for {
			page, err := Page(ctx, c, q)
			if err != nil {
				yield(Reservation{}, err)
				return
			}
			for _, r := range page.Items {
				if !yield(r, nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}

// Series returns the recurring reservations of the namespace, by id.
func Series(ctx context.Context, c *v1.Caller) (list []Reservation, err error) {
	for after := ""; ; {
		var page v1.List[Reservation]
		query := url.Values{}
		set(query, "after", after)
		if err = c.Send(ctx, "GET", "/v1/series", query, nil, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Items...)
		if after = page.Next; after == "" {
			return list, nil
		}
	}
}

// Calendar returns reservations as an iCalendar file. The caller must close it.
func Calendar(ctx context.Context, c *v1.Caller, q Query) (*http.Response, error) {
	return c.Door(ctx, v1.DoorRequest{Method: "GET", Path: "/v1/calendar", Query: q.values(),
		Header: http.Header{"Accept": {"text/calendar"}}})
}

const path = "/v1/reservations"

// values is what a query says in a URL, but for the page.
func (q Query) values() url.Values {
	query := url.Values{}
	set(query, "resource", q.Resource)
	set(query, "prefix", q.Prefix)
	set(query, "holder", q.Holder)
	for name, at := range map[string]time.Time{"from": q.From, "until": q.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return query
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}
