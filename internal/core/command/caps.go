package command

import "github.com/leasehold/leasehold"

// SetCaps changes caps.
type SetCaps struct {
	Caps    leasehold.Caps // those that are 0 stay as they are
	IfUnset bool           // only if nobody did before: the settings of the first leader
	By      string
	Reason  string
}

func (*SetCaps) space() string    { return "" }
func (*SetCaps) request() Request { return Request{} } // it may happen twice by nature
func (*SetCaps) subject() string  { return "" }

func (c *SetCaps) Validate() error {
	if c.Caps == (leasehold.Caps{}) {
		return invalid("no cap is given: give leases, sessions, waiters or namespaces")
	}
	return firstError(
		limit("leases", c.Caps.Leases, leasehold.MaxCap), limit("sessions", c.Caps.Sessions, leasehold.MaxCap),
		limit("waiters", c.Caps.Waiters, leasehold.MaxCap),
		limit("namespaces", c.Caps.Namespaces, leasehold.MaxNamespaces), text("by", c.By), text("reason", c.Reason),
	)
}

// limit checks one cap; 0 means that it is left as it is.
func limit(what string, n, most int) error {
	if n < 0 || n > most {
		return invalid("a cap of %d %s is out of range: 1 to %d are allowed", n, what, most)
	}
	return nil
}
