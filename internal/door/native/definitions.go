package native

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

// definitionPath reads the path of a definition: of a resource, or of a prefix, which
// ends with a slash; a slash alone is everything.
func (c *call) definitionPath() (string, error) {
	path := c.r.PathValue("path")
	if path == "/" {
		return path, nil
	}
	return path, checkPath("path", strings.TrimSuffix(path, "/"))
}

func (c *call) define() error {
	path, err := c.definitionPath()
	if err != nil {
		return err
	}
	var body v1.DefinitionRequest
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toDefine(path, &body)
	if err != nil {
		return err
	}
	return c.doDefine(command)
}

// changeDefinition changes the fields that the body names.
func (c *call) changeDefinition() error {
	path, err := c.definitionPath()
	if err != nil {
		return err
	}
	var body v1.DefinitionChange
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toChangeDefinition(path, &body)
	if err != nil {
		return err
	}
	return c.doDefine(command)
}

// doDefine carries a define out. A cluster that does not know a part of it yet says so here, since
// such a command cannot be in its log.
func (c *call) doDefine(command *core.Define) error {
	if level := c.door.backend.Engine().Level(); level < core.Level4 {
		if command.Fields != 0 || command.IfRevision != 0 {
			return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf("changing a part of a definition, "+
				"or one of a certain revision, needs feature level %d, and the cluster is at %d: send the whole "+
				"definition with PUT, or update all servers and run leasehold cluster upgrade", core.Level4, level)}
		}
		command.KeepSlots = false
	}
	answer, err := c.do(command)
	if err != nil {
		return err
	}
	c.send(func(b *jsonBuffer) { b.definition(c.namespace, answer.Definition) })
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
		},
	}
	return command, checkDefine(command, r.Unclean)
}

func (c *call) toChangeDefinition(path string, r *v1.DefinitionChange) (*core.Define, error) {
	command := &core.Define{
		Namespace: c.namespace, By: r.By, Reason: r.Reason, Request: c.once, KeepSlots: !r.Replace,
		IfRevision: leasehold.Revision(r.IfRevision),
		Definition: leasehold.Definition{
			Path: path, Capacity: r.Capacity.Value, Units: r.Units.Value, DefaultTTL: time.Duration(r.DefaultTTL.Value),
			LargestTTL: time.Duration(r.LargestTTL.Value), HoldLimit: time.Duration(r.HoldLimit.Value),
			Grace: time.Duration(r.Grace.Value), Expected: time.Duration(r.Expected.Value),
		},
	}
	for field, given := range map[core.DefinitionFields]bool{
		core.FieldSlots:      r.Capacity.Given || r.Units.Given,
		core.FieldDefaultTTL: r.DefaultTTL.Given, core.FieldLargestTTL: r.LargestTTL.Given,
		core.FieldHoldLimit: r.HoldLimit.Given, core.FieldGrace: r.Grace.Given, core.FieldExpected: r.Expected.Given,
		core.FieldUnclean: r.Unclean.Given,
	} {
		if given {
			command.Fields |= field
		}
	}
	if command.Fields == 0 {
		return nil, invalid("nothing to change: name at least one field, such as units or hold_limit")
	}
	return command, checkDefine(command, r.Unclean.Value)
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

func (c *call) undefine() error {
	path, err := c.definitionPath()
	if err != nil {
		return err
	}
	command, err := c.toUndefine(path)
	if err != nil {
		return err
	}
	return c.doNothingMore(command)
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
	c.send(func(b *jsonBuffer) { b.definition(c.namespace, &d) })
	return nil
}

func (c *call) definitions() error {
	prefix, badPrefix := c.prefix()
	after, badAfter := c.after()
	limit, badLimit := c.number("limit", v1.DefaultLimit, v1.MaxLimit)
	if err := firstError(badPrefix, badAfter, badLimit); err != nil {
		return err
	}
	var list []leasehold.Definition
	var next string
	if err := c.look(func(v core.View) { list, next = v.Definitions(c.namespace, prefix, after, limit) }); err != nil {
		return err
	}
	c.send(func(b *jsonBuffer) {
		b.open()
		array(b, "items", list, func(v *leasehold.Definition) { b.definition(c.namespace, v) })
		b.some("next", cursor(next))
		b.close()
	})
	return nil
}

func (b *jsonBuffer) definition(namespace string, d *leasehold.Definition) {
	b.open()
	b.text("namespace", namespace)
	b.text("path", d.Path)
	b.count("capacity", d.Capacity)
	b.names("units", d.Units)
	b.someSpan("default_ttl", d.DefaultTTL)
	b.someSpan("largest_ttl", d.LargestTTL)
	b.someSpan("hold_limit", d.HoldLimit)
	b.someSpan("grace", d.Grace)
	b.someSpan("expected", d.Expected)
	b.text("unclean", d.Unclean.String())
	b.number("revision", uint64(d.Revision))
	b.close()
}
