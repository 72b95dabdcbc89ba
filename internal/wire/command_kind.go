package wire

import (
	"slices"

	"github.com/leasehold/leasehold/internal/core"
)

// The kinds of commands. A number is given once and for ever.
const (
	kindOrigin       = 0 // no command: whose the next one is
	kindOpenSession  = 1
	kindRenewSession = 2
	kindCloseSession = 3
	kindAcquire      = 4
	kindRenew        = 5
	kindRelease      = 6
	kindChange       = 7
	kindBreak        = 8
	kindTick         = 9
	kindLead         = 10
	kindPutRecord    = 11
	kindDeleteRecord = 12
	kindTxn          = 13
	kindAsk          = 14
	kindMove         = 15
	kindDefine       = 16
	kindUndefine     = 17
	kindAcknowledge  = 18

	// A break of all who share a resource, or of a waiter only. Others are as they were before.
	kindBreakExact = 26

	// A put record, or a txn, with a large value, a version to go back to, or a number of
	// versions to keep. Others are as they were before there were any.
	kindPutVersion  = 19
	kindTxnVersions = 20

	kindSetCaps = 21

	// A release that names a session, or withdraws. Others are as they were before.
	kindWithdraw = 22

	// An acquire, a txn or a change with a foreign id, or an acquire or a txn for a lease that may
	// expire. Others are as they were before.
	kindAcquireForeign = 23
	kindTxnForeign     = 24
	kindChangeForeign  = 25

	// A define that changes a part, or that may be refused. Others are as they were before.
	kindDefineChange = 27

	// A close session for a holder that died. Others are as they were before.
	kindAbandonSession = 28

	kindEndQuarantine = 29

	kindRenewNote = 30 // a renew with a note

	kindAcknowledgeAlarm = 31

	// A put record that says who wanted it and why. Others are as they were before.
	kindPutReason = 32

	// A change in which the holder says more about itself.
	kindChangeAbout = 33

	kindRaiseTokens = 34

	kindChangeAccess = 35
	kindAsker        = 36 // no command: who was proven to ask for the next one

	// A put record with a link, or that keeps the one there is. Others are as they were before.
	kindPutLink = 37

	// A txn that nests others, links records, keeps parts of them, answers what was there, or compares, selects or
	// orders a range. Others are as they were before.
	kindTxnNested = 38

	// An acquire that selects units. Others are as they were before.
	kindAcquireSelect = 39

	// A define with limits of units. Others are as they were before.
	kindDefineLimits = 40

	kindSetUnits = 41
	kindDrain    = 42

	// An acquire of a lease that nobody renews, whose TTL is learned. Others are as they were before.
	kindAcquireUnattended = 50

	kindPutTask    = 52
	kindFinishTask = 53

	// An acquire of a task. Others are as they were before.
	kindAcquireTask = 54

	kindReportUse = 47

	// A define of a pool with rules for idle leases, with or without limits. Others are as they were before.
	kindDefineIdle = 48

	kindReserve           = 43
	kindCancelReservation = 44

	// An acquire that claims a reservation, and a define that says what happens when one begins. Others are as they
	// were before.
	kindAcquireReserved = 45
	kindDefineStart     = 46

	// A define of a pool with backfill. Others are as they were before.
	kindDefineBackfill = 57

	kindTickShort = 58 // a tick while room is short
)

