package wire

import (
	"math"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// A pieceKind is a row of the table of what a snapshot has.
type pieceKind struct {
	name   string // for messages
	wide   bool   // it belongs to the whole state, and not to a namespace
	since  uint64 // the feature level that it came with
	fresh  func() any
	fields func(*message, any)
}

// inSpace is the row of what belongs to a namespace, and ofAll of what does not.
func inSpace[T any](name string, fields func(*message, *T)) pieceKind {
	return pieceKind{name: name, since: levelFirst, fresh: func() any { return new(T) },
		fields: func(m *message, value any) { fields(m, value.(*T)) }}
}

func ofAll[T any](name string, fields func(*message, *T)) pieceKind {
	row := inSpace(name, fields)
	row.wide = true
	return row
}

// The kinds of records. They go up without a gap, and a number is given once and for ever: add at the end only.
const (
	kindEnd = iota
	kindHead
	kindSpace
	kindSession
	kindResource
	kindClaim
	kindEndedClaim
	kindEndedSession
	kindOutcome
	kindEvent
	kindRecord
	kindDefinition
	kindAlarm
	kindRestored
	kindShelf
	kindVersion
	kindTotals
	kindMark
	kindChore
	kindPolicy
	kindToken
	kindRole
	kindBinding
	kindQuota
	kindIssuer
	kindCertificate
	kindClaimOwner
	kindRecordOwner
	kindRevocation
	kindLoss
	kindWithdrawal
	kindMirror
	kindPoolUnit
	kindLearned
	kindTask
	kindUnitUse
	kindCalendar
	kindReservation
	kindSeries
	kindQuietQueue

	kindsOfRecords // how many there are
)

// The table of all kinds. That of the end is no piece.
var pieceKinds = [kindsOfRecords]pieceKind{
	kindEnd:          {name: "end", wide: true, since: levelFirst},
	kindHead:         ofAll("head", (*message).head),
	kindSpace:        inSpace("namespace", (*message).spaceHead),
	kindSession:      inSpace("session", (*message).coreSession),
	kindResource:     inSpace("resource", (*message).resource),
	kindClaim:        inSpace("claim", (*message).claim),
	kindEndedClaim:   inSpace("ended claim", (*message).endedClaim),
	kindEndedSession: inSpace("ended session", (*message).endedSession),
	kindOutcome:      inSpace("outcome", (*message).outcome),
	kindEvent:        inSpace("event", (*message).event),
	kindRecord:       inSpace("record", (*message).record),
	kindDefinition:   inSpace("definition", (*message).definition),
	kindAlarm:        inSpace("alarm", (*message).alarm),
	kindRestored:     ofAll("restored", (*message).restored),
	kindShelf:        inSpace("shelf", (*message).shelf),
	kindVersion:      inSpace("version", (*message).version),
	kindTotals:       ofAll("totals", (*message).totals),
	kindMark:         inSpace("withdrawn id", (*message).mark),
	kindChore:        inSpace("chore", (*message).chore),
	kindPolicy:       ofAll("policy", (*message).policyHead),
	kindToken:        ofAll("token", (*message).accessToken),
	kindRole:         ofAll("role", (*message).accessRole),
	kindBinding:      ofAll("binding", (*message).accessBinding),
	kindQuota:        ofAll("quota", (*message).accessQuota),
	kindIssuer:       ofAll("issuer", (*message).accessIssuer),
	kindCertificate:  ofAll("certificate", (*message).accessCertificate),
	kindClaimOwner:   inSpace("claim owner", (*message).claimOwner),
	kindRecordOwner:  inSpace("record owner", (*message).recordOwner),
	kindRevocation:   ofAll("revocation", (*message).revocation),
	kindLoss:         ofAll("loss", (*message).loss),
	kindWithdrawal:   ofAll("withdrawal", (*message).withdrawal),
	kindMirror:       inSpace("mirror", (*message).mirror),
	kindPoolUnit:     inSpace("pool unit", (*message).poolUnit),
	kindLearned:      inSpace("kind", (*message).learned),
	kindTask:         inSpace("task", (*message).task),
	kindUnitUse:      inSpace("unit use", (*message).unitUse),
	kindCalendar:     ofAll("calendar", (*message).calendar),
	kindReservation:  inSpace("reservation", (*message).reservation),
	kindSeries:       inSpace("series", (*message).series),
	kindQuietQueue:   inSpace("quiet queue", (*message).quietQueue),
}

// kindOf returns the number under which a piece is written; kindEnd if it has none.
func kindOf(value any) uint64 {
	switch value.(type) {
	case *core.Head:
		return kindHead
	case *core.SpaceHead:
		return kindSpace
	case *core.Session:
		return kindSession
	case *core.Resource:
		return kindResource
	case *core.Claim:
		return kindClaim
	case *core.EndedClaim:
		return kindEndedClaim
	case *core.EndedSession:
		return kindEndedSession
	case *core.Outcome:
		return kindOutcome
	case *leasehold.Event:
		return kindEvent
	case *leasehold.Record:
		return kindRecord
	case *leasehold.Definition:
		return kindDefinition
	case *core.Alarm:
		return kindAlarm
	case *core.Restored:
		return kindRestored
	case *core.Shelf:
		return kindShelf
	case *leasehold.Version:
		return kindVersion
	case *core.Totals:
		return kindTotals
	case *core.Mark:
		return kindMark
	case *core.Chore:
		return kindChore
	case *core.Mirror:
		return kindMirror
	case *core.Kind:
		return kindLearned
	case *leasehold.Task:
		return kindTask
	}
	return kindOfOthers(value)
}

// kindOfOthers is kindOf for pools, reservations and access.
func kindOfOthers(value any) uint64 {
	switch value.(type) {
	case *pool.Unit:
		return kindPoolUnit
	case *core.UnitUse:
		return kindUnitUse
	case *core.QuietQueue:
		return kindQuietQueue
	case *core.Calendar:
		return kindCalendar
	case *reservation.Reservation:
		return kindReservation
	case *reservation.Series:
		return kindSeries
	case *core.PolicyHead:
		return kindPolicy
	case *access.Token:
		return kindToken
	case *access.Role:
		return kindRole
	case *access.Binding:
		return kindBinding
	case *access.Quota:
		return kindQuota
	case *access.Issuer:
		return kindIssuer
	case *access.Certificate:
		return kindCertificate
	case *core.ClaimOwner:
		return kindClaimOwner
	case *core.RecordOwner:
		return kindRecordOwner
	case *core.Revocation:
		return kindRevocation
	case *core.Loss:
		return kindLoss
	case *core.Withdrawal:
		return kindWithdrawal
	}
	return kindEnd
}

// maxListed bounds the lists of records that are short by nature, such as the rests of a resource.
const maxListed = math.MaxUint16
