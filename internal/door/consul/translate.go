package consul

import (
	"cmp"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
)

// Indexes. A client that is told index 0 would ask again and again, and a namespace in which nothing happened is at
// revision 0. So indexes are revisions plus one. To show 1 for 0 and all others as they are would not do: a client that
// waits for what comes after 1 would miss what the first command did.

func indexOf(r leasehold.Revision) uint64 { return uint64(r) + 1 }

// revisionOf returns the revision that an index stands for; 0: none, since no record has it.
func revisionOf(index uint64) leasehold.Revision { return leasehold.Revision(max(1, index) - 1) }

// after is where a watch begins that has seen an index.
func after(index uint64) engine.Position {
	return engine.Position{Revision: revisionOf(index), N: allOf}
}

// An entry is a key as Consul shows it.
//
// LockIndex is the fencing token of the lock that the key was last held by. In Consul it counts how often the key was
// acquired, and begins anew when the key is deleted, or is written without a session: who compares it then takes an
// old holder for a new one. Tokens grow with every grant, and never go back.
type entry struct {
	LockIndex   uint64
	Key         string
	Flags       uint64
	Value       []byte // nil, which is null in JSON, if it is empty: so does Consul
	Session     string `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

// entryOf shows a record without its value. Who has it through another door has no session here: the id of the lease
// stands in its place, so that clients wait for the key to change.
func entryOf(r *leasehold.Record) entry {
	return entry{LockIndex: uint64(r.Token), Key: r.Path, Session: cmp.Or(r.Session, r.Lease),
		CreateIndex: indexOf(r.Create), ModifyIndex: indexOf(r.Mod)}
}

// Values. A record has no flags, so that a value with flags is kept behind them. One without is kept as it is, and
// other doors read it as it was written.

// flagged is how a value begins that has flags.
const flagged = "\x00consul\x01"

// pack returns what is kept of a value and its flags.
func pack(value []byte, flags uint64) []byte {
	if flags == 0 && !strings.HasPrefix(string(value[:min(len(value), len(flagged))]), flagged) {
		return value
	}
	packed := make([]byte, 0, len(flagged)+binary.MaxVarintLen64+len(value))
	return append(binary.AppendUvarint(append(packed, flagged...), flags), value...)
}

// unpack returns a value and its flags. What was not packed is a value without flags.
func unpack(kept []byte) (value []byte, flags uint64) {
	if len(kept) >= len(flagged) && string(kept[:len(flagged)]) == flagged {
		if flags, n := binary.Uvarint(kept[len(flagged):]); n > 0 {
			kept = kept[len(flagged)+n:]
			return kept[:len(kept):len(kept)], flags
		}
	}
	return kept, 0
}

// Sessions. What Consul knows of a session is kept in labels of ours.

const (
	labelBehavior  = "consul-behavior"
	labelChecks    = "consul-checks"
	labelHolder    = "consul-holder"
	labelIndex     = "consul-index"
	labelLockDelay = "consul-lock-delay"
	labelName      = "consul-name"
	labelTTL       = "consul-ttl"
	labelDoor      = "door"
)

const (
	release = "release" // the keys that the session held stay
	remove  = "delete"
)

const (
	defaultLockDelay = 15 * time.Second
	maxLockDelay     = time.Minute

	minTTL = 10 * time.Second
	maxTTL = 24 * time.Hour

	// late is how many TTLs a session lasts. Clients know that Consul waits for two, and some ask for half of what they
	// want for that reason.
	late = 2

	// lasting is the TTL of a session that has none in Consul: see lasting.go.
	lasting = leasehold.MaxTTL
)

// nodeName is the one node that there is.
const nodeName = "leasehold"

// aliveCheck is the one check that there is. It always passes.
const aliveCheck = "serfHealth"

// A session is a session as Consul shows it.
type session struct {
	ID            string
	Name          string
	Node          string
	LockDelay     time.Duration
	Behavior      string
	TTL           string
	NodeChecks    []string
	ServiceChecks []serviceCheck
	CreateIndex   uint64
	ModifyIndex   uint64

	holder string // how its leases name who holds them
}

type serviceCheck struct {
	ID        string
	Namespace string
}

// labels returns what is kept of a session.
func (s *session) labels() leasehold.Labels {
	return leasehold.Labels{
		{Key: labelBehavior, Value: s.Behavior},
		{Key: labelChecks, Value: strings.Join(s.NodeChecks, ",")},
		{Key: labelHolder, Value: s.holder},
		{Key: labelIndex, Value: strconv.FormatUint(s.CreateIndex, 10)},
		{Key: labelLockDelay, Value: s.LockDelay.String()},
		{Key: labelName, Value: s.Name},
		{Key: labelTTL, Value: s.TTL},
		{Key: labelDoor, Value: doorName},
	}
}

// sessionOf shows a session. One that came through another door has no lock-delay, and its keys stay.
func sessionOf(from leasehold.Session) session {
	s := session{ID: from.ID, Node: nodeName, Behavior: release, TTL: from.TTL.String(), NodeChecks: []string{},
		CreateIndex: 1, holder: from.ID}
	for _, l := range from.Labels {
		switch l.Key {
		case labelBehavior:
			s.Behavior = l.Value
		case labelChecks:
			if l.Value != "" {
				s.NodeChecks = strings.Split(l.Value, ",")
			}
		case labelHolder:
			s.holder = l.Value
		case labelIndex:
			s.CreateIndex, _ = strconv.ParseUint(l.Value, 10, 64)
		case labelLockDelay:
			s.LockDelay, _ = time.ParseDuration(l.Value)
		case labelName:
			s.Name = l.Value
		case labelTTL:
			s.TTL = l.Value
		}
	}
	s.ModifyIndex = s.CreateIndex
	return s
}

// isLasting reports whether a session has no TTL in Consul.
func isLasting(s *leasehold.Session) bool {
	none, ours := false, false
	for _, l := range s.Labels {
		none = none || l.Key == labelTTL && (l.Value == "" || zeroTTL(l.Value))
		ours = ours || l.Key == labelDoor && l.Value == doorName
	}
	return none && ours
}

func zeroTTL(text string) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d == 0
}

// nameless are the names that the libraries give sessions: they say nothing about who holds.
var nameless = map[string]bool{"": true, "Consul API Lock": true, "Consul API Semaphore": true}

// holderOf returns how the holder of a session's leases is called.
func holderOf(name, host string) string {
	switch {
	case !nameless[name] && readable(name):
		return name
	case !nameless[name] || name == "":
		name = "consul client"
	}
	if host == "" {
		return name
	}
	return name + " at " + host
}

// maxHolder is how long the name of a session may be to be that of a holder.
const maxHolder = 256

// readable reports whether a text can be shown to people.
func readable(s string) bool {
	return len(s) <= maxHolder && utf8.ValidString(s) &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
