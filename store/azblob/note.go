package azblob

import (
	"encoding/json"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A note says who holds a resource, or waits for it.
type note struct {
	ID     string            `json:"id"`
	Holder string            `json:"holder,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Reason string            `json:"reason,omitempty"`
	TTL    int64             `json:"ttl_ms"`
	Since  time.Time         `json:"since"` // by the clock of who asked, for display
	Value  []byte            `json:"value,omitempty"`
}

func newNote(r *store.Request) note {
	n := note{ID: r.ID, Holder: r.Holder, Reason: r.Reason, Value: r.Value,
		TTL: r.TTL.Milliseconds(), Since: time.Now().UTC().Truncate(time.Millisecond)}
	n.Labels = store.LabelMap(r.Labels)
	return n
}

func (n note) ttl() time.Duration { return time.Duration(n.TTL) * time.Millisecond }

// noteOf reads a note. What somebody else wrote, or what belongs to another grant, is empty.
func noteOf(data []byte, id string) note {
	n := note{}
	if json.Unmarshal(data, &n) != nil {
		n = note{}
	}
	if n.ID != id {
		n = note{ID: id}
	}
	return n
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has strings, numbers and times only
	}
	return text
}

// toLease returns a lease of which something is left.
func (s *Store) toLease(resource string, n note, token leasehold.Token, remaining time.Duration) leasehold.Lease {
	l := leasehold.Lease{
		Namespace: s.namespace, Resource: resource, ID: n.ID, Holder: n.Holder, Labels: store.LabelsOf(n.Labels),
		Reason: n.Reason, State: leasehold.Leased, Token: token, Floor: token, TTL: n.ttl(), Acquired: n.Since,
		Revision: leasehold.Revision(token),
	}
	if remaining > 0 {
		l.Remaining, l.Expires = remaining, time.Now().Add(remaining)
	}
	return l
}

// A mark says that an id cannot be used, and how its lease ended.
type mark struct {
	How    string          `json:"how"`
	By     string          `json:"by,omitempty"`
	Reason string          `json:"reason,omitempty"`
	At     time.Time       `json:"at,omitzero"`
	Token  leasehold.Token `json:"token,omitempty"`
}

func (m mark) ending(id string) *leasehold.Ending {
	e := &leasehold.Ending{ID: id, Token: m.Token, How: leasehold.Released, By: m.By, Reason: m.Reason, At: m.At}
	if m.How == leasehold.ByBreak.String() {
		e.How = leasehold.ByBreak
	}
	return e
}
