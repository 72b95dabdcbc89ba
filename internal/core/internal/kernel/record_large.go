package kernel

import "github.com/leasehold/leasehold"

// NamesLarge reports whether a record, or a former version of one, has a large value.
func (s *State) NamesLarge(d leasehold.Digest) bool { return s.records.Names(d) }

// Larges calls see with each large value that is named, in order, until it returns false.
func (s *State) Larges(see func(leasehold.Large) bool) { s.records.ScanLarges(see) }

// NamesLarge reports whether a record, or a former version of one, has a large value.
func (v *view) NamesLarge(d leasehold.Digest) bool { return v.s.NamesLarge(d) }
