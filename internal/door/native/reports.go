package native

import (
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/reports"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/translate"
	"github.com/leasehold/leasehold/internal/report"
)

// reportTime is how far back a report looks that does not say.
const reportTime = 30 * 24 * time.Hour

// report sums up who held how much of a pool: by the journal, and by what is held now.
func (c *call) report() error {
	path, q := c.path("path"), reports.Query{By: c.query.Get("by")}
	var badFrom, badUntil error
	q.From, badFrom = c.moment("from")
	q.Until, badUntil = c.moment("until")
	if err := firstError(checkPath("resource", path), checkText("by", q.By), badFrom, badUntil); err != nil {
		return err
	}
	now := time.Now()
	if q.Until.IsZero() || q.Until.After(now) {
		q.Until = now
	}
	if q.From.IsZero() {
		q.From = q.Until.Add(-reportTime)
	}
	sum, err := report.New(c.namespace, path, q)
	if err != nil {
		return invalid("%v", err)
	}
	// The journal is asked first: it knows who may see how a resource was held.
	if err := firstError(c.addEnded(sum, path, q), c.addHeld(sum, path, now)); err != nil {
		return err
	}
	return c.sendValue(sum.Report())
}

// addEnded adds the holds that the journal has, page by page.
func (c *call) addEnded(sum *report.Sum, path string, q reports.Query) error {
	j := c.door.backend.Journal()
	if j == nil {
		return &leasehold.Error{Code: leasehold.NotFound,
			Message: "this server keeps no journal to report from: its setting journal-size is 0"}
	}
	lines := audit.Query{Kind: audit.Hold, Namespace: c.namespace, Resource: path, From: q.From, Until: q.Until,
		Limit: v1.MaxLimit}
	for {
		page, err := j.Find(c.ctx, lines)
		if err != nil {
			return err
		}
		for i := range page.Lines {
			l := &page.Lines[i]
			sum.Add(&report.Hold{Holder: l.Holder, Share: l.Share, Since: l.Since, Until: l.Until, Waited: l.Waited,
				Busy: l.Busy, Idle: l.Idle})
		}
		if lines.After = page.Next; page.Next == (audit.Place{}) {
			return nil
		}
	}
}

// addHeld adds what units are held now, page by page. A wait counts when the hold has ended.
func (c *call) addHeld(sum *report.Sum, path string, now time.Time) error {
	q := core.PoolQuery{Most: v1.MaxLimit}
	for first := true; first || q.After != ""; first = false {
		var status leasehold.PoolStatus
		leases := map[string]*report.Hold{}
		err := c.look(func(v core.View) {
			status, _ = v.Pool(c.namespace, path, q)
			for i := range status.Units {
				translate.AddUnit(leases, &status.Units[i], func(id string) leasehold.Labels {
					if l := v.Claim(c.namespace, id).Lease; l != nil {
						return l.Labels
					}
					return nil
				})
			}
		})
		if err != nil {
			return err
		}
		for _, h := range leases {
			h.Until = now
			sum.Add(h)
		}
		q.After = status.Next
	}
	return nil
}
