package wire

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// Answers that are remembered, so that a request which is sent again gets the first one. Each
// part of an answer may be missing, and most are.

func outcomeFields(v *core.Outcome, m *tagged.Message) {
	m.Text(1, "key", &v.Key)
	m.Text(2, "subject", &v.Subject)
	m.Signed(3, "at", (*int64)(&v.At))
	tagged.Maybe(m, 4, "lease", &v.Answer.Lease, tagged.Of(m, leaseFields))
	tagged.Maybe(m, 5, "session", &v.Answer.Session, tagged.Of(m, sessionFields))
	tagged.Several(m, 6, "also", &v.Answer.Also, leasehold.MaxTogether, tagged.Of(m, leaseFields))
	tagged.Maybe(m, 7, "waiter", &v.Answer.Waiter, tagged.Of(m, waiterFields))
	tagged.Maybe(m, 8, "definition", &v.Answer.Definition, tagged.Of(m, command.DescribeDefinition))
	tagged.Maybe(m, 9, "error", &v.Answer.Err, tagged.Of(m, refusalFields))
	tagged.Maybe(m, 10, "record", &v.Answer.Record, tagged.Of(m, recordFields))
	tagged.Maybe(m, 11, "txn", &v.Answer.Txn, tagged.Of(m, txnAnswerFields))
}

// lease is a lease as an answer showed it: times as they were then, and calendar moments, which
// are for people.
func leaseFields(v *leasehold.Lease, m *tagged.Message) {
	m.Text(1, "namespace", &v.Namespace)
	m.Text(2, "resource", &v.Resource)
	m.Text(3, "id", &v.ID)
	m.Text(4, "holder", &v.Holder)
	m.Labels(5, "labels", &v.Labels)
	m.Text(6, "reason", &v.Reason)
	m.Text(7, "session", &v.Session)
	m.OneOf(8, "state", (*uint8)(&v.State), states)
	m.Token(9, "token", &v.Token)
	m.Token(10, "floor", &v.Floor)
	m.Number(11, "slots", &v.Slots)
	m.Names(12, "units", &v.Units)
	m.Duration(13, "ttl", &v.TTL)
	m.Duration(14, "hold limit", &v.HoldLimit)
	m.Duration(15, "remaining", &v.Remaining)
	m.Moment(16, "acquired", &v.Acquired)
	m.Moment(17, "expires", &v.Expires)
	m.Moment(18, "available at", &v.AvailableAt)
	m.Revision(19, "revision", &v.Revision)
	tagged.Maybe(m, 20, "after", &v.After, tagged.Of(m, shownEndingFields))
	m.Unsigned(21, "interventions", &v.Interventions)
	m.Text(22, "foreign", &v.Foreign)
	m.Text(23, "door", &v.Door)
	m.Text(24, "note", &v.Note)
	m.Moment(25, "noted", &v.Noted)
}

func shownEndingFields(v *leasehold.Ending, m *tagged.Message) {
	m.Text(1, "id", &v.ID)
	m.Text(2, "holder", &v.Holder)
	m.Token(3, "token", &v.Token)
	m.OneOf(4, "how", (*uint8)(&v.How), hows)
	m.Text(5, "by", &v.By)
	m.Text(6, "reason", &v.Reason)
	m.Moment(7, "at", &v.At)
	m.Text(8, "foreign", &v.Foreign)
	m.Duration(9, "ttl", &v.TTL)
}

func sessionFields(v *leasehold.Session, m *tagged.Message) {
	m.Text(1, "namespace", &v.Namespace)
	m.Text(2, "id", &v.ID)
	m.Duration(3, "ttl", &v.TTL)
	m.Labels(4, "labels", &v.Labels)
	m.Duration(5, "remaining", &v.Remaining)
	m.Moment(6, "opened", &v.Opened)
	m.Moment(7, "expires", &v.Expires)
	m.Number(8, "claims", &v.Claims)
	m.Unsigned(9, "interventions", &v.Interventions)
	m.Names(10, "intervened", &v.Intervened)
}

func waiterFields(v *leasehold.Waiter, m *tagged.Message) {
	m.Text(1, "namespace", &v.Namespace)
	m.Text(2, "resource", &v.Resource)
	m.Text(3, "id", &v.ID)
	m.Text(4, "holder", &v.Holder)
	m.Labels(5, "labels", &v.Labels)
	m.Text(6, "reason", &v.Reason)
	m.Text(7, "session", &v.Session)
	m.Number(8, "slots", &v.Slots)
	m.Number(9, "priority", &v.Priority)
	m.Number(10, "position", &v.Position)
	m.Moment(11, "since", &v.Since)
	m.Moment(12, "until", &v.Until)
	m.Duration(13, "forecast", &v.Forecast)
	m.Text(14, "foreign", &v.Foreign)
	noForecastError(v.ForecastError, m)
}

// noForecastError refuses how far a forecast may be off: that is not remembered.
func noForecastError(off time.Duration, m *tagged.Message) {
	if off != 0 && m.Fault == nil {
		m.Fail("forecast error", "it is not remembered")
	}
}

func refusalFields(v *leasehold.Error, m *tagged.Message) {
	m.OneOf(1, "code", (*uint8)(&v.Code), codes)
	m.Text(2, "message", &v.Message)
	tagged.Maybe(m, 3, "lease in the way", &v.Lease, tagged.Of(m, leaseFields))
	m.Number(4, "waiting", &v.Waiting)
	m.Number(5, "position", &v.Position)
	m.Duration(6, "forecast", &v.Forecast)
	tagged.Several(m, 7, "cycle", &v.Cycle, maxListed, tagged.Of(m, stepFields))
	noForecastError(v.ForecastError, m)
}

// step is who waits for what in a cycle.
func stepFields(v *leasehold.Wait, m *tagged.Message) {
	m.Text(1, "holder", &v.Holder)
	m.Text(2, "resource", &v.Resource)
}

// txnAnswer is what a transaction came to, or one that is nested in it.
func txnAnswerFields(v *core.TxnAnswer, m *tagged.Message) {
	m.Flag(1, "succeeded", &v.Succeeded)
	m.Revision(2, "revision", &v.Revision)
	tagged.Several(m, 3, "results", &v.Results, leasehold.MaxOps, tagged.Of(m, resultFields))
}

func resultFields(v *core.TxnResult, m *tagged.Message) {
	m.Part()
	tagged.Maybe(m, 1, "result record", &v.Record, tagged.Of(m, recordFields))
	m.Number(2, "deleted", &v.Deleted)
	tagged.Maybe(m, 3, "result lease", &v.Lease, tagged.Of(m, leaseFields))
	tagged.Several(m, 4, "result also", &v.Also, leasehold.MaxTogether, tagged.Of(m, leaseFields))
	tagged.Maybe(m, 5, "result waiter", &v.Waiter, tagged.Of(m, waiterFields))
	tagged.Maybe(m, 6, "result nested", &v.Txn, tagged.Of(m, txnAnswerFields))
	// A request that is remembered reads nothing (see Txn.Validate), or answers would keep
	// whole pages for ten minutes.
	if v.Page != nil || v.Before != nil {
		m.Fail("page", "what was read is not remembered")
	}
}