var commandNames = [...]string{
	kindOrigin:      "origin",
	kindOpenSession: "open session", kindRenewSession: "renew session", kindCloseSession: "close session",
	kindAcquire: "acquire", kindRenew: "renew", kindRelease: "release", kindChange: "change", kindBreak: "break",
	kindBreakExact: "break exact",
	kindTick:       "tick", kindLead: "lead",
	kindPutRecord: "put record", kindDeleteRecord: "delete record", kindTxn: "txn", kindAsk: "ask", kindMove: "move",
	kindDefine: "define", kindUndefine: "undefine", kindAcknowledge: "acknowledge",
	kindPutVersion: "put version", kindTxnVersions: "txn versions",
	kindSetCaps: "set caps", kindWithdraw: "withdraw",
	kindAcquireForeign: "acquire foreign", kindTxnForeign: "txn foreign", kindChangeForeign: "change foreign",
	kindAbandonSession: "abandon session", kindEndQuarantine: "end quarantine", kindPutReason: "put reason",
	kindChangeAbout: "change about", kindRenewNote: "renew note", kindDefineChange: "define change",
	kindAcknowledgeAlarm: "acknowledge alarm", kindRaiseTokens: "raise tokens",
	kindChangeAccess: "change access", kindAsker: "asker",
	kindPutLink: "put link", kindTxnNested: "txn nested",
	kindAcquireSelect: "acquire select", kindDefineLimits: "define limits",
	kindSetUnits: "set units", kindDrain: "drain",
	kindAcquireUnattended: "acquire unattended",
	kindPutTask:           "put task", kindFinishTask: "finish task", kindAcquireTask: "acquire task",
	kindReportUse: "report use", kindDefineIdle: "define idle",
	kindReserve: "reserve", kindCancelReservation: "cancel reservation",
	kindAcquireReserved: "acquire reserved", kindDefineStart: "define start",
	kindDefineBackfill: "define backfill", kindTickShort: "tick short",
}

// commandLevel is the feature level that a kind of command came with: a newer one has its case
// here.
func commandLevel(kind uint64) uint64 {
	switch kind {
	default:
		return levelFirst
	}
}

// kindOf returns the number under which a command is written: the oldest kind that has all its
// fields.
func kindOf(command core.Command) uint64 {
	switch v := command.(type) {
	case *core.OpenSession:
		return kindOpenSession
	case *core.RenewSession:
		return kindRenewSession
	case *core.CloseSession:
		return closeKind(v)
	case *core.Acquire:
		return acquireKind(v)
	case *core.Renew:
		return renewKind(v)
	case *core.Release:
		if v.Session != "" || v.Withdraw {
			return kindWithdraw
		}
		return kindRelease
	case *core.Change:
		return changeKind(v)
	case *core.Break:
		if v.All || v.Waiting {
			return kindBreakExact
		}
		return kindBreak
	case *core.Tick:
		return tickKind(v)
	case *core.Lead:
		return kindLead
	case *core.PutRecord:
		return putKind(v)
	case *core.DeleteRecord:
		return kindDeleteRecord
	case *core.Txn:
		return txnKind(v)
	case *core.Ask:
		return kindAsk
	case *core.Move:
		return kindMove
	case *core.Define:
		return defineKind(v)
	case *core.Undefine:
		return kindUndefine
	case *core.SetUnits, *core.Drain, *core.ReportUse:
		return poolKind(v)
	case *core.PutTask:
		return kindPutTask
	case *core.FinishTask:
		return kindFinishTask
	case *core.Acknowledge:
		return kindAcknowledge
	case *core.AcknowledgeAlarm:
		return kindAcknowledgeAlarm
	case *core.SetCaps:
		return kindSetCaps
	case *core.EndQuarantine:
		return kindEndQuarantine
	case *core.RaiseTokens:
		return kindRaiseTokens
	case *core.ChangeAccess:
		return kindChangeAccess
	}
	return reservationKind(command)
}

// closeKind is kindOf for a close session.
func closeKind(v *core.CloseSession) uint64 {
	if v.Abandon {
		return kindAbandonSession
	}
	return kindCloseSession
}

// changeKind is kindOf for a change.
func changeKind(v *core.Change) uint64 {
	switch {
	case v.About != nil:
		return kindChangeAbout
	case v.Foreign != "":
		return kindChangeForeign
	}
	return kindChange
}

// putKind is kindOf for a put record.
func putKind(v *core.PutRecord) uint64 {
	switch {
	case v.Link != nil || v.KeepLink:
		return kindPutLink
	case v.By != "" || v.Reason != "":
		return kindPutReason
	case v.Large != nil || v.From != 0 || v.Keep != 0:
		return kindPutVersion
	}
	return kindPutRecord
}

func renewKind(v *core.Renew) uint64 {
	if v.Note != nil {
		return kindRenewNote
	}
	return kindRenew
}

