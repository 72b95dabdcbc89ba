package wire

import "github.com/leasehold/leasehold/internal/core/access"

// Who was proven to ask stands before a command, behind its origin. It is written with every command of a cluster
// that knows who asks, so one that was met before is not decoded again.

// AppendAsker appends who asks for the command that is appended next; nothing if nobody was proven to.
func AppendAsker(b []byte, a *access.Asker) []byte {
	if a == nil {
		return b
	}
	c := codec{writing: true, b: b}
	body := c.open(kindAsker)
	system := a == &access.System
	if c.flag("system", &system); !system {
		c.asker(a)
	}
	c.shut(body)
	return c.b
}

func (c *codec) asker(a *access.Asker) {
	c.text("principal", &a.Principal)
	c.names("groups", &a.Groups)
	c.text("token", &a.Token)
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
	if c.left() == 0 || c.b[c.at] != kindAsker {
		return nil, nil
	}
	_, body, err := c.nextFrame()
	if err != nil {
		return nil, err
	}
	if a := known.find(body.b); a != nil {
		return a, nil
	}
	a, system := new(access.Asker), false
	if body.flag("system", &system); system {
		a = &access.System
	} else {
		body.asker(a)
		if err := a.Check(); body.fault == nil && err != nil {
			body.fail("principal", err.Error())
		}
	}
	body.end()
	if body.fault != nil {
		return nil, body.refused(commandNames[kindAsker])
	}
	known.add(body.b, a)
	return a, nil
}

func (e *Entry) setAsker(i int, a *access.Asker) {
	if e.Askers == nil {
		e.Askers = make([]*access.Asker, len(e.Commands), cap(e.Commands))
	}
	e.Askers[i] = a
}
