package native

import (
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
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
	return c.asked(path).Define(body)
}

// changeDefinition changes the fields that the body names.
func (c *call) changeDefinition(body *v1.DefinitionChange) (*core.Define, error) {
	path, err := c.definitionPath()
	if err != nil {
		return nil, err
	}
	return c.asked(path).ChangeDefinition(body)
}

func (c *call) defined(_ *core.Define, answer core.Answer) error {
	c.send(func(b *encode.Buffer) { b.Definition(c.namespace, answer.Definition) })
	return nil
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
