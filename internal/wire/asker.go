package wire

import (
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// Who was proven to ask stands before a command, behind its origin. It is written with every command of a cluster
// that knows who asks, so one that was met before is not decoded again.

// AppendAsker appends who asks for the command that is appended next; nothing if nobody was proven to.
func AppendAsker(b []byte, a *access.Asker) []byte {
	if a == nil {
		return b
	}
	c := writing(b)
	body := c.Open(kindAsker)
	w := asker{a, a == &access.System}
	if w.system {
		w.Asker = new(access.Asker)
	}
	w.fields(c.Message())
	c.Shut(body)
	return c.B
}

// An asker as it is written: the cluster itself has no name of its own.
type asker struct {
	*access.Asker
	system bool
}

func (a *asker) fields(m *tagged.Message) {
	m.Flag(1, "system", &a.system)
	m.Text(2, "principal", &a.Principal)
	m.Names(3, "groups", &a.Groups)
	m.Text(4, "token", &a.Token)
	if named := a.Principal != "" || len(a.Groups) > 0 || a.Token != ""; named && a.system {
		m.Fail("system", "it has a name")
	}
}

// Askers are those that were met lately. An asker that is met again is the same value, which remembers what it may
// do: see access.Policy.Permit.
type Askers struct {
	known map[string]*access.Asker // by their bytes
	bytes int
}

// What is remembered of askers. Beyond it all are forgotten at once, which costs the next commands a little.
const (
	maxAskers     = 4096
	maxAskerBytes = 4 << 20
)

func (t *Askers) find(body []byte) *access.Asker {
	if t == nil {
		return nil
	}
	return t.known[string(body)]
}

func (t *Askers) add(body []byte, a *access.Asker) {
	if t == nil {
		return
	}
	if t.bytes += len(body); t.known == nil || len(t.known) >= maxAskers || t.bytes > maxAskerBytes {
		t.known, t.bytes = map[string]*access.Asker{}, len(body)
	}
	t.known[string(body)] = a
}

// nextAsker reads who asks for the next command, if anybody was proven to.
func (c *codec) nextAsker(known *Askers) (*access.Asker, error) {
	if c.Left() == 0 || c.B[c.At] != kindAsker {
		return nil, nil
	}
	_, body, err := c.nextFrame()
	if err != nil {
		return nil, err
	}
	if a := known.find(body.B); a != nil {
		return a, nil
	}
	read, m := asker{Asker: new(access.Asker)}, body.Message()
	read.fields(m)
	m.End()
	a := read.Asker
	if read.system {
		a = &access.System
	} else if err := a.Check(); body.Fault == nil && err != nil {
		body.Fail("principal", err.Error())
	}
	if body.Fault != nil {
		return nil, body.Refused(kindName(kindAsker))
	}
	known.add(body.B, a)
	return a, nil
}

func (e *Entry) setAsker(i int, a *access.Asker) {
	if e.Askers == nil {
		e.Askers = make([]*access.Asker, len(e.Commands), cap(e.Commands))
	}
	e.Askers[i] = a
}
