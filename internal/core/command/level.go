package command

// A Level is a set of rules by which a state decides. Servers of several versions apply one
// log, and must come to one state: so every rule belongs to a level, a state decides by the
// rules of the level that it is at, and only the log raises it. A rule that changes keeps its
// old form for all levels below the one that it changes at.
//
// Levels are numbered by release. What decides inside Apply includes limits and Validate: a
// command whose limits change at a level has a method ValidateAt.
type Level uint64

// The levels.
const (
	// Level3 is the oldest: what was written before it is decided by it too.
	Level3 Level = 3
	// Level4 is that of the release after it.
	Level4 Level = 4

	// NewestLevel is the newest whose rules are known here, and OldestLevel the oldest.
	NewestLevel = Level4
	OldestLevel = Level3
)

// ValidateAt reports what is wrong with a command by the rules of a level.
func ValidateAt(c Command, at Level) error {
	if c, ok := c.(interface{ ValidateAt(Level) error }); ok {
		return c.ValidateAt(at)
	}
	return c.Validate()
}
