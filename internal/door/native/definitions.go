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
	c.send(func(b *jsonBuffer) { b.definition(c.namespace, answer.Definition) })
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
