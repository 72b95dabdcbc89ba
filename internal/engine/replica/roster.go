package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// A Roster is the cluster's own list of its servers. Raft knows ids and votes alone; names,
// addresses, versions and who was removed are replicated beside it, by the same entries of the
// log.

// A Member is a server that belongs to the cluster.
type Member struct {
	ID      uint64 `json:"id"` // never given to another
	Name    string `json:"name,omitempty"`
	Peer    string `json:"peer,omitempty"`    // where the other servers reach it
	Client  string `json:"client,omitempty"`  // where clients reach it
	Version string `json:"version,omitempty"` // of the program that it runs
	// Dir names its data directory: one that comes with another has forgotten its votes.
	Dir    string `json:"dir,omitempty"`
	Voter  bool   `json:"voter,omitempty"`
	Levels Levels `json:"levels,omitzero"` // that its program knows; zero: it has not said yet

	unknown string // what a newer version says of it, as JSON; kept for when this one is upgraded
}

// A Roster is who belongs to the cluster, as of one place in the log. It is immutable: a change
// makes another one, so that other goroutines may keep the one they have.
type Roster struct {
	Cluster string   `json:"cluster"`          // names the cluster: no two have the same
	Next    uint64   `json:"next"`             // the id that the next member gets; it only grows
	Members []Member `json:"members"`          // in the order of their ids
	Removed []uint64 `json:"removed"`          // who was a member, and never will be again
	Open    uint64   `json:"open,omitempty"`   // index of a change of voters that is not settled
	Leaves  *Member  `json:"leaves,omitempty"` // whom that change removes
	// Level is the one that the state was last raised to; 0: the cluster has just begun, or
	// comes from a version that knew no levels, and has decided on none yet.
	Level core.Level `json:"level,omitempty"`
}

// ChangeKind is what a change does.
type ChangeKind uint8

// The kinds of change.
const (
	Add      ChangeKind = iota + 1 // takes in a member without a vote
	Announce                       // says what is new about one: addresses, version
	Promote                        // gives one its vote
	Remove                         // ends a membership for good
	Sum                            // changes nothing: a place in the log at which all sum up their state
	settle                         // says that a change of voters can no longer be forgotten
	Raise                          // raises the level of the state
)

// A Change is a change of the roster, as it is written in the log.
type Change struct {
	Kind   ChangeKind `json:"kind"`
	Member Member     `json:"member"`
	Level  core.Level `json:"level,omitempty"` // of a raise; asked for as 0: the newest that all members know
}

func (k ChangeKind) String() string {
	switch k {
	case Add:
		return "add"
	case Announce:
		return "announce"
	case Promote:
		return "promote"
	case Remove:
		return "remove"
	case Sum:
		return "sum"
	case settle:
		return "settle"
	case Raise:
		return "raise"
	}
	return fmt.Sprintf("change %d", uint8(k))
}

// maxMembers is how many servers a cluster may have: each of them gets everything, and a
// majority has to confirm every write.
const maxMembers = 16

// Member returns a member; false: there is none of that id.
func (r *Roster) Member(id uint64) (Member, bool) {
	for _, m := range r.Members {
		if m.ID == id {
			return m, true
		}
	}
	return Member{}, false
}

