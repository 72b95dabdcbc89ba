// Package reports has the part of the API that sums up who held how much of a pool for how long.
//
//	report, err := reports.Get(ctx, caller, "gpu", reports.Query{From: time.Now().AddDate(0, 0, -30)})
//
// Times are of units: a lease that had two units for an hour held two hours. What nobody reported is neither busy nor
// idle, and a nil Busy says that nothing at all is known.
package reports

import (
	"context"
	"net/url"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Query says what to sum up.
type Query struct {
	From, Until time.Time // zero: 30 days ago, and now
	By          string    // holder, host or label:NAME; empty: holder
}

// A Report is what was held of a pool in some time, leases that are still held included.
type Report struct {
	Namespace string  `json:"namespace"`
	Resource  string  `json:"resource"`
	From      v1.Time `json:"from"`
	Until     v1.Time `json:"until"`
	By        string  `json:"by"`
	Total     Row     `json:"total"`
	Rows      []Row   `json:"rows"` // those that held longest first
}

// A Row is the sum of the holds of one holder or group.
type Row struct {
	Name     string `json:"name,omitempty"` // of the holder, the host or the label's value; empty: it has none
	Holds    int    `json:"holds"`
	HeldMS   int64  `json:"held_ms"`
	BusyMS   *int64 `json:"busy_ms,omitempty"` // nil: nobody reported it
	IdleMS   *int64 `json:"idle_ms,omitempty"` // held, and reported as not used
	WaitedMS int64  `json:"waited_ms"`         // in the queue, before the grant
}

// Get sums up the holds of a pool.
func Get(ctx context.Context, c *v1.Caller, path string, q Query) (report Report, err error) {
	query := url.Values{}
	if q.By != "" {
		query.Set("by", q.By)
	}
	for name, at := range map[string]time.Time{"from": q.From, "until": q.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	err = c.Send(ctx, "GET", "/v1/reports/"+url.PathEscape(path), query, nil, &report)
	return report, err
}
