package command

// A Level is a set of rules by which a state decides. Servers of several versions apply one
// log, and must come to one state: so every rule belongs to a level, a state decides by the
// rules of the level that it is at, and only the log raises it. A rule that changes keeps its
// old form for all levels below the one that it changes at. What decides inside Apply includes
// limits and Validate.
//
// Levels are numbered by release.
type Level uint64

// The levels.
const (
	Level1 Level = 1 // that of the first release

	// NewestLevel is the newest whose rules are known here, and OldestLevel the oldest.
	NewestLevel = Level1
	OldestLevel = Level1
)