// Named returns the member of a name.
func (r *Roster) Named(name string) (Member, bool) {
	for _, m := range r.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// Peers returns all servers that have to be reached: the members, and one that is about to
// leave, whose vote may be needed until nobody can forget that it has none.
func (r *Roster) Peers() []Member {
	if r.Leaves == nil {
		return r.Members
	}
	return append(slices.Clone(r.Members), *r.Leaves)
}

// Peer returns one of the servers that have to be reached.
func (r *Roster) Peer(id uint64) (Member, bool) {
	for _, m := range r.Peers() {
		if m.ID == id {
			return m, true
		}
	}
	return Member{}, false
}

// Voters returns the ids of the members that have a vote.
func (r *Roster) Voters() (ids []uint64) {
	for _, m := range r.Members {
		if m.Voter {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Admit returns an error if a server is not the one that it claims to be, by its id and its
// data directory. A server that lost its directory has forgotten its votes, and could vote
// twice in one term. A stranger with an id that was not given yet is let in: it may know more
// of the log than this server does.
func (r *Roster) Admit(id uint64, dir string) error {
	if slices.Contains(r.Removed, id) {
		return engine.Refused("server %d was removed from the cluster: to take part again, it has to join as a new "+
			"one, with an empty data directory, in a place that leasehold cluster add prepared", id)
	}
	for _, m := range r.Peers() {
		if m.ID == id && m.Dir != "" && m.Dir != dir {
			return engine.Refused("server %d (%s) has come back without its data, and with it the votes that it "+
				"gave: remove it from the cluster (leasehold cluster remove %s), and let it join as a new one", id,
				m.Name, m.Name)
		}
	}
	return nil
}

// encode writes a change as the log has it.
func (c Change) encode() ([]byte, error) { return json.Marshal(c) }

// decodeChange reads a change from the log. Unknown fields are refused: a change that this
// version understands only in part must not be carried out in part.
func decodeChange(cc *raftpb.ConfChange) (Change, error) {
	if len(cc.GetContext()) == 0 && cc.GetType() == raftpb.ConfChangeAddNode {
		// The first entry of a server that was made when there was only ever one.
		return Change{Kind: Add, Member: Member{ID: cc.GetNodeId(), Voter: true}}, nil
	}
	var c Change
	d := json.NewDecoder(bytes.NewReader(cc.GetContext()))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Change{}, fmt.Errorf("a change of the members is not readable: %w", err)
	}
	if c.Kind < Add || c.Kind > Raise {
		return Change{}, fmt.Errorf("a change of the members is of the unknown kind %d: use the newer version that "+
			"wrote it", c.Kind)
	}
	if cc.GetType() != c.raftType() {
		return Change{}, errors.New("a change of the members is not what raft takes it for")
	}
	return c, nil
}

// raftType is what a change is to raft. What raft has no notion of is an update of a node,
// which it orders like any change and otherwise ignores.
func (c Change) raftType() raftpb.ConfChangeType {
	switch {
	case c.Kind == Add && !c.Member.Voter:
		return raftpb.ConfChangeAddLearnerNode
	case c.Kind == Add, c.Kind == Promote:
		return raftpb.ConfChangeAddNode
	case c.Kind == Remove:
		return raftpb.ConfChangeRemoveNode
	}
	return raftpb.ConfChangeUpdateNode
}

// errMisfit is for a change that does not fit the roster that it meets. A leader proposes none,
// so two leaders in a row have changed the same thing; then the later change does nothing, on
// all servers.
var errMisfit = engine.Refused("the members have changed in the meantime: look at them and ask again")

// with returns the roster after a change at an index of the log. It must depend on nothing but
// its arguments: every server comes to the same roster.
func (r *Roster) with(c Change, index uint64) (*Roster, error) {
	next := *r
	next.Members = slices.Clone(r.Members)
	at := slices.IndexFunc(next.Members, func(m Member) bool { return m.ID == c.Member.ID })
	switch c.Kind {
	case Add:
		if c.Member.ID < max(1, r.Next) {
			return nil, errMisfit // ids are not given twice
		}
		if !r.fits(c.Member) {
			return nil, errMisfit
		}
		next.Members = append(next.Members, c.Member)
		next.Next = c.Member.ID + 1
	case Announce:
		if at < 0 || !r.fits(c.Member) {
			return nil, errMisfit
		}
		next.Members[at] = next.Members[at].Announced(c.Member)
	case Promote:
		if at < 0 || r.Open != 0 {
			return nil, errMisfit
		}
		next.Members[at].Voter = true
		next.Open = index
	case Remove:
		if at < 0 || r.Open != 0 {
			return nil, errMisfit
		}
		// Not in Removed before it is settled: the one that leaves has to be reachable until
		// then.
		next.Open, next.Leaves = index, new(next.Members[at])
		next.Members = slices.Delete(next.Members, at, at+1)
	case settle:
		if r.Open == 0 {
			return nil, errMisfit
		}
		if r.Leaves != nil {
			next.Removed = append(slices.Clone(r.Removed), r.Leaves.ID)
		}
		next.Open, next.Leaves = 0, nil
	case Raise:
		if c.Level < max(r.Level, core.OldestLevel) || len(r.without(c.Level)) > 0 {
			return nil, errMisfit
		}
		next.Level = c.Level
	case Sum:
		return r, nil
	}
	return &next, nil
}

// Announced returns a member with what it newly says of itself. What it leaves out stays.
func (m Member) Announced(by Member) Member {
	for _, field := range []struct {
		old *string
		new string
	}{{&m.Name, by.Name}, {&m.Peer, by.Peer}, {&m.Client, by.Client}, {&m.Version, by.Version}, {&m.Dir, by.Dir}} {
		if field.new != "" {
			*field.old = field.new
		}
	}
	if by.Levels != (Levels{}) {
		m.Levels = by.Levels
	}
	if by.unknown != "" {
		m.unknown = by.unknown
	}
	return m
}
