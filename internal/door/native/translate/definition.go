package translate

import (
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/door"
)

// Define sets a definition.
func (c Command) Define(r *v1.DefinitionRequest) (*core.Define, error) {
	command := &core.Define{
		Namespace: c.Namespace, By: r.By, Reason: r.Reason, Request: c.Once, KeepSlots: !r.Replace,
		IfRevision: leasehold.Revision(r.IfRevision),
		Definition: leasehold.Definition{
			Path: c.Path, Capacity: r.Capacity, Units: r.Units, DefaultTTL: time.Duration(r.DefaultTTL),
			LargestTTL: time.Duration(r.LargestTTL),
			HoldLimit:  time.Duration(r.HoldLimit), Grace: time.Duration(r.Grace), Expected: time.Duration(r.Expected),
			Idle: time.Duration(r.Idle), IdleRelease: time.Duration(r.IdleRelease), Backfill: r.Backfill,
		},
	}
	var err error
	command.Definition.Limits, err = pool.ParseLimits(r.Limits)
	return command, door.First(err, checkDefine(command, r.Unclean, r.OnReservation))
}

// ChangeDefinition makes a command of a change. Only fields that the request names are set.
func (c Command) ChangeDefinition(r *v1.DefinitionChange) (*core.Define, error) {
	command := &core.Define{
		Namespace: c.Namespace, By: r.By, Reason: r.Reason, Request: c.Once, KeepSlots: !r.Replace,
		IfRevision: leasehold.Revision(r.IfRevision),
		Definition: leasehold.Definition{
			Path: c.Path, Capacity: r.Capacity.Value, Units: r.Units.Value,
			DefaultTTL: time.Duration(r.DefaultTTL.Value), LargestTTL: time.Duration(r.LargestTTL.Value),
			HoldLimit: time.Duration(r.HoldLimit.Value), Grace: time.Duration(r.Grace.Value),
			Expected: time.Duration(r.Expected.Value),
			Idle:     time.Duration(r.Idle.Value), IdleRelease: time.Duration(r.IdleRelease.Value),
			Backfill: r.Backfill.Value,
		},
	}
	for field, given := range map[core.DefinitionFields]bool{
		core.FieldSlots:      r.Capacity.Given || r.Units.Given,
		core.FieldDefaultTTL: r.DefaultTTL.Given, core.FieldLargestTTL: r.LargestTTL.Given,
		core.FieldHoldLimit: r.HoldLimit.Given, core.FieldGrace: r.Grace.Given, core.FieldExpected: r.Expected.Given,
		core.FieldUnclean: r.Unclean.Given, core.FieldLimits: r.Limits.Given,
		core.FieldIdle: r.Idle.Given, core.FieldIdleRelease: r.IdleRelease.Given,
		core.FieldOnReservation: r.OnReservation.Given,
		core.FieldBackfill:      r.Backfill.Given,
	} {
		if given {
			command.Fields |= field
		}
	}
	if command.Fields == 0 {
		return nil, door.Invalid("nothing to change: name at least one field, such as units or hold_limit")
	}
	var err error
	command.Definition.Limits, err = pool.ParseLimits(r.Limits.Value)
	return command, door.First(err, checkDefine(command, r.Unclean.Value, r.OnReservation.Value))
}

// checkDefine reads what follows an unclean end and what a reservation begins with, and checks the texts.
func checkDefine(command *core.Define, unclean, start string) error {
	var known bool
	if command.Definition.Unclean, known = leasehold.UncleanOf(unclean); !known && unclean != "" {
		return door.Invalid("unclean is %s: it is allow, warn or acknowledge", door.Brief(unclean))
	}
	if command.Definition.OnReservation, known = leasehold.AtStartOf(start); !known && start != "" {
		return door.Invalid("on_reservation is %s: it is wait, warn or end", door.Brief(start))
	}
	for _, unit := range command.Definition.Units {
		if err := Name("unit", unit); err != nil {
			return err
		}
	}
	return door.First(Text("by", command.By), Text("reason", command.Reason))
}
