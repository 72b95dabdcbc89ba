package native

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/door/native/translate"
)

// kinds shows what was learned of kinds of leases on a resource, or of one kind.
func (c *call) kinds() error {
	path, holder := c.path("path"), c.query.Get("holder")
	said, err := translate.Labels(map[string]string{"kind": c.query.Get("kind"), "command": c.query.Get("command")})
	if err = firstError(checkPath("resource", path), err, checkText("holder", holder)); err != nil {
		return err
	}
	var list []leasehold.LearnedKind
	err = c.look(func(v core.View) { list = v.Kinds(c.namespace, path, core.KindName(said, holder)) })
	if err != nil {
		return err
	}
	c.send(func(b *encode.Buffer) { b.Kinds(c.namespace, path, list) })
	return nil
}
