package kernel

import (
	"errors"

	"github.com/leasehold/leasehold/internal/btree"
)

// A holder believes in its lease for as long as it renews its session. What others do to one of
// the leases (an operator breaks it, somebody changes its holder, its time is up) must therefore
// stand in the answer to that very renewal: a watch may be silent for any length of time. So a
// session counts what others did. A holder that hears the number it knew has lost nothing.

// Touched is what others did to the leases of a session. It is never changed in place.
type Touched struct {
	Count uint64   // how often
	IDs   []string // of the newest leases, the newest last
}

func (session *Session) touched() Touched {
	if session.Touched == nil {
		return Touched{}
	}
	return *session.Touched
}

// maxIntervened is how many leases a session names that others did something to.
const maxIntervened = 256

// intervene counts that a lease of a session ends or changes by the doing of others.
func (t *turn) intervene(sp *space, c *Claim) {
	session, ok := sp.sessions.Get(c.Session)
	if !ok {
		return // it has none, or ends with it
	}
	before := session.touched()
	first := max(0, len(before.IDs)-maxIntervened+1)
	// As in a fifo, copies share one array: an older one never sees what is behind its own end.
	t.freshSession(sp, session).Touched = &Touched{before.Count + 1, append(before.IDs[first:], c.ID)}
}

// marks are the ids that a session withdrew before they were known. A value is never changed:
// with makes another, which shares most of it.
type marks struct{ ids btree.Set[string] }

// A Mark is one of them, in a snapshot.
type Mark struct {
	Session string
	ID      string
}

func (m *marks) has(id string) bool { return m != nil && m.ids.Contains(id) }

func (m *marks) len() int {
	if m == nil {
		return 0
	}
	return m.ids.Len()
}

func (m *marks) with(id string) *marks {
	more := &marks{}
	if m != nil {
		more.ids = *m.ids.Copy()
	}
	more.ids.Insert(id)
	return more
}

// used is how much a session has of what it may have.
func (session *Session) used() int { return session.Claims + session.marks.len() }

func (sp *space) markPieces(session *Session, yield func(Piece) bool) (more bool) {
	more = true
	if session.marks != nil {
		session.marks.ids.Scan(func(id string) bool {
			more = yield(Piece{sp.name, &Mark{session.ID, id}})
			return more
		})
	}
	return more
}

func (t *turn) restoreMark(sp *space, m *Mark) error {
	session, ok := sp.sessions.Get(m.Session)
	if !ok || session.marks.has(m.ID) {
		return errors.New("snapshot has a withdrawn id twice, or without its session")
	}
	marked := *session
	marked.marks = session.marks.with(m.ID)
	sp.sessions.Set(marked.ID, &marked)
	return nil
}