func defineKind(v *core.Define) uint64 {
	switch {
	case v.Definition.Backfill:
		return kindDefineBackfill
	case v.Definition.OnReservation != 0:
		return kindDefineStart
	case hasIdle(&v.Definition):
		return kindDefineIdle
	case len(v.Definition.Limits) > 0:
		return kindDefineLimits
	case v.IsChange():
		return kindDefineChange
	}
	return kindDefine
}

func acquireKind(v *core.Acquire) uint64 {
	switch {
	case v.Task:
		return kindAcquireTask
	case v.Reservation != "":
		return kindAcquireReserved
	case v.Pick == core.TTLUnattended:
		return kindAcquireUnattended
	case v.Selects():
		return kindAcquireSelect
	case isForeign(v):
		return kindAcquireForeign
	}
	return kindAcquire
}

// txnKind is kindOf for a transaction. The newest of what its operations need decides for all
// of them.
func txnKind(v *core.Txn) uint64 {
	has := func(is func(core.Op) bool) bool {
		return slices.ContainsFunc(v.Then, is) || slices.ContainsFunc(v.Else, is)
	}
	switch {
	case has(func(o core.Op) bool { return o.IsNew() }) ||
		slices.ContainsFunc(v.If, func(c core.Compare) bool { return c.IsNew() }):
		return kindTxnNested
	case has(acquiresForeign):
		return kindTxnForeign
	case has(hasVersion):
		return kindTxnVersions
	}
	return kindTxn
}

func isForeign(v *core.Acquire) bool { return v.Foreign != "" || v.MayExpire }

func acquiresForeign(o core.Op) bool { return o.Acquire != nil && isForeign(o.Acquire) }

func hasVersion(o core.Op) bool { return o.Large != nil || o.From != 0 || o.Keep != 0 }

func tickKind(v *core.Tick) uint64 {
	if v.Short {
		return kindTickShort
	}
	return kindTick
}

// newCommand returns an empty command of a kind to read into; nil for a kind that is no
// command.
func newCommand(kind uint64) core.Command {
	switch kind {
	case kindOpenSession:
		return new(core.OpenSession)
	case kindRenewSession:
		return new(core.RenewSession)
	case kindCloseSession:
		return new(core.CloseSession)
	case kindAbandonSession:
		return &core.CloseSession{Abandon: true}
	case kindAcquire, kindAcquireForeign, kindAcquireSelect, kindAcquireReserved, kindAcquireUnattended:
		return new(core.Acquire)
	case kindAcquireTask:
		return &core.Acquire{Task: true}
	case kindRenew:
		return new(core.Renew)
	case kindRenewNote:
		return &core.Renew{Note: new(string)}
	case kindRelease, kindWithdraw:
		return new(core.Release)
	case kindChange, kindChangeForeign, kindChangeAbout:
		return new(core.Change)
	case kindBreak, kindBreakExact:
		return new(core.Break)
	case kindTick:
		return new(core.Tick)
	case kindTickShort:
		return &core.Tick{Short: true}
	case kindLead:
		return new(core.Lead)
	case kindPutRecord, kindPutVersion, kindPutReason, kindPutLink:
		return new(core.PutRecord)
	case kindDeleteRecord:
		return new(core.DeleteRecord)
	case kindTxn, kindTxnVersions, kindTxnForeign, kindTxnNested:
		return new(core.Txn)
	case kindAsk:
		return new(core.Ask)
	case kindMove:
		return new(core.Move)
	case kindDefine, kindDefineChange, kindDefineLimits, kindDefineIdle, kindDefineStart, kindDefineBackfill:
		return new(core.Define)
	case kindUndefine:
		return new(core.Undefine)
	case kindSetUnits, kindDrain, kindReportUse:
		return newPoolCommand(kind)
	case kindPutTask:
		return new(core.PutTask)
	case kindFinishTask:
		return new(core.FinishTask)
	case kindAcknowledge:
		return new(core.Acknowledge)
	case kindAcknowledgeAlarm:
		return new(core.AcknowledgeAlarm)
	case kindSetCaps:
		return new(core.SetCaps)
	case kindEndQuarantine:
		return new(core.EndQuarantine)
	case kindRaiseTokens:
		return new(core.RaiseTokens)
	case kindChangeAccess:
		return new(core.ChangeAccess)
	}
	return newReservation(kind)
}
