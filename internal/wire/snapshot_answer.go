package wire

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Answers that are remembered, so that a request which is sent again gets the first one. Each
// part of an answer may be missing, and most are.

// outcome is the answer that a request got, with the parts that the first release knew.
func (c *codec) outcome(v *core.Outcome) {
	c.text("key", &v.Key)
	c.text("subject", &v.Subject)
	c.time("at", &v.At)
	if present(c, "lease", &v.Answer.Lease) {
		c.lease(v.Answer.Lease)
	}
	if present(c, "session", &v.Answer.Session) {
		c.session(v.Answer.Session)
	}
	list(c, "also", &v.Answer.Also, minLease, c.lease)
	if present(c, "waiter", &v.Answer.Waiter) {
		c.waiter(v.Answer.Waiter)
	}
	if present(c, "definition", &v.Answer.Definition) {
		c.definition(v.Answer.Definition)
	}
	if present(c, "error", &v.Answer.Err) {
		c.refusal(v.Answer.Err)
	}
}

// minLease is the least that a lease takes.
const minLease = 20

// lease is a lease as an answer showed it: times as they were then, and calendar moments, which
// are for people.
func (c *codec) lease(v *leasehold.Lease) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.labels("labels", &v.Labels)
	c.text("reason", &v.Reason)
	c.text("session", &v.Session)
	c.oneOf("state", (*uint8)(&v.State), states)
	c.token("token", &v.Token)
	c.token("floor", &v.Floor)
	c.number("slots", &v.Slots)
	c.names("units", &v.Units)
	c.duration("ttl", &v.TTL)
	c.duration("hold limit", &v.HoldLimit)
	c.duration("remaining", &v.Remaining)
	c.moment("acquired", &v.Acquired)
	c.moment("expires", &v.Expires)
	c.moment("available at", &v.AvailableAt)
	c.revision("revision", &v.Revision)
	if present(c, "after", &v.After) {
		c.shownEnding(v.After)
	}
	c.unsigned("interventions", &v.Interventions)
	c.text("foreign", &v.Foreign)
	c.text("door", &v.Door)
	c.text("note", &v.Note)
	c.moment("noted", &v.Noted)
}

func (c *codec) shownEnding(v *leasehold.Ending) {
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.oneOf("how", (*uint8)(&v.How), hows)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.moment("at", &v.At)
	c.text("foreign", &v.Foreign)
	c.duration("ttl", &v.TTL)
}

func (c *codec) session(v *leasehold.Session) {
	c.text("namespace", &v.Namespace)
	c.text("id", &v.ID)
	c.duration("ttl", &v.TTL)
	c.labels("labels", &v.Labels)
	c.duration("remaining", &v.Remaining)
	c.moment("opened", &v.Opened)
	c.moment("expires", &v.Expires)
	c.number("claims", &v.Claims)
	c.unsigned("interventions", &v.Interventions)
	c.names("intervened", &v.Intervened)
}

func (c *codec) waiter(v *leasehold.Waiter) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.labels("labels", &v.Labels)
	c.text("reason", &v.Reason)
	c.text("session", &v.Session)
	c.number("slots", &v.Slots)
	c.number("priority", &v.Priority)
	c.number("position", &v.Position)
	c.moment("since", &v.Since)
	c.moment("until", &v.Until)
	c.duration("forecast", &v.Forecast)
	c.text("foreign", &v.Foreign)
	c.noForecastError(v.ForecastError)
}

// noForecastError refuses how far a forecast may be off: that is not remembered.
func (c *codec) noForecastError(off time.Duration) {
	if off != 0 && c.fault == nil {
		c.fail("forecast error", "it is not remembered")
	}
}

func (c *codec) refusal(v *leasehold.Error) {
	c.oneOf("code", (*uint8)(&v.Code), codes)
	c.text("message", &v.Message)
	if present(c, "lease in the way", &v.Lease) {
		c.lease(v.Lease)
	}
	c.number("waiting", &v.Waiting)
	c.number("position", &v.Position)
	c.duration("forecast", &v.Forecast)
	c.noForecastError(v.ForecastError)
	list(c, "cycle", &v.Cycle, minWait, func(w *leasehold.Wait) {
		c.text("holder", &w.Holder)
		c.text("resource", &w.Resource)
	})
}

// minWait is the least that a step of a cycle takes.
const minWait = 2

// recordOutcome is what an outcome about records has in addition. An outcome with none of it is
// written with the older kind.
func (c *codec) recordOutcome(v *core.Outcome) {
	if present(c, "record", &v.Answer.Record) {
		c.namedValue(v.Answer.Record)
	}
	if present(c, "txn", &v.Answer.Txn) {
		c.txnAnswer(v.Answer.Txn, 0)
	}
	if v.Answer.Record == nil && v.Answer.Txn == nil {
		c.fail("txn", "it is an outcome about no record")
	}
}

// minResult is the least that a result takes: no record, nothing deleted, no lease.
const minResult = 4

// maxNesting is how deep transactions may be nested. The core allows fewer operations than that.
const maxNesting = 128

// txnAnswer is what a transaction came to, or one that is nested in it, at a depth.
func (c *codec) txnAnswer(v *core.TxnAnswer, depth int) {
	if depth > maxNesting {
		c.fail("nested", "it is nested too deep")
		return
	}
	c.flag("succeeded", &v.Succeeded)
	c.revision("revision", &v.Revision)
	list(c, "results", &v.Results, minResult, func(r *core.TxnResult) {
		if present(c, "result record", &r.Record) {
			c.namedValue(r.Record)
		}
		c.number("deleted", &r.Deleted)
		if present(c, "result lease", &r.Lease) {
			c.lease(r.Lease)
		}
		list(c, "result also", &r.Also, minLease, c.lease)
		// A request that is remembered reads nothing (see Txn.Validate), or answers would keep
		// whole pages for ten minutes.
		if r.Page != nil || r.Before != nil {
			c.fail("page", "what was read is not remembered")
		}
		if present(c, "result waiter", &r.Waiter) {
			c.waiter(r.Waiter)
		}
		if present(c, "result nested", &r.Txn) {
			c.txnAnswer(r.Txn, depth+1)
		}
	})
}
