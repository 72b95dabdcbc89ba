package core

import "fmt"

// A level is a set of rules for deciding. A cluster is raised to a new one only when all its
// servers know it; until then every server decides by the old rules, so that replicas of two
// releases come to the same state.

// atLeast reports whether the rules of a level apply.
func (s *State) atLeast(level Level) bool { return s.level >= level }

// Level returns the level that the state is at.
func (s *State) Level() Level { return s.level }

// Raise lets the state decide by the rules of a newer level from now on. The program has to
// know it, which the caller sees to: see replica.KnownLevels.
func (s *State) Raise(to Level) error {
	if to <= s.level {
		return fmt.Errorf("the state is at level %d and cannot be raised to %d", s.level, to)
	}
	if !s.atLeast(Level4) {
		s.beginTotals()
	}
	s.level = to
	s.indexPatterns()
	s.records.Use() // what is written says its level from here on, and need not say less
	return nil
}

// NewAt returns the state before the first command, at a level.
func NewAt(level Level) *State {
	s := &State{level: level, due: newDeadlines(), dates: newDates()}
	if level > Level3 {
		s.records.Use()
	}
	return s
}
