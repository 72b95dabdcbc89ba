package replica

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// Servers of several versions can be one cluster while each is upgraded after the other. The
// state decides by the rules of one level, which all of them know; it is raised through the
// log, once every member has said that it knows the next one. Nobody writes what needs a
// higher level, and a server that does not know the cluster's is refused in the greeting.

// Levels is a range of levels, both ends included.
type Levels struct {
	Oldest core.Level `json:"oldest"`
	Newest core.Level `json:"newest"`
}

// KnownLevels are those that this program knows.
var KnownLevels = Levels{core.OldestLevel, core.NewestLevel}

// Has reports whether a level is in the range.
func (l Levels) Has(level core.Level) bool { return l.Oldest <= level && level <= l.Newest }

func (l Levels) String() string {
	if l.Oldest == l.Newest {
		return fmt.Sprintf("level %d", l.Oldest)
	}
	return fmt.Sprintf("levels %d to %d", l.Oldest, l.Newest)
}

// Active is the level that the state of a cluster is at.
func (r *Roster) Active() core.Level { return max(r.Level, core.Level3) }

// fits reports whether a member knows the cluster's level, or has not said what it knows.
func (r *Roster) fits(m Member) bool { return m.Levels == (Levels{}) || m.Levels.Has(r.Active()) }

// without returns the members that do not know a level, as far as they have said.
func (r *Roster) without(level core.Level) (missing []Member) {
	for _, m := range r.Peers() {
		if !m.Levels.Has(level) {
			missing = append(missing, m)
		}
	}
	return missing
}

// commonLevel is the newest level that all members know; 0: some have not said yet.
func (r *Roster) commonLevel() core.Level {
	common := core.NewestLevel
	for _, m := range r.Peers() {
		common = min(common, m.Levels.Newest)
	}
	return common
}

// considerRaise says what raising the level comes to.
func (n *Node) considerRaise(c Change) (Change, bool, error) {
	if c.Level == 0 {
		c.Level = max(n.roster.commonLevel(), n.roster.Active())
	}
	c.Member = Member{ID: n.id}
	missing := n.roster.without(c.Level)
	if n.plants(RaiseUnready) {
		missing = nil
	}
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

// knowledge says what members know.
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
// all members know. Later ones are raised only when an operator asks for it, so that servers can
// go back to the version before. It reports whether it proposed one.
func (n *Node) decideLevel() bool {
	if n.roster.Level != 0 {
		return false
	}
	level := min(n.roster.commonLevel(), n.levels().Newest)
	if level < core.OldestLevel || len(n.roster.without(level)) > 0 {
		return false
	}
	return n.proposeChange(Change{Kind: Raise, Member: Member{ID: n.id}, Level: level})
}

// raise lets the state decide by the level that the log says.
func (n *Node) raise(to core.Level) error {
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
	n.log.Info("the level of the cluster was raised", "level", to)
	n.tellLevel()
	return nil
}

// tellLevel says at which level the state is.
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

// A newer server may say more of itself than this version knows. It is kept, so that this
// one knows it once it is upgraded, as all others do.

// memberFields are the names under which Member's own fields stand.
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
		// As encoding/json finds the fields of a struct.
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
