package core

import "github.com/leasehold/leasehold"

// DefinitionOf returns what applies to a resource, and how many definitions were looked at.
func (s *State) DefinitionOf(namespace, path string) (leasehold.Definition, int) {
	d, looked := s.space(namespace).findDefinition(path)
	if d == nil {
		return leasehold.Definition{}, looked
	}
	return *d, looked
}

// Limits of work, for tests.
const MaxReadWork = maxReadWork
