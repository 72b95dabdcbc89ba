package core

import "github.com/leasehold/leasehold"

// PutRecord makes a record or changes it. What is not said here it does not keep: a
// record that is put without a session is bound to none any more.
type PutRecord struct {
	Namespace  string
	Path       string
	Value      string
	Session    string             // it ends with this session; empty: with none
	IfRevision leasehold.Revision // only if that changed it last; 0: whatever did
	IfAbsent   bool               // only if there is none
	Fence      Fence
	Request    Request
}

// A Fence lets a write through only while its writer's lease is good, judged in the
// same command as the write. The zero Fence lets everything through.
//
// With Lease that lease must be alive, and Token, if it is given too, must be its
// token. With Token alone the record itself judges: it turns away a token that is
// smaller than one it was written under before.
type Fence struct {
	Lease string
	Token leasehold.Token
}

func (c *PutRecord) space() string    { return c.Namespace }
func (c *PutRecord) request() Request { return c.Request }
func (c *PutRecord) subject() string  { return "put " + c.Path }

func (c *PutRecord) Validate() error {
	if c.IfAbsent && c.IfRevision != 0 {
		return invalid("put takes a revision that must be there, or that none may be there, not both")
	}
	return firstError(name("namespace", c.Namespace), name("path", c.Path), value(c.Value), text("session", c.Session), c.Fence.validate(), c.Request.validate())
}

func (f Fence) validate() error {
	if f.Token > leasehold.MaxToken {
		return invalid("token %d is out of range: no token is above %d", f.Token, leasehold.MaxToken)
	}
	return text("lease id", f.Lease)
}

func value(v string) error {
	if len(v) > leasehold.MaxValue {
		return invalid("value has %d bytes: at most %d are allowed", len(v), leasehold.MaxValue)
	}
	return nil
}

func (s *State) putRecord(c *PutRecord) Answer {
	sp := s.space(c.Namespace)
	old := s.liveRecord(sp, c.Path)
	token, refused := s.passFence(sp, old, c.Path, c.Fence)
	if refused != nil {
		return Answer{Err: refused}
	}
	if refused := unlessAsExpected(old, c.Path, c.IfRevision, c.IfAbsent); refused != nil {
		return Answer{Err: refused}
	}
	if refused := s.roomFor(sp, []write{{c.Path, c.Value, c.Session}}); refused != nil {
		return Answer{Err: refused}
	}
	// Only now, since a refusal must not begin a namespace.
	sp, refused = s.makeSpace(c.Namespace)
	if refused != nil {
		return Answer{Err: refused}
	}
	return Answer{Record: withoutValue(s.setRecord(sp, write{c.Path, c.Value, c.Session}, token))}
}
