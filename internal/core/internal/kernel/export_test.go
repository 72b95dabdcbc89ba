package kernel

import "github.com/leasehold/leasehold"

// DefinitionOf returns what applies to a resource, and how many definitions were looked at.
func (s *State) DefinitionOf(namespace, path string) (leasehold.Definition, int) {
	d, looked := s.space(namespace).findDefinition(path)
	if d == nil {
		return leasehold.Definition{}, looked
	}
	return *d, looked
}

// SetWork gives entries another budget.
func (s *State) SetWork(n int) { s.smallWork = n }

// SetWorkLike gives entries the budget that those of another state have.
func (s *State) SetWorkLike(other *State) { s.smallWork = other.smallWork }

// Chores returns how many chores were put off.
func (s *State) Chores() int { return s.chores.Len() }

// Limits of work, for tests.
const (
	MaxWork        = maxWork
	MaxAnswerFloor = maxAnswerFloor
)

// Allows is the part of Apply that judges whether somebody may give a command, and nothing else.
func (s *State) Allows(c Command, f From) bool {
	t := s.begin()
	t.setOrigin(f, 0)
	_, refused := t.allow(c)
	return !refused
}

// newState returns a state for the tests in this package, which cannot import the subjects.
func newState() *State { return NewAt(NewestLevel, lent) }

var lent *Subjects

// Lend gives the tests in this package the subjects of a state.
func (s *State) Lend() { lent = s.subjects }
