// Package command is the vocabulary of the core: what may be asked of it, what it answers, and
// what is wrong with a command whatever the state. Doors make commands, the log keeps them, and
// core.State decides them.
package command

// A Command is one thing asked of the state. Commands are values: the log keeps
// them for ever, and every node applies the same ones.
type Command interface {
	// Validate reports what is wrong with the command itself, whatever the state.
	// An engine calls it before a command costs a place in the log, and Apply again: the log may hold what another
	// version let through, and all replicas have to refuse the same.
	Validate() error

	number() Number
	space() string
	request() Request
	subject() string
}

// A Request makes a command happen once although it may be sent twice: the
// second time it gets the first answer. The zero Request asks for nothing.
//
// Without a session Key names the request. Within one, Sequence does, counted
// upwards by the client.
type Request struct {
	Key      string
	Session  string
	Sequence uint64
}

// NamespaceOf returns the namespace of a command; empty if it belongs to none.
func NamespaceOf(c Command) string { return c.space() }

// RequestOf returns the request that a command is; zero if it may happen twice.
func RequestOf(c Command) Request { return c.request() }

func (c *OpenSession) space() string  { return c.Namespace }
func (c *RenewSession) space() string { return c.Namespace }
func (c *CloseSession) space() string { return c.Namespace }
func (c *Acquire) space() string      { return c.Namespace }
func (c *Renew) space() string        { return c.Namespace }
func (c *Release) space() string      { return c.Namespace }
func (c *Change) space() string       { return c.Namespace }
func (c *Break) space() string        { return c.Namespace }
func (*Tick) space() string           { return "" }
func (*Lead) space() string           { return "" }

// Renewals have no request: they are idempotent.
func (c *OpenSession) request() Request  { return c.Request }
func (*RenewSession) request() Request   { return Request{} }
func (c *CloseSession) request() Request { return c.Request }
func (c *Acquire) request() Request      { return c.Request }
func (*Renew) request() Request          { return Request{} }
func (c *Release) request() Request      { return c.Request }
func (c *Change) request() Request       { return c.Request }
func (c *Break) request() Request        { return c.Request }
func (*Tick) request() Request           { return Request{} }
func (*Lead) request() Request           { return Request{} }

// subject names what a request is about, so that a key which is used for two different things
// is noticed. Subject adds a hash of the rest.
func (c *OpenSession) subject() string  { return "open session " + c.ID }
func (*RenewSession) subject() string   { return "" }
func (c *CloseSession) subject() string { return "close session " + c.ID }
func (c *Acquire) subject() string      { return "acquire " + c.Resource }
func (*Renew) subject() string          { return "" }
func (c *Release) subject() string      { return "release " + c.ID }
func (c *Change) subject() string       { return "change " + c.ID }
func (c *Break) subject() string        { return "break " + c.ID + c.Resource }
func (*Tick) subject() string           { return "" }
func (*Lead) subject() string           { return "" }

func (r Request) validate() error {
	switch {
	case r.Session == "" && r.Sequence != 0:
		return invalid("a sequence number counts the requests of a session: name the session")
	case r.Session != "" && (r.Sequence == 0 || r.Key != ""):
		return invalid("a request within a session is named by its sequence number, from 1 on")
	}
	return firstError(text("request key", r.Key), text("request session", r.Session))
}
