package wire

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Answers that are remembered, so that a request which is sent again gets the first one. Each
// part of an answer may be missing, and most are.

func (m *message) outcome(v *core.Outcome) {
	m.text(1, "key", &v.Key)
	m.text(2, "subject", &v.Subject)
	m.time(3, "at", &v.At)
	maybe(m, 4, "lease", &v.Answer.Lease, m.lease)
	maybe(m, 5, "session", &v.Answer.Session, m.session)
	several(m, 6, "also", &v.Answer.Also, leasehold.MaxTogether, m.lease)
	maybe(m, 7, "waiter", &v.Answer.Waiter, m.waiter)
	maybe(m, 8, "definition", &v.Answer.Definition, m.definition)
	maybe(m, 9, "error", &v.Answer.Err, m.refusal)
	maybe(m, 10, "record", &v.Answer.Record, m.record)
	maybe(m, 11, "txn", &v.Answer.Txn, m.txnAnswer)
}

// lease is a lease as an answer showed it: times as they were then, and calendar moments, which
// are for people.
func (m *message) lease(v *leasehold.Lease) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "resource", &v.Resource)
	m.text(3, "id", &v.ID)
	m.text(4, "holder", &v.Holder)
	m.labels(5, "labels", &v.Labels)
	m.text(6, "reason", &v.Reason)
	m.text(7, "session", &v.Session)
	m.oneOf(8, "state", (*uint8)(&v.State), states)
	m.token(9, "token", &v.Token)
	m.token(10, "floor", &v.Floor)
	m.number(11, "slots", &v.Slots)
	m.names(12, "units", &v.Units)
	m.duration(13, "ttl", &v.TTL)
	m.duration(14, "hold limit", &v.HoldLimit)
	m.duration(15, "remaining", &v.Remaining)
	m.moment(16, "acquired", &v.Acquired)
	m.moment(17, "expires", &v.Expires)
	m.moment(18, "available at", &v.AvailableAt)
	m.revision(19, "revision", &v.Revision)
	maybe(m, 20, "after", &v.After, m.shownEnding)
	m.unsigned(21, "interventions", &v.Interventions)
	m.text(22, "foreign", &v.Foreign)
	m.text(23, "door", &v.Door)
	m.text(24, "note", &v.Note)
	m.moment(25, "noted", &v.Noted)
}

func (m *message) shownEnding(v *leasehold.Ending) {
	m.text(1, "id", &v.ID)
	m.text(2, "holder", &v.Holder)
	m.token(3, "token", &v.Token)
	m.oneOf(4, "how", (*uint8)(&v.How), hows)
	m.text(5, "by", &v.By)
	m.text(6, "reason", &v.Reason)
	m.moment(7, "at", &v.At)
	m.text(8, "foreign", &v.Foreign)
	m.duration(9, "ttl", &v.TTL)
}

func (m *message) session(v *leasehold.Session) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "id", &v.ID)
	m.duration(3, "ttl", &v.TTL)
	m.labels(4, "labels", &v.Labels)
	m.duration(5, "remaining", &v.Remaining)
	m.moment(6, "opened", &v.Opened)
	m.moment(7, "expires", &v.Expires)
	m.number(8, "claims", &v.Claims)
	m.unsigned(9, "interventions", &v.Interventions)
	m.names(10, "intervened", &v.Intervened)
}

func (m *message) waiter(v *leasehold.Waiter) {
	m.text(1, "namespace", &v.Namespace)
	m.text(2, "resource", &v.Resource)
	m.text(3, "id", &v.ID)
	m.text(4, "holder", &v.Holder)
	m.labels(5, "labels", &v.Labels)
	m.text(6, "reason", &v.Reason)
	m.text(7, "session", &v.Session)
	m.number(8, "slots", &v.Slots)
	m.number(9, "priority", &v.Priority)
	m.number(10, "position", &v.Position)
	m.moment(11, "since", &v.Since)
	m.moment(12, "until", &v.Until)
	m.duration(13, "forecast", &v.Forecast)
	m.text(14, "foreign", &v.Foreign)
	m.noForecastError(v.ForecastError)
}

// noForecastError refuses how far a forecast may be off: that is not remembered.
func (m *message) noForecastError(off time.Duration) {
	if off != 0 && m.fault == nil {
		(*codec)(m).fail("forecast error", "it is not remembered")
	}
}

func (m *message) refusal(v *leasehold.Error) {
	m.oneOf(1, "code", (*uint8)(&v.Code), codes)
	m.text(2, "message", &v.Message)
	maybe(m, 3, "lease in the way", &v.Lease, m.lease)
	m.number(4, "waiting", &v.Waiting)
	m.number(5, "position", &v.Position)
	m.duration(6, "forecast", &v.Forecast)
	several(m, 7, "cycle", &v.Cycle, maxListed, m.step)
	m.noForecastError(v.ForecastError)
}

// step is who waits for what in a cycle.
func (m *message) step(v *leasehold.Wait) {
	m.text(1, "holder", &v.Holder)
	m.text(2, "resource", &v.Resource)
}

// txnAnswer is what a transaction came to, or one that is nested in it.
func (m *message) txnAnswer(v *core.TxnAnswer) {
	m.flag(1, "succeeded", &v.Succeeded)
	m.revision(2, "revision", &v.Revision)
	several(m, 3, "results", &v.Results, leasehold.MaxOps, m.result)
}

func (m *message) result(v *core.TxnResult) {
	m.part()
	maybe(m, 1, "result record", &v.Record, m.record)
	m.number(2, "deleted", &v.Deleted)
	maybe(m, 3, "result lease", &v.Lease, m.lease)
	several(m, 4, "result also", &v.Also, leasehold.MaxTogether, m.lease)
	maybe(m, 5, "result waiter", &v.Waiter, m.waiter)
	maybe(m, 6, "result nested", &v.Txn, m.txnAnswer)
	// A request that is remembered reads nothing (see Txn.Validate), or answers would keep
	// whole pages for ten minutes.
	if v.Page != nil || v.Before != nil {
		(*codec)(m).fail("page", "what was read is not remembered")
	}
}
