package kernel

import "github.com/leasehold/leasehold"

// NamesLarge reports whether a record, or a former version of one, has a large value.
func (s *State) NamesLarge(d leasehold.Digest) bool { return s.records.Names(d) }

// Larges calls see with each large value that is named, in order, until it returns false.
func (s *State) Larges(see func(leasehold.Large) bool) { s.records.ScanLarges(see) }

// NamesLarge reports whether a record, or a former version of one, has a large value.
func (v *view) NamesLarge(d leasehold.Digest) bool { return v.s.NamesLarge(d) }

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
				if ops[i].Txn != nil {
					list = append(list, LargeOf(ops[i].Txn)...)
				}
			}
		}
	}
	return list
}
