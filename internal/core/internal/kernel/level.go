package kernel

import "fmt"

// A level is a set of rules for deciding. A cluster is raised to a new one only when all its
// servers know it; until then every server decides by the old rules, so that replicas of two
// releases come to the same state.

// Level returns the level that the state is at.
func (s *State) Level() Level { return s.level }

// Raise lets the state decide by the rules of a newer level from now on. The program has to
// know it, which the caller sees to: see replica.KnownLevels.
func (s *State) Raise(to Level) error {
	if to <= s.level {
		return fmt.Errorf("the state is at level %d and cannot be raised to %d", s.level, to)
	}
	s.level = to
	return nil
}

// NewAt returns the state before the first command, at a level, with its subjects.
func NewAt(level Level, subjects *Subjects) *State {
	return &State{
		level: level, subjects: subjects, due: newDeadlines(), alarms: subjects.NewAlarms(),
		reservations: subjects.NewReservations(), learning: subjects.NewLearning(), records: subjects.NewRecords(),
	}
}
