package etcd

import (
	"encoding/json"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A note says who holds or held a resource, or waits for it.
type note struct {
	ID     string            `json:"id"`
	Holder string            `json:"holder,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Reason string            `json:"reason,omitempty"`
	TTL    int64             `json:"ttl"`   // seconds
	Since  time.Time         `json:"since"` // by the clock of who asked, for display
	Value  []byte            `json:"value,omitempty"`
}

func newNote(r *store.Request) note {
	return note{ID: r.ID, Holder: r.Holder, Reason: r.Reason, Value: r.Value, Labels: store.LabelMap(r.Labels),
		TTL: int64(r.TTL / time.Second), Since: time.Now().UTC().Truncate(time.Millisecond)}
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has strings, numbers and times only
	}
	return string(text)
}

// A claim is a lease or a waiter as etcd has it.
type claim struct {
	note
	resource string
	lease    clientv3.LeaseID
	revision int64 // at which it was created
}

// heldBy returns the claim of a holder's key; nil if there is none. The note about it is another key.
func (s *Store) heldBy(resource string, kv, about *mvccpb.KeyValue) *claim {
	if kv == nil {
		return nil
	}
	c := &claim{resource: resource, lease: clientv3.LeaseID(kv.Lease), revision: kv.CreateRevision}
	if c.note = noteOf(about); c.ID != string(kv.Value) {
		c.note = note{ID: string(kv.Value)}
	}
	return c
}

// noteOf reads a note; one that somebody else wrote there is empty.
func noteOf(kv *mvccpb.KeyValue) (n note) {
	if kv == nil || json.Unmarshal(kv.Value, &n) != nil {
		return note{}
	}
	return n
}

// by reports whether the claim is that of an id. It is not if somebody else wrote to the key: then it
// does not end by time.
func (c *claim) by(id string) bool { return c != nil && c.ID == id && c.lease != 0 }

// toLease returns the claim as a lease of which something is left.
func (s *Store) toLease(c *claim, remaining time.Duration) leasehold.Lease {
	l := leasehold.Lease{
		Namespace: s.namespace, Resource: c.resource, ID: c.ID, Holder: c.Holder, Labels: store.LabelsOf(c.Labels),
		Reason: c.Reason, State: leasehold.Leased, Token: leasehold.Token(c.revision),
		Floor: leasehold.Token(c.revision),
		TTL:   time.Duration(c.TTL) * time.Second, Acquired: c.Since, Revision: leasehold.Revision(c.revision),
	}
	if remaining > 0 {
		l.Remaining, l.Expires = remaining, time.Now().Add(remaining)
	}
	return l
}

// A mark remembers that an id was used. It is created with the lease, so that its create revision is
// the token, or when an unknown id is released.
type mark struct {
	How    string          `json:"how,omitempty"` // empty: the lease was granted, and nobody ended it
	By     string          `json:"by,omitempty"`
	Reason string          `json:"reason,omitempty"`
	At     time.Time       `json:"at,omitzero"`
	Token  leasehold.Token `json:"token,omitempty"` // 0: the create revision
}

func markOf(kv *mvccpb.KeyValue) *mark {
	if kv == nil {
		return nil
	}
	var m mark
	if json.Unmarshal(kv.Value, &m) != nil {
		m = mark{How: leasehold.Released.String()} // not ours: an id that cannot be used
	}
	if m.Token == 0 {
		m.Token = leasehold.Token(kv.CreateRevision)
	}
	return &m
}

// ending returns how the lease of a mark ended, given that it has.
func (m *mark) ending(id string) *leasehold.Ending {
	if m == nil {
		return &leasehold.Ending{ID: id}
	}
	e := &leasehold.Ending{ID: id, Token: m.Token, How: leasehold.ByTTL, By: m.By, Reason: m.Reason, At: m.At}
	switch m.How {
	case leasehold.Released.String():
		e.How = leasehold.Released
	case leasehold.ByBreak.String():
		e.How = leasehold.ByBreak
	}
	return e
}
