package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Former versions of records, and how many are kept.

func (c *codec) shelf(v *core.Shelf) {
	c.text("path", &v.Path)
	c.number("keep", &v.Keep)
	c.time("deleted", &v.Deleted)
	c.signed("written", &v.Written)
	c.text("holder", &v.Holder)
}

// former is a former version of a record. The current one is the record itself and is never
// written as a version.
func (c *codec) former(v *leasehold.Version) {
	c.text("path", &v.Path)
	c.content("value", &v.Value, &v.Large)
	c.revision("revision", &v.Revision)
	c.revision("create", &v.Create)
	c.unsigned("version", &v.Version)
	c.moment("written", &v.Written)
	c.text("holder", &v.Holder)
	c.text("session", &v.Session)
	c.token("token", &v.Token)
	c.flag("deleted", &v.Deleted)
	if v.Current {
		c.fail("current", "it is a former one")
	}
}
