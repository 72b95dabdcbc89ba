package native

import "github.com/leasehold/leasehold/internal/door/native/outlook"

// doors shows what this server speaks, where, and who is connected.
func (c *call) doors() error {
	guests, err := c.door.backend.Guests(c.signed())
	if err != nil {
		return err
	}
	return c.sendValue(outlook.Doors(c.door.backend.Entrances(), guests))
}

// connect shows what to paste to reach this server with each tool.
func (c *call) connect() error {
	permit, err := c.door.backend.Permit(c.signed())
	if err != nil {
		return err
	}
	origin := c.query.Get("origin")
	tools, ok := outlook.Tools(c.door.backend.Entrances(), origin, c.namespace, permit != nil)
	if !ok {
		return invalid("origin is %s: write it as http://host:port or https://host:port", brief(origin))
	}
	return c.sendValue(tools)
}
