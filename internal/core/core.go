// Package core decides who holds what. It is a state machine and nothing else:
// same state, same commands, same stamp in; same state, same answers out, on
// every node, for ever.
//
// Time is an argument. A lease therefore expires at a position in the log, not
// at a moment on somebody's wall: it is over when its deadline is at or before
// the stamp of the command that looks, collected or not.
//
// What decides is in packages below, where nobody else can import it. This one puts
// them together, and has the names that the rest of the tree knows.
package core

import (
	"iter"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/internal/alarm"
	"github.com/leasehold/leasehold/internal/core/internal/area"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/internal/learn"
	"github.com/leasehold/leasehold/internal/core/internal/records"
	"github.com/leasehold/leasehold/internal/core/internal/reserve"
	"github.com/leasehold/leasehold/internal/core/internal/task"
	"github.com/leasehold/leasehold/internal/core/internal/unit"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// State is everything that is known. Only its Apply changes it.
type State = kernel.State

// subjects are what the kernel is put together with.
var subjects = &kernel.Subjects{
	NewAreas:        area.New,
	NewTasks:        task.New,
	NewPools:        unit.New,
	NewAlarms:       alarm.New,
	NewReservations: reserve.New,
	NewLearning:     learn.New,
	NewRecords:      records.New,
}

// New returns the state before the first command of a log. The log raises its level.
func New() *State { return NewAt(OldestLevel) }

// NewAt returns the state before the first command of a log that begins at a level.
func NewAt(level Level) *State { return kernel.NewAt(level, subjects) }

// NewMachine returns what NewAt does. Inlined it would name the State to who calls it.
//
//go:noinline
func NewMachine(level Level) Machine { return NewAt(level) }

// Restore makes a state from the pieces of a snapshot.
func Restore(pieces iter.Seq2[Piece, error]) (*State, error) { return kernel.Restore(pieces, subjects) }

// What a state is seen through, and what it is asked.
type (
	Machine          = kernel.Machine
	View             = kernel.View
	Result           = kernel.Result
	From             = kernel.From
	Counts           = kernel.Counts
	Totals           = kernel.Totals
	Use              = kernel.Use
	History          = kernel.History
	Filter           = kernel.Filter
	Pattern          = kernel.Pattern
	LabelPattern     = kernel.LabelPattern
	ListQuery        = kernel.ListQuery
	AlarmQuery       = kernel.AlarmQuery
	PoolQuery        = kernel.PoolQuery
	ReservationQuery = kernel.ReservationQuery
	TaskQuery        = kernel.TaskQuery
)

// AllOf is the N of a revision's last event and beyond: resuming after it skips the whole revision.
const AllOf = kernel.AllOf

// The pieces of a snapshot.
type (
	Piece        = kernel.Piece
	Head         = kernel.Head
	SpaceHead    = kernel.SpaceHead
	Resource     = kernel.Resource
	More         = kernel.More
	Ending       = kernel.Ending
	Shares       = kernel.Shares
	Rest         = kernel.Rest
	Mark         = kernel.Mark
	Claim        = kernel.Claim
	Session      = kernel.Session
	Terms        = kernel.Terms
	Wait         = kernel.Wait
	EndedClaim   = kernel.EndedClaim
	EndedSession = kernel.EndedSession
	Outcome      = kernel.Outcome
	Chore        = kernel.Chore
	ChoreKind    = kernel.ChoreKind
	Left         = kernel.Left
	Touched      = kernel.Touched
	LinkedRecord = kernel.LinkedRecord
	Quarantine   = kernel.Quarantine
	Withdrawal   = kernel.Withdrawal
	Restored     = kernel.Restored
	Restoration  = kernel.Restoration
	PolicyHead   = kernel.PolicyHead
	ClaimOwner   = kernel.ClaimOwner
	RecordOwner  = kernel.RecordOwner
	Revocation   = kernel.Revocation
	Loss         = kernel.Loss
	Alarm        = alarm.Alarm
	Kind         = learn.Kind
	Mirror       = records.Mirror
	Unit         = kernel.Unit
	UnitUse      = unit.UnitUse
	QuietQueue   = unit.QuietQueue
	Calendar     = kernel.Calendar
)

// What a chore is about.
const (
	CollectSession   = kernel.CollectSession
	FollowDefinition = kernel.FollowDefinition
	HandOver         = kernel.HandOver
)

// NewPattern returns the pattern that a text says.
func NewPattern(text string) Pattern { return kernel.NewPattern(text) }

// KindName returns the kind of a lease by what it says of itself; empty if it says nothing.
func KindName(labels leasehold.Labels, holder string) string { return usage.KindName(labels, holder) }

// LargeOf returns the large values that a command would name.
func LargeOf(c Command) []leasehold.Large { return command.LargeOf(c) }

// KeepsOrEnds reports whether a holder keeps what it has by a command, or gives it back.
func KeepsOrEnds(c Command) bool { return command.KeepsOrEnds(c) }

// Crowded reports whether something was refused because records are being collected: a moment later it is possible.
func Crowded(err error) bool { return records.Crowded(err) }

// PrefixEnd returns the end of the range of all paths that begin with prefix; empty if the range has no end.
func PrefixEnd(prefix string) string { return kernel.PrefixEnd(prefix) }
