package command

import "github.com/leasehold/leasehold"

// PutRecord creates a record or changes it. What is not given here is not kept: a record that
// is put without a session is no longer bound to one.
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
	By, Reason string // who wanted it and why, where it needs a reason: a write that was forced
	Request    Request

	Link     *Link // the claim that it stands for from now on
	KeepLink bool  // if it stands for a claim, it goes on doing so, and stays bound to what it was
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

// Renews reports whether a put is a renewal whatever the state: it is fenced by the very lease that it links to, and so
// begins none.
func (c *PutRecord) Renews() bool {
	return c.Link != nil && c.Link.Claims() && c.Fence.Lease == c.Link.ID
}

func (c *PutRecord) Validate() error {
	if c.IfAbsent && c.IfRevision != 0 {
		return invalid("put takes a revision that must be there, or that none may be there, not both")
	}
	return firstError(name("namespace", c.Namespace), name("path", c.Path), content(c.Value, c.Large, c.From),
		keep(c.Keep),
		text("session", c.Session), c.Fence.validate(), text("by", c.By), text("reason", c.Reason),
		c.Request.validate(), c.Link.validate(c.Path, c.Session, c.KeepLink))
}

func (f Fence) validate() error {
	if f.Token > leasehold.MaxToken {
		return invalid("token %d is out of range: no token is above %d", f.Token, leasehold.MaxToken)
	}
	return text("lease id", f.Lease)
}

// DeleteRecord deletes one record, or all from one path on. To delete what is not
// there is no failure: an earlier try may have done it.
type DeleteRecord struct {
	Namespace  string
	Path       string             // with Range: the first; empty: from the beginning
	Range      bool               // all from Path on, below To
	To         string             // with Range; empty: to the end
	IfRevision leasehold.Revision // without Range: only if that changed it last; 0: whatever did
	Fence      Fence              // with Range: its lease must be named
	Request    Request
}

func (c *DeleteRecord) space() string    { return c.Namespace }
func (c *DeleteRecord) request() Request { return c.Request }

func (c *DeleteRecord) subject() string {
	if c.Range {
		return "delete from " + c.Path
	}
	return "delete " + c.Path
}

func (c *DeleteRecord) Validate() error {
	switch {
	case c.Range && c.IfRevision != 0:
		return invalid("a revision is of one record: it cannot be expected of a range")
	case c.Range && c.Fence.Token != 0 && c.Fence.Lease == "":
		return invalid("a token alone is judged by one record: name the lease to delete a range")
	}
	return firstError(name("namespace", c.Namespace), span(c.Path, c.To, c.Range), c.Fence.validate(),
		c.Request.validate())
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
		return invalid("a record cannot keep %d former versions: 1 to %d are allowed, and %d for none", n,
			leasehold.MaxKeep, leasehold.KeepNone)
	}
	return nil
}

// span says what is wrong with a path, or with a range of paths.
func span(path, to string, isRange bool) error {
	switch {
	case !isRange && to != "":
		return invalid("an end is of a range: say that it is one")
	case !isRange:
		return name("path", path)
	}
	return firstError(text("path", path), text("end of the range", to))
}
