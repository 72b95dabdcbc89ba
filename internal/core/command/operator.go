package command

import (
	"slices"

	"github.com/leasehold/leasehold"
)

// Ask sends the holders of a resource a message, such as "please release". It changes
// nothing but history, where the holder's watch finds it. It names the resource alone:
// a message that reaches the next holder does no harm.
type Ask struct {
	Namespace string
	Resource  string
	By        string
	Message   string
	Request   Request
}

func (c *Ask) space() string    { return c.Namespace }
func (c *Ask) request() Request { return c.Request }
func (c *Ask) subject() string  { return "ask " + c.Resource }

func (c *Ask) Validate() error {
	return firstError(name("namespace", c.Namespace), name("resource", c.Resource), text("by", c.By),
		name("message", c.Message), c.Request.validate())
}

// Move gives a waiter another priority, on behalf of an operator. It goes behind those that
// have that priority already. (To take it out of the queue, break it.)
type Move struct {
	Namespace string
	ID        string
	Priority  int
	By        string
	Reason    string
	Request   Request
}

func (c *Move) space() string    { return c.Namespace }
func (c *Move) request() Request { return c.Request }
func (c *Move) subject() string  { return "move " + c.ID }

func (c *Move) Validate() error {
	return firstError(name("namespace", c.Namespace), name("lease id", c.ID), priority(c.Priority), text("by", c.By),
		text("reason", c.Reason), c.Request.validate())
}

// Acknowledge says that somebody has looked at the unclean ends of leases on a resource: it
// need no longer rest. It names the newest token that the caller saw, so that a retry can never
// acknowledge an end that nobody has looked at.
type Acknowledge struct {
	Namespace string
	Resource  string
	Token     leasehold.Token
	By        string
	Reason    string
	Request   Request
}

func (c *Acknowledge) space() string    { return c.Namespace }
func (c *Acknowledge) request() Request { return c.Request }
func (c *Acknowledge) subject() string  { return "acknowledge " + c.Resource }

func (c *Acknowledge) Validate() error {
	if c.Token == 0 {
		return invalid("acknowledge names the token of the lease that ended")
	}
	return firstError(name("namespace", c.Namespace), name("resource", c.Resource), text("by", c.By),
		text("reason", c.Reason), c.Request.validate())
}

// AcknowledgeAlarm says that somebody has looked at what an alarm tells of, and clears it. It names
// the alarm as it was shown: Order is another one each time it happens, so that a late retry can
// never clear what nobody has looked at.
type AcknowledgeAlarm struct {
	Namespace string
	Kind      leasehold.AlarmKind
	Resource  string
	ID        string // of the lease
	Session   string
	Order     uint64
	By        string
	Reason    string
	Request   Request
}

func (c *AcknowledgeAlarm) space() string    { return c.Namespace }
func (c *AcknowledgeAlarm) request() Request { return c.Request }
func (c *AcknowledgeAlarm) subject() string  { return "acknowledge alarm " + c.Resource + c.Session }

func (c *AcknowledgeAlarm) Validate() error {
	switch {
	case c.Kind == leasehold.InQuarantine:
		return invalid("the alarm %v is cleared by the end of the quarantine: leasehold cluster end-quarantine", c.Kind)
	case c.Kind == leasehold.TokenEnding:
		return invalid("the alarm %v is cleared by the end of the token: leasehold access token revoke ID", c.Kind)
	case !slices.Contains(leasehold.AlarmKinds, c.Kind):
		return invalid("unknown kind of alarms")
	case c.Order == 0:
		return invalid("occurrence is missing: give that of the alarm, as GET /v1/alarms shows it")
	case c.Resource == "" && c.Session == "":
		return invalid("resource and session are missing: give those of the alarm, as GET /v1/alarms shows them")
	}
	return firstError(name("namespace", c.Namespace), text("resource", c.Resource), text("lease id", c.ID),
		text("session", c.Session), text("by", c.By), text("reason", c.Reason), c.Request.validate())
}
