package replica

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// Servers of several versions can form one cluster while they are upgraded one after the other.
// The state decides by the rules of one level, which all of them know; the level is raised
// through the log, once every member has said that it knows the next one. Nobody writes what
// needs a higher level, and a server that does not know the cluster's level is refused in the
// greeting. Without this, an old and a new server would apply the same entry differently, and
// their states would part in silence.

// Levels is a range of levels, both ends included.
type Levels struct {
	Oldest core.Level `json:"oldest"`
	Newest core.Level `json:"newest"`
}

// KnownLevels are those that this program knows. Tests have programs that know the level after
// the newest, which has no rules of its own: so what is said above stays proved while there is
// only one level.
var KnownLevels = Levels{core.OldestLevel, core.NewestLevel}

// Has reports whether a level is in the range.
func (l Levels) Has(level core.Level) bool { return l.Oldest <= level && level <= l.Newest }

func (l Levels) String() string {
	if l.Oldest == l.Newest {
		return fmt.Sprintf("level %d", l.Oldest)
	}
	return fmt.Sprintf("levels %d to %d", l.Oldest, l.Newest)
}

// Active is the level that the state of a cluster is at. One that has decided on none yet is at
// that of core.New.
func (r *Roster) Active() core.Level { return max(r.Level, core.OldestLevel) }

// fits reports whether a member knows the cluster's level, or has not said which ones it knows.
func (r *Roster) fits(m Member) bool { return m.Levels == (Levels{}) || m.Levels.Has(r.Active()) }

// without returns the members that are not known to know a level. One that is about to leave
// counts: it still applies the log.
func (r *Roster) without(level core.Level) (missing []Member) {
	for _, m := range r.Peers() {
		if !m.Levels.Has(level) {
			missing = append(missing, m)
		}
	}
	return missing
}

// commonLevel is the newest level that all members know, and one who knows levels up to newest;
// 0: some have not said yet.
func (r *Roster) commonLevel(newest core.Level) core.Level {
	common := newest
	for _, m := range r.Peers() {
		common = min(common, m.Levels.Newest)
	}
	return common
}

// considerRaise decides what a request to raise the level amounts to.
func (n *Node) considerRaise(c Change) (Change, bool, error) {
	if c.Level == 0 {
		c.Level = max(n.roster.commonLevel(n.levels().Newest), n.roster.Active())
	}
	c.Member = Member{ID: n.id}
	missing := n.roster.without(c.Level)
	switch {
	case c.Level > n.levels().Newest:
		return c, false, engine.Refused("level %d is unknown here: this server knows %v", c.Level, n.levels())
	case c.Level < n.roster.Active():
		return c, false, engine.Refused("the cluster is at level %d already, and a level is never lowered",
			n.roster.Active())
	case c.Level == n.roster.Level:
		return c, false, nil
	case len(missing) > 0 && c.Level > n.roster.Active():
		return c, false, engine.Refused("the level cannot be raised to %d: not all servers know it: %s. Start them "+
			"with a newer version first, or remove them",
			c.Level, knowledge(missing))
	case len(missing) > 0:
		return c, false, nil // nothing to decide before they have said what they know
	}
	return c, true, nil
}

// knowledge says, for an error, which levels members know.
func knowledge(members []Member) string {
	parts := make([]string, len(members))
	for i, m := range members {
		if parts[i] = fmt.Sprintf("%s has not said what it knows", m.Name); m.Levels != (Levels{}) {
			parts[i] = fmt.Sprintf("%s knows %v", m.Name, m.Levels)
		}
	}
	return strings.Join(parts, ", ")
}

// decideLevel proposes the first level of a cluster that has decided on none: the newest that
// all members know. Later levels are raised only when an operator asks for it, so that servers
// can go back to the version before: once a level is in the log, an older program cannot apply
// it. It reports whether it proposed one.
func (n *Node) decideLevel() bool {
	if n.roster.Level != 0 {
		return false
	}
	level := n.roster.commonLevel(n.levels().Newest)
	if level < core.OldestLevel || len(n.roster.without(level)) > 0 {
		return false
	}
	return n.proposeChange(Change{Kind: Raise, Member: Member{ID: n.id}, Level: level})
}

// raise lets the state decide by the level that the log says. A program that does not know it
// has to stop: it would apply what follows by other rules than the rest.
func (n *Node) raise(to core.Level, news bool) error {
	if to <= n.state.Level() {
		return nil
	}
	if to > n.levels().Newest {
		return fmt.Errorf("the level is raised to %d, and this version knows %v: use the newer version that the "+
			"others use", to, n.levels())
	}
	if err := n.state.Raise(to); err != nil {
		return err
	}
	if news {
		n.log.Info("the level of the cluster was raised", "level", to)
	}
	n.tellLevel()
	return nil
}

// tellLevel reports the state's level to those who encode commands.
func (n *Node) tellLevel() {
	if n.config.Leveled != nil {
		n.config.Leveled(n.state.Level())
	}
}

// levels returns those that this node's program knows; tests and the simulator set others.
func (n *Node) levels() Levels {
	if n.config.Levels == (Levels{}) {
		return KnownLevels
	}
	return n.config.Levels
}

// A newer server may say more of itself than this version knows. That is kept and written out
// again, so that a server that is upgraded later has the same roster as those that were
// upgraded first: a snapshot must not depend on which version took it.

// memberFields are the JSON names of Member's own fields. A name that is missing here would be
// written twice.
var memberFields = []string{"id", "name", "peer", "client", "version", "dir", "voter", "levels"}

type plainMember Member

// MarshalJSON writes what this version knows of a member, and what it does not.
func (m Member) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(plainMember(m))
	if err != nil || m.unknown == "" {
		return b, err
	}
	return append(append(b[:len(b)-1], ','), m.unknown[1:]...), nil
}

// UnmarshalJSON keeps the fields that this version does not know.
func (m *Member) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if err := json.Unmarshal(b, (*plainMember)(m)); err != nil {
		return err
	}
	m.unknown = ""
	for name := range all {
		// Case is ignored, as encoding/json does when it matches fields.
		if slices.ContainsFunc(memberFields, func(known string) bool { return strings.EqualFold(known, name) }) {
			delete(all, name)
		}
	}
	if len(all) == 0 {
		return nil
	}
	unknown, err := json.Marshal(all) // in the order of the names
	m.unknown = string(unknown)
	return err
}
