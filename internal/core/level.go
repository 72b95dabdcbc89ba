package core

import "fmt"

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
	// Level3 is that of v0.1.0. Whatever was written before decides by it too.
	Level3 Level = 3
	// Level4 is that of the release after it.
	Level4 Level = 4

	// NewestLevel is the newest whose rules are known here, and OldestLevel the oldest.
	NewestLevel = Level4
	OldestLevel = Level3
)

// atLeast reports whether the rules of a level apply.
func (s *State) atLeast(level Level) bool { return s.level >= level }

// Level returns the level that the state is at.
func (s *State) Level() Level { return s.level }

// Raise lets the state decide by the rules of a newer level from now on.
func (s *State) Raise(to Level) error {
	if to <= s.level || to > NewestLevel {
		return fmt.Errorf("the state is at level %d and cannot be raised to %d: levels up to %d are known here", s.level, to, NewestLevel)
	}
	if !s.atLeast(Level4) {
		s.beginTotals()
	}
	s.level = to
	s.values = true // what is written says its level from here on, and need not say less
	return nil
}

// NewAt returns the state before the first command, at a level.
func NewAt(level Level) *State { return &State{level: level, values: level > Level3} }

// validate says what is wrong with a command by the rules of a level.
func validate(c Command, at Level) error {
	if c, ok := c.(interface{ ValidateAt(Level) error }); ok {
		return c.ValidateAt(at)
	}
	return c.Validate()
}
