package consul

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A note is the value of a lease and of who was last.
type note struct {
	ID     string            `json:"id"`
	Holder string            `json:"holder,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Reason string            `json:"reason,omitempty"`
	TTL    string            `json:"ttl"`
	Since  time.Time         `json:"since"` // by the clock of who asked, for display
	Value  []byte            `json:"value,omitempty"`

	Token leasehold.Token `json:"token,omitempty"` // of a lease that was given another session; see token
}

func newNote(r *store.Request) note {
	return note{ID: r.ID, Holder: r.Holder, Reason: r.Reason, Value: r.Value, Labels: store.LabelMap(r.Labels),
		TTL: r.TTL.String(), Since: time.Now().UTC().Truncate(time.Millisecond)}
}

// ttl returns 0 if the note is not ours.
func (n note) ttl() time.Duration {
	ttl, err := time.ParseDuration(n.TTL)
	if err != nil {
		return 0
	}
	return ttl
}

// noteOf reads a note; one that somebody else wrote there is empty.
func noteOf(kv *api.KVPair) (n note) {
	if kv == nil || json.Unmarshal(kv.Value, &n) != nil {
		return note{}
	}
	return n
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has strings and times only
	}
	return text
}

// A claim is a lease as Consul has it.
type claim struct {
	note
	resource string
	session  string
	index    uint64 // of the last write to the key
}

// token returns the token by the key alone. It is the index of the grant, and a later write notes it.
func (c *claim) token() leasehold.Token { return cmp.Or(c.Token, leasehold.Token(c.index)) }

// claimOf reads the key of a lease; nil if nobody holds it.
func claimOf(resource string, kv *api.KVPair) *claim {
	if kv == nil || kv.Session == "" {
		return nil
	}
	return &claim{note: noteOf(kv), resource: resource, session: kv.Session, index: kv.ModifyIndex}
}

// by reports whether a lease is that of an id. It is not if somebody else wrote to the key.
func (c *claim) by(id string) bool { return c != nil && c.ID == id }

// toLease returns a lease of which something is left.
func (s *Store) toLease(c *claim, token leasehold.Token, remaining time.Duration) leasehold.Lease {
	l := leasehold.Lease{
		Namespace: s.namespace, Resource: c.resource, ID: c.ID, Holder: c.Holder, Labels: store.LabelsOf(c.Labels),
		Reason: c.Reason,
		State:  leasehold.Leased, Token: token, Floor: token, TTL: c.ttl(), Acquired: c.Since,
		Revision: leasehold.Revision(c.index),
	}
	if remaining > 0 {
		l.Remaining, l.Expires = remaining, time.Now().Add(remaining)
	}
	return l
}

// A mark remembers that an id was used. It is created with the lease, so that its create index is the
// token, or when an unknown id is released.
type mark struct {
	How    string    `json:"how,omitempty"` // empty: the lease was granted, and nobody ended it
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`

	token   leasehold.Token
	session string
	index   uint64
}

// markOf reads a mark; nil if there is none.
func markOf(kv *api.KVPair) *mark {
	if kv == nil {
		return nil
	}
	var m mark
	if json.Unmarshal(kv.Value, &m) != nil {
		m = mark{How: leasehold.Released.String()} // not ours: an id that cannot be used
	}
	m.token, m.session, m.index = leasehold.Token(kv.CreateIndex), kv.Session, kv.ModifyIndex
	return &m
}

// ending returns how the lease of a mark ended, given that it has.
func (m *mark) ending(id string) *leasehold.Ending {
	if m == nil {
		return &leasehold.Ending{ID: id}
	}
	e := &leasehold.Ending{ID: id, Token: m.token, How: leasehold.ByTTL, By: m.By, Reason: m.Reason, At: m.At}
	switch m.How {
	case leasehold.Released.String():
		e.How = leasehold.Released
	case leasehold.ByBreak.String():
		e.How = leasehold.ByBreak
	}
	return e
}
