package core

import "github.com/leasehold/leasehold"

// PutRecord makes a record or changes it. What is not said here it does not keep: a
// record that is put without a session is bound to none any more.
type PutRecord struct {
	Namespace  string
	Path       string
	Value      string
	Large      *leasehold.Large   // instead of Value: where the bytes are
	From       leasehold.Revision // instead of Value: the version to go back to
	Keep       int                // how many former versions it keeps from now on; 0: as before, KeepNone: none
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
	return firstError(name("namespace", c.Namespace), name("path", c.Path), content(c.Value, c.Large, c.From), keep(c.Keep),
		text("session", c.Session), c.Fence.validate(), c.Request.validate())
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

// content says what is wrong with what is to be put.
func content(v string, large *leasehold.Large, from leasehold.Revision) error {
	switch {
	case large != nil && v != "", from != 0 && (v != "" || large != nil):
		return invalid("put takes a value, a large value or the revision of a former one, and one of them only")
	case large != nil && (large.Size < 0 || large.Size > leasehold.MaxLarge):
		return invalid("a large value has %d bytes: at most %d are allowed", large.Size, leasehold.MaxLarge)
	}
	return value(v)
}

func keep(n int) error {
	if n < leasehold.KeepNone || n > leasehold.MaxKeep {
		return invalid("a record can not keep %d former versions: 1 to %d are allowed, and %d for none", n, leasehold.MaxKeep, leasehold.KeepNone)
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
	w := write{path: c.Path, value: c.Value, large: c.Large, session: c.Session, keep: c.Keep, holder: s.writer(sp, c.Fence)}
	if refused := s.rollBack(sp, &w, c.From); refused != nil {
		return Answer{Err: refused}
	}
	if refused := s.roomFor(sp, []write{w}); refused != nil {
		return Answer{Err: refused}
	}
	// Only now, since a refusal must not begin a namespace.
	sp, refused = s.makeSpace(c.Namespace)
	if refused != nil {
		return Answer{Err: refused}
	}
	return Answer{Record: withoutValue(s.setRecord(sp, w, token))}
}
