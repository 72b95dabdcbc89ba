package core

import (
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/record"
	"github.com/leasehold/leasehold/internal/core/timeline"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// Time is cluster time.
type Time = timeline.Time

// Those who use the core make commands and read answers in its name. What these are is in
// package command, and what a read of records is in package record.

// The commands, and what comes with them.
type (
	Command       = command.Command
	Verb          = command.Verb
	Request       = command.Request
	OpenSession   = command.OpenSession
	RenewSession  = command.RenewSession
	CloseSession  = command.CloseSession
	Acquire       = command.Acquire
	Item          = command.Item
	TTLPick       = command.TTLPick
	Renew         = command.Renew
	Release       = command.Release
	Change        = command.Change
	About         = command.About
	Break         = command.Break
	Ask           = command.Ask
	Move          = command.Move
	Acknowledge   = command.Acknowledge
	Define        = command.Define
	Undefine      = command.Undefine
	SetUnits      = command.SetUnits
	HostUnit      = command.HostUnit
	Drain         = command.Drain
	PutTask       = command.PutTask
	FinishTask    = command.FinishTask
	ReportUse     = command.ReportUse
	UnitReport    = command.UnitReport
	UnitProcess   = command.UnitProcess
	Reserve       = command.Reserve
	SetCaps       = command.SetCaps
	EndQuarantine = command.EndQuarantine
	RaiseTokens   = command.RaiseTokens
	PutRecord     = command.PutRecord
	DeleteRecord  = command.DeleteRecord
	Fence         = command.Fence
	Txn           = command.Txn
	Compare       = command.Compare
	What          = command.What
	Relation      = command.Relation
	Op            = command.Op
	Do            = command.Do
	Link          = command.Link
	Tick          = command.Tick
	Lead          = command.Lead
	Level         = command.Level

	AcknowledgeAlarm = command.AcknowledgeAlarm
	ChangeAccess     = command.ChangeAccess

	CancelReservation = command.CancelReservation
)

// DefinitionFields says which fields a Define changes.
type DefinitionFields = command.DefinitionFields

// What commands and reads are answered with.
type (
	Answer    = command.Answer
	TxnAnswer = command.TxnAnswer
	TxnResult = command.TxnResult

	AccessAnswer = command.AccessAnswer

	RecordQuery = record.Query
	RecordPage  = record.Page
	Selection   = record.Selection
	Shelf       = record.Shelf
	Usual       = usage.Usual
)

// What they are numbered with.
const (
	TTLAsSaid    = command.TTLAsSaid
	TTLByDefault = command.TTLByDefault
	TTLAuto      = command.TTLAuto

	TTLUnattended = command.TTLUnattended

	FieldSlots         = command.FieldSlots
	FieldDefaultTTL    = command.FieldDefaultTTL
	FieldLargestTTL    = command.FieldLargestTTL
	FieldHoldLimit     = command.FieldHoldLimit
	FieldGrace         = command.FieldGrace
	FieldExpected      = command.FieldExpected
	FieldUnclean       = command.FieldUnclean
	FieldLimits        = command.FieldLimits
	FieldOnReservation = command.FieldOnReservation
	FieldBackfill      = command.FieldBackfill
	FieldIdle          = command.FieldIdle
	FieldIdleRelease   = command.FieldIdleRelease

	RecordCreate  = command.RecordCreate
	RecordMod     = command.RecordMod
	RecordVersion = command.RecordVersion
	RecordValue   = command.RecordValue
	RecordSession = command.RecordSession
	LeaseID       = command.LeaseID
	LeaseToken    = command.LeaseToken
	LeaseFloor    = command.LeaseFloor
	RecordLease   = command.RecordLease
	LeaseBreak    = command.LeaseBreak

	Equal    = command.Equal
	NotEqual = command.NotEqual
	Less     = command.Less
	Greater  = command.Greater

	Put          = command.Put
	Delete       = command.Delete
	Get          = command.Get
	AcquireLease = command.AcquireLease
	ReleaseLease = command.ReleaseLease
	Nested       = command.Nested

	ByPath    = record.ByPath
	ByCreate  = record.ByCreate
	ByMod     = record.ByMod
	ByVersion = record.ByVersion
	ByValue   = record.ByValue

	Level1      = command.Level1
	NewestLevel = command.NewestLevel
	OldestLevel = command.OldestLevel
)
