package core

import "github.com/leasehold/leasehold"

// Large values are kept beside the log. The state has their names and counts who says
// them: records as they are, and former versions. What history remembers of records names
// nothing, or a value would stay for as long as anything was done to its record lately.

// A naming is how often a large value is named.
type naming struct {
	count int
	size  int64
}

// HasValues tells whether the state ever named a large value or kept a former version. It
// does so for good, so that all replicas agree on it, however they came to be.
func (s *State) HasValues() bool { return s.values }

// HadValues says that the state did so before it was written.
func (s *State) HadValues() { s.values = true }

// NamesLarge tells whether a record, or a former version of one, has a large value.
func (s *State) NamesLarge(d leasehold.Digest) bool {
	_, named := s.larges.Get(string(d[:]))
	return named
}

// Larges calls see with each large value that is named, in order, until it returns false.
func (s *State) Larges(see func(leasehold.Large) bool) {
	s.larges.Scan(func(digest string, n naming) bool {
		return see(leasehold.Large{SHA256: leasehold.Digest([]byte(digest)), Size: n.size})
	})
}

// NamesLarge tells whether a record, or a former version of one, has a large value.
func (v View) NamesLarge(d leasehold.Digest) bool { return v.s.NamesLarge(d) }

// name counts one more who names a large value; nil is none.
func (s *State) name(large *leasehold.Large) {
	if large == nil {
		return
	}
	s.values = true
	n, named := s.larges.Get(string(large.SHA256[:]))
	if !named {
		n.size = large.Size
		s.largeSize += n.size
		s.named = append(s.named, *large)
	}
	n.count++
	s.larges.Set(string(large.SHA256[:]), n)
}

// unname counts one less.
func (s *State) unname(large *leasehold.Large) {
	if large == nil {
		return
	}
	n, _ := s.larges.Get(string(large.SHA256[:]))
	if n.count--; n.count > 0 && !s.planted.FreeNamed {
		s.larges.Set(string(large.SHA256[:]), n)
		return
	}
	s.larges.Delete(string(large.SHA256[:]))
	s.largeSize -= n.size
	s.freed = append(s.freed, leasehold.Large{SHA256: large.SHA256, Size: n.size})
}

// LargeOf returns the large values that a command would name.
func LargeOf(c Command) (list []leasehold.Large) {
	switch c := c.(type) {
	case *PutRecord:
		if c.Large != nil {
			list = append(list, *c.Large)
		}
	case *Txn:
		for _, ops := range [][]Op{c.Then, c.Else} {
			for i := range ops {
				if ops[i].Large != nil {
					list = append(list, *ops[i].Large)
				}
			}
		}
	}
	return list
}
