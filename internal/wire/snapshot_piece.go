package wire

import (
	"math"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// A pieceKind is a row of the table of what a snapshot has.
type pieceKind struct {
	name   string // for messages
	wide   bool   // it belongs to the whole state, and not to a namespace
	since  uint64 // the feature level that it came with
	fresh  func() any
	fields func(any, *tagged.Message)
}

// inSpace is the row of what belongs to a namespace, and ofAll of what does not.
func inSpace[T any](name string, fields func(*T, *tagged.Message)) pieceKind {
	return pieceKind{name: name, since: levelFirst, fresh: func() any { return new(T) },
		fields: func(value any, m *tagged.Message) { fields(value.(*T), m) }}
}

func ofAll[T any](name string, fields func(*T, *tagged.Message)) pieceKind {
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
	kindHead:         ofAll("head", headFields),
	kindSpace:        inSpace("namespace", spaceHeadFields),
	kindSession:      inSpace("session", coreSessionFields),
	kindResource:     inSpace("resource", resourceFields),
	kindClaim:        inSpace("claim", claimFields),
	kindEndedClaim:   inSpace("ended claim", endedClaimFields),
	kindEndedSession: inSpace("ended session", endedSessionFields),
	kindOutcome:      inSpace("outcome", outcomeFields),
	kindEvent:        inSpace("event", eventFields),
	kindRecord:       inSpace("record", recordFields),
	kindDefinition:   inSpace("definition", command.DescribeDefinition),
	kindAlarm:        inSpace("alarm", alarmFields),
	kindRestored:     ofAll("restored", restoredFields),
	kindShelf:        inSpace("shelf", shelfFields),
	kindVersion:      inSpace("version", versionFields),
	kindTotals:       ofAll("totals", totalsFields),
	kindMark:         inSpace("withdrawn id", markFields),
	kindChore:        inSpace("chore", choreFields),
	kindPolicy:       ofAll("policy", policyHeadFields),
	kindToken:        ofAll("token", command.DescribeToken),
	kindRole:         ofAll("role", command.DescribeRole),
	kindBinding:      ofAll("binding", command.DescribeBinding),
	kindQuota:        ofAll("quota", command.DescribeQuota),
	kindIssuer:       ofAll("issuer", command.DescribeIssuer),
	kindCertificate:  ofAll("certificate", command.DescribeCertificate),
	kindClaimOwner:   inSpace("claim owner", claimOwnerFields),
	kindRecordOwner:  inSpace("record owner", recordOwnerFields),
	kindRevocation:   ofAll("revocation", revocationFields),
	kindLoss:         ofAll("loss", lossFields),
	kindWithdrawal:   ofAll("withdrawal", withdrawalFields),
	kindMirror:       inSpace("mirror", mirrorFields),
	kindPoolUnit:     inSpace("pool unit", poolUnitFields),
	kindLearned:      inSpace("kind", learnedFields),
	kindTask:         inSpace("task", taskFields),
	kindUnitUse:      inSpace("unit use", unitUseFields),
	kindCalendar:     ofAll("calendar", calendarFields),
	kindReservation:  inSpace("reservation", reservationFields),
	kindSeries:       inSpace("series", seriesFields),
	kindQuietQueue:   inSpace("quiet queue", quietQueueFields),
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

// The enumerations of the dictionary and the core that no command has. An event that is no end has no How.
var (
	states   = choice(uint8(leasehold.Available), uint8(leasehold.Expired))
	hows     = choice(uint8(leasehold.Released), uint8(leasehold.Abandoned))
	maybeHow = choice(0, uint8(leasehold.Abandoned))
	kinds    = choice(uint8(leasehold.Queued), uint8(leasehold.ReservationCancelled))
	codes    = choice(uint8(leasehold.Held), uint8(leasehold.Refused))

	maybeAlarm = choice(0, uint8(leasehold.LateRenewal))
	taskStates = choice(uint8(leasehold.TaskTodo), uint8(leasehold.TaskFailed))
	chores     = choice(uint8(core.CollectSession), uint8(core.FollowDefinition))
)

func choice(first, last uint8) tagged.Choice { return tagged.Choice{First: first, Last: last} }

// maxListed bounds the lists of records that are short by nature, such as the rests of a resource.
const maxListed = math.MaxUint16
