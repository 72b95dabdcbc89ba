package native

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/door/native/encode"
)

// definitionPath reads the path of a definition: of a resource, or of a prefix, which
// ends with a slash; a slash alone is everything.
func (c *call) definitionPath() (string, error) {
	path := c.path("path")
	if path == "/" {
		return path, nil
	}
	return path, checkPath("path", strings.TrimSuffix(path, "/"))
}

// define makes a definition as the body says.
func (c *call) define(body *v1.DefinitionRequest) (*core.Define, error) {
	path, err := c.definitionPath()
	if err != nil {
		return nil, err
	}
	command, err := c.toDefine(path, body)
	if err != nil {
		return nil, err
	}
	return command, c.levelDefine(command)
}

// changeDefinition changes the fields that the body names.
func (c *call) changeDefinition(body *v1.DefinitionChange) (*core.Define, error) {
	path, err := c.definitionPath()
	if err != nil {
		return nil, err
	}
	command, err := c.toChangeDefinition(path, body)
	if err != nil {
		return nil, err
	}
	return command, c.levelDefine(command)
}

// levelDefine makes a define one that the cluster knows. If it does not know a part of it yet that is said here, since
// such a command cannot be in its log.
func (c *call) levelDefine(command *core.Define) error {
	level := c.door.backend.Engine().Level()
	switch {
	case level >= core.Level4:
	case command.Fields != 0 || command.IfRevision != 0:
		return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf("changing a part of a definition, "+
			"or one of a certain revision, needs feature level %d, and the cluster is at %d: send the whole "+
			"definition with PUT, or update all servers and run leasehold cluster upgrade", core.Level4, level)}
	default:
		command.KeepSlots = false
	}
	return nil
}

func (c *call) defined(_ *core.Define, answer core.Answer) error {
	c.send(func(b *encode.Buffer) { b.Definition(c.namespace, answer.Definition) })
	return nil
}

func (c *call) toDefine(path string, r *v1.DefinitionRequest) (*core.Define, error) {
	command := &core.Define{
		Namespace: c.namespace, By: r.By, Reason: r.Reason, Request: c.once, KeepSlots: !r.Replace,
		IfRevision: leasehold.Revision(r.IfRevision),
		Definition: leasehold.Definition{
			Path: path, Capacity: r.Capacity, Units: r.Units, DefaultTTL: time.Duration(r.DefaultTTL),
			LargestTTL: time.Duration(r.LargestTTL),
			HoldLimit:  time.Duration(r.HoldLimit), Grace: time.Duration(r.Grace), Expected: time.Duration(r.Expected),
			Idle: time.Duration(r.Idle), IdleRelease: time.Duration(r.IdleRelease),
		},
	}
	var err error
	command.Definition.Limits, err = pool.ParseLimits(r.Limits)
	return command, firstError(err, checkDefine(command, r.Unclean))
}

// toChangeDefinition makes a command of a change. Only fields that the request names are set.
func (c *call) toChangeDefinition(path string, r *v1.DefinitionChange) (*core.Define, error) {
	command := &core.Define{
		Namespace: c.namespace, By: r.By, Reason: r.Reason, Request: c.once, KeepSlots: !r.Replace,
		IfRevision: leasehold.Revision(r.IfRevision),
		Definition: leasehold.Definition{
			Path: path, Capacity: r.Capacity.Value, Units: r.Units.Value, DefaultTTL: time.Duration(r.DefaultTTL.Value),
			LargestTTL: time.Duration(r.LargestTTL.Value), HoldLimit: time.Duration(r.HoldLimit.Value),
			Grace: time.Duration(r.Grace.Value), Expected: time.Duration(r.Expected.Value),
			Idle: time.Duration(r.Idle.Value), IdleRelease: time.Duration(r.IdleRelease.Value),
		},
	}
	for field, given := range map[core.DefinitionFields]bool{
		core.FieldSlots:      r.Capacity.Given || r.Units.Given,
		core.FieldDefaultTTL: r.DefaultTTL.Given, core.FieldLargestTTL: r.LargestTTL.Given,
		core.FieldHoldLimit: r.HoldLimit.Given, core.FieldGrace: r.Grace.Given, core.FieldExpected: r.Expected.Given,
		core.FieldUnclean: r.Unclean.Given, core.FieldLimits: r.Limits.Given,
		core.FieldIdle: r.Idle.Given, core.FieldIdleRelease: r.IdleRelease.Given,
	} {
		if given {
			command.Fields |= field
		}
	}
	if command.Fields == 0 {
		return nil, invalid("nothing to change: name at least one field, such as units or hold_limit")
	}
	var err error
	command.Definition.Limits, err = pool.ParseLimits(r.Limits.Value)
	return command, firstError(err, checkDefine(command, r.Unclean.Value))
}

// checkDefine reads what follows an unclean end, and checks the whole command.
func checkDefine(command *core.Define, unclean string) error {
	var known bool
	if command.Definition.Unclean, known = leasehold.UncleanOf(unclean); !known && unclean != "" {
		return invalid("unclean is %s: it is allow, warn or acknowledge", brief(unclean))
	}
	for _, unit := range command.Definition.Units {
		if err := checkName("unit", unit); err != nil {
			return err
		}
	}
	return firstError(checkText("by", command.By), checkText("reason", command.Reason), command.Validate())
}

// definition shows what applies to a resource.
func (c *call) definition() error {
	path, err := c.definitionPath()
	if err != nil {
		return err
	}
	var d leasehold.Definition
	var some bool
	if err := c.look(func(v core.View) { d, some = v.Definition(c.namespace, path) }); err != nil {
		return err
	}
	if !some {
		return &leasehold.Error{Code: leasehold.NotFound, Message: "nothing is defined for " + path +
			": it has one slot, or what its first holders say"}
	}
	c.send(func(b *encode.Buffer) { b.Definition(c.namespace, &d) })
	return nil
}

func (c *call) definitions() error {
	part, err := c.part()
	if err != nil {
		return err
	}
	var list []leasehold.Definition
	var next string
	err = c.look(func(v core.View) { list, next = v.Definitions(c.namespace, part.prefix, part.after, part.limit) })
	if err != nil {
		return err
	}
	return sendPage(c, list, cursor(next), func(b *encode.Buffer, v *leasehold.Definition) {
		b.Definition(c.namespace, v)
	})
}
