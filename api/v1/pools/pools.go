// Package pools has the part of the API that is about pools: resources whose slots are units with labels, on hosts.
// Units are set host by host, so that the agents of two hosts never undo each other's work:
//
//	err := pools.SetUnits(ctx, caller, "gpu", pools.UnitsRequest{Host: "node1", Units: []pools.HostUnit{
//		{Name: "GPU-5f1c", Labels: map[string]string{"model": "H100", "memory": "80"}},
//	}})
//
// They are asked for like slots of any other resource, by an acquire that may say which are good enough:
//
//	lease, err := caller.Acquire(ctx, v1.AcquireRequest{
//		Resource: "gpu", Holder: "ann", Slots: 2, Where: "model=H100",
//	})
//
// List shows which pools there are, and Get the units of one of them with who has which, and who waits for what. A pool
// may have 10,000 units: Get shows them page by page, and each page has the counts of the whole pool.
package pools

import (
	"context"
	"net/url"
	"strconv"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A UnitsRequest says which units of a pool one host has. Those that it leaves out are removed.
type UnitsRequest struct {
	Host   string     `json:"host,omitempty"`
	Units  []HostUnit `json:"units"`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// A HostUnit is a unit as its host describes it. Unfit says why it is not to be granted.
type HostUnit struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Unfit  string            `json:"unfit,omitempty"`
}

// A DrainRequest keeps units from being granted, or, with an empty Why, lets them be granted again.
type DrainRequest struct {
	Units []string `json:"units"`
	Why   string   `json:"why,omitempty"`
	By    string   `json:"by,omitempty"`
}

// A UseRequest says how the units of one host are used. A unit that it leaves out is not granted until the host reports
// it again.
type UseRequest struct {
	Host  string       `json:"host,omitempty"`
	Units []UnitReport `json:"units"`
	By    string       `json:"by,omitempty"`
}

// A UnitReport is the use of one unit as its host sees it.
type UnitReport struct {
	Name      string    `json:"name"`
	Percent   *int      `json:"percent,omitempty"` // nil: the host cannot tell
	Memory    int       `json:"memory_mib,omitempty"`
	Processes []Process `json:"processes,omitempty"`
	Unfit     string    `json:"unfit,omitempty"` // why it is not to be granted
}

// A Process uses a unit. Lease is the id of the lease under which it says that it runs.
type Process struct {
	PID   int    `json:"pid"`
	User  string `json:"user,omitempty"`
	Name  string `json:"name,omitempty"`
	Lease string `json:"lease,omitempty"`
}

// A Query says what to show of a pool.
type Query struct {
	After        string // Next of the previous page
	Limit, Queue int    // units, and waiters; 0: the server's default
}

// Get shows units of a pool, and who waits for some.
func Get(ctx context.Context, c *v1.Caller, path string, q Query) (pool Pool, err error) {
	query := url.Values{}
	if q.After != "" {
		query.Set("after", q.After)
	}
	for name, n := range map[string]int{"limit": q.Limit, "queue": q.Queue} {
		if n != 0 {
			query.Set(name, strconv.Itoa(n))
		}
	}
	err = c.Send(ctx, "GET", urlPath(path), query, nil, &pool)
	return pool, err
}

// List lists pools by path, without their units. A page may be short and still have a next one, because counting units
// takes time: go on until Next is empty.
func List(ctx context.Context, c *v1.Caller, prefix, after string) (page v1.List[Counts], err error) {
	query := url.Values{"limit": {strconv.Itoa(v1.MaxLimit)}}
	for name, text := range map[string]string{"prefix": prefix, "after": after} {
		if text != "" {
			query.Set(name, text)
		}
	}
	err = c.Send(ctx, "GET", "/v1/pools", query, nil, &page)
	return page, err
}

// SetUnits says which units of a pool one host has.
func SetUnits(ctx context.Context, c *v1.Caller, path string, r UnitsRequest) error {
	return c.Send(ctx, "PUT", urlPath(path), nil, r, &v1.Nothing{})
}

// Drain keeps units from being granted, or lets them be granted again.
func Drain(ctx context.Context, c *v1.Caller, path string, r DrainRequest) error {
	return c.Send(ctx, "PATCH", urlPath(path), nil, r, &v1.Nothing{})
}

// ReportUse says how the units of one host are used.
func ReportUse(ctx context.Context, c *v1.Caller, path string, r UseRequest) error {
	return c.Send(ctx, "POST", urlPath(path), nil, r, &v1.Nothing{})
}

func urlPath(path string) string { return "/v1/pools/" + url.PathEscape(path) }

// A Pool is units of a pool, and who waits for some.
type Pool struct {
	Namespace string   `json:"namespace"`
	Resource  string   `json:"resource"`
	Total     int      `json:"total"`
	Free      int      `json:"free"`
	Held      int      `json:"held"`
	Out       int      `json:"out"` // not to be granted: drained, unfit, at rest or taken without a lease
	Limits    []string `json:"limits,omitempty"`
	Units     []Unit   `json:"units"`
	Next      string   `json:"next,omitempty"`
	Waiting   int      `json:"waiting"`
	Queue     []Waiter `json:"queue,omitempty"`

	Idle        *v1.Duration `json:"idle,omitempty"` // as in the definition
	IdleRelease *v1.Duration `json:"idle_release,omitempty"`
}

// Counts is how many units a pool has, and how many of them are free, held or out. They add up to the total, but for
// units that their host has no longer and that a lease still has.
type Counts struct {
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	Hosts     int    `json:"hosts"`
	Total     int    `json:"total"`
	Free      int    `json:"free"`
	Held      int    `json:"held"`
	Out       int    `json:"out"` // not to be granted: drained, unfit or at rest
	Waiting   int    `json:"waiting"`
}

// A Unit is one unit of a pool.
type Unit struct {
	Name    string            `json:"name"`
	Host    string            `json:"host,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	State   string            `json:"state"`            // free, held, drained, unfit, taken or resting
	Lease   string            `json:"lease,omitempty"`  // that has it
	Holder  string            `json:"holder,omitempty"` // who has it, or had it last
	Since   v1.Time           `json:"since,omitzero"`   // when the lease began
	Until   v1.Time           `json:"until,omitzero"`   // when it ends by time, if it does
	Reason  string            `json:"reason,omitempty"` // of the lease
	Why     string            `json:"why,omitempty"`    // it is drained, unfit or taken
	Removed bool              `json:"removed,omitempty"`
	Use     *Use              `json:"use,omitempty"`
}

// A Use is how a unit is used, as its host said last.
type Use struct {
	At        v1.Time   `json:"at"`
	Percent   *int      `json:"percent,omitempty"` // nil: not known
	Memory    int       `json:"memory_mib"`
	Strangers []Process `json:"strangers,omitempty"`  // processes on it that are not of the lease which has it
	BusyMS    int64     `json:"busy_ms,omitempty"`    // that the lease used it, as far as that was reported
	IdleMS    int64     `json:"idle_ms,omitempty"`    // and did not
	IdleSince *v1.Time  `json:"idle_since,omitempty"` // since when all reports say that the lease does not use it
	Asked     *v1.Time  `json:"asked,omitempty"`      // when its holder was asked about that
}

// A Waiter is somebody who waits for units. Why says what for.
type Waiter struct {
	ID       string   `json:"id"`
	Holder   string   `json:"holder"`
	Position int      `json:"position"`
	Slots    int      `json:"slots,omitempty"`
	Where    string   `json:"where,omitempty"`
	Spread   bool     `json:"spread,omitempty"`
	Units    []string `json:"units,omitempty"`
	Since    v1.Time  `json:"since"`
	Why      string   `json:"why"`

	// How long until its turn usually comes, and how far that may be off, if it was learned.
	Forecast      v1.Duration `json:"forecast,omitzero"`
	ForecastError v1.Duration `json:"forecast_error,omitzero"`
}
