package command

import (
	"github.com/leasehold/leasehold/internal/core/access"
)

// ChangeAccess changes who may do what. A change that changes nothing is answered as if it had been made: so it is
// idempotent, whatever IfRevision says.
type ChangeAccess struct {
	Remove     access.Keys
	Put        access.Items
	Replace    bool   // everything but tokens that Put does not have is removed: a declared file
	Off        bool   // removes the whole policy: everybody may do everything
	IfRevision uint64 // only if the policy is at this revision; 0: whatever it is
	IfNone     bool   // only if there is no policy: the one that begins access
	Wall       int64  // the door's clock in Unix nanoseconds, by which tokens end; 0: unknown
	By         string
	Reason     string

	// Declared is the file that a server applies; without a hash it is none.
	Declared access.Declaration

	// Used is when tokens were last used. It comes alone, and is no change of who may do what.
	Used []access.Use
}

func (*ChangeAccess) space() string    { return "" }
func (*ChangeAccess) request() Request { return Request{} } // it is idempotent
func (*ChangeAccess) subject() string  { return "" }

func (c *ChangeAccess) Validate() error {
	if err := firstError(c.Put.Check(), c.Remove.Check()); err != nil {
		return invalid("%v", err)
	}
	removes, puts := c.Remove.Len(), c.Put.Len()
	if len(c.Used) > 0 {
		return c.validateUses(removes + puts)
	}
	switch {
	case c.Off && (c.Replace || removes+puts > 0):
		return invalid("access is switched off or changed, not both")
	case !c.Off && !c.Replace && removes+puts == 0:
		return invalid("nothing is changed: give what to add or to remove")
	}
	return firstError(text("by", c.By), text("reason", c.Reason), text("file", c.Declared.Hash),
		text("server", c.Declared.Server))
}

func (c *ChangeAccess) validateUses(items int) error {
	switch {
	case items > 0 || c.Off || c.Replace || c.Declared != (access.Declaration{}):
		return invalid("when tokens were used is noted alone")
	case len(c.Used) > access.MaxChange:
		return invalid("the use of %d tokens is noted at once: at most %d are allowed", len(c.Used), access.MaxChange)
	}
	for _, use := range c.Used {
		if err := text("token", use.ID); err != nil {
			return err
		}
	}
	return nil
}
