package native

import (
	"strings"

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
	answer, err := c.do(command)
	if err != nil {
		return err
	}
	c.send(func(p *paper) { p.definition(c.namespace, answer.Definition) })
	return nil
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
		return &leasehold.Error{Code: leasehold.NotFound, Message: "nothing is defined for " + path + ": it has one slot, or what its first holders say"}
	}
	c.send(func(p *paper) { p.definition(c.namespace, &d) })
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
	c.send(func(p *paper) {
		p.open()
		array(p, "items", list, func(v *leasehold.Definition) { p.definition(c.namespace, v) })
		p.some("next", cursor(next))
		p.close()
	})
	return nil
}

func (p *paper) definition(namespace string, d *leasehold.Definition) {
	p.open()
	p.text("namespace", namespace)
	p.text("path", d.Path)
	p.count("capacity", d.Capacity)
	p.names("units", d.Units)
	p.someSpan("default_ttl", d.DefaultTTL)
	p.someSpan("largest_ttl", d.LargestTTL)
	p.someSpan("hold_limit", d.HoldLimit)
	p.someSpan("grace", d.Grace)
	p.someSpan("expected", d.Expected)
	p.text("unclean", d.Unclean.String())
	p.number("revision", uint64(d.Revision))
	p.close()
}
