package command

// AppendLeases appends the ids of the leases that a command names.
func AppendLeases(ids []string, c Command) []string {
	if names, ok := c.(interface{ leases([]string) []string }); ok {
		return names.leases(ids)
	}
	return ids
}

func (c *Acquire) leases(ids []string) []string {
	ids = append(ids, c.ID)
	for i := range c.Also {
		ids = append(ids, c.Also[i].ID)
	}
	return ids
}

func (c *Release) leases(ids []string) []string { return append(ids, c.ID) }

func (c *PutRecord) leases(ids []string) []string {
	if c.Link != nil {
		ids = append(ids, c.Link.ID)
	}
	return ids
}

func (c *Txn) leases(ids []string) []string {
	for _, ops := range [][]Op{c.Then, c.Else} {
		for i := range ops {
			ids = ops[i].leases(ids)
		}
	}
	return ids
}

func (o *Op) leases(ids []string) []string {
	ids = append(ids, o.ID)
	if o.Acquire != nil {
		ids = o.Acquire.leases(ids)
	}
	if o.Link != nil {
		ids = append(ids, o.Link.ID)
	}
	if o.Txn != nil {
		ids = o.Txn.leases(ids)
	}
	return ids
}

// Wants returns the resource that a command asks for, and for whom; false if it asks for none.
func Wants(c Command) (resource, holder string, ok bool) {
	if wants, is := c.(interface {
		wants() (resource, holder string, ok bool)
	}); is {
		return wants.wants()
	}
	return "", "", false
}

func (c *Acquire) wants() (resource, holder string, ok bool) { return c.Resource, c.Holder, true }

func (c *PutRecord) wants() (resource, holder string, ok bool) {
	if c.Link == nil {
		return "", "", false
	}
	return c.Link.Resource, c.Link.Holder, true
}

// Refusable returns whose holders a refusal of a command can name: those of a resource, or the one of a lease; two
// empty texts if it can name none.
func Refusable(c Command) (resource, id string) {
	if names, ok := c.(interface{ refusable() (resource, id string) }); ok {
		return names.refusable()
	}
	return "", ""
}

func (c *Break) refusable() (resource, id string)        { return c.Resource, c.ID }
func (c *PutRecord) refusable() (resource, id string)    { return "", c.Fence.Lease }
func (c *DeleteRecord) refusable() (resource, id string) { return "", c.Fence.Lease }
func (c *Define) refusable() (resource, id string)       { return c.Definition.Path, "" }
