package record

import "github.com/leasehold/leasehold"

// Large values are kept beside the log. The store has their names and counts who names
// them: records as they are, and former versions. What history remembers of records names
// nothing, or a value would stay for as long as anything was done to its record lately.

// A naming is how often a large value is named.
type naming struct {
	count int
	size  int64
}

// Named returns the large values that nothing named before, since Begin, in order.
func (st *Store) Named() []leasehold.Large { return st.named }

// Freed returns the large values that nothing names any longer, since Begin, in order.
func (st *Store) Freed() []leasehold.Large { return st.freed }

// Larges returns how many large values are named, and their bytes.
func (st *Store) Larges() (n int, bytes int64) { return st.larges.Len(), st.largeBytes }

// Names reports whether a record, or a former version of one, has a large value.
func (st *Store) Names(d leasehold.Digest) bool {
	_, named := st.larges.Get(string(d[:]))
	return named
}

// ScanLarges calls see with each large value that is named, in order, until it returns false.
func (st *Store) ScanLarges(see func(leasehold.Large) bool) {
	st.larges.Scan(func(digest string, n naming) bool {
		return see(leasehold.Large{SHA256: leasehold.Digest([]byte(digest)), Size: n.size})
	})
}

// name counts one more who names a large value, which may be nil.
func (st *Store) name(large *leasehold.Large) {
	if large == nil {
		return
	}
	n, named := st.larges.Get(string(large.SHA256[:]))
	if !named {
		n.size = large.Size
		st.largeBytes += n.size
		st.named = append(st.named, *large)
	}
	n.count++
	st.larges.Set(string(large.SHA256[:]), n)
}

// unname counts one less.
func (st *Store) unname(large *leasehold.Large) {
	if large == nil {
		return
	}
	n, _ := st.larges.Get(string(large.SHA256[:]))
	if n.count--; n.count > 0 {
		st.larges.Set(string(large.SHA256[:]), n)
		return
	}
	st.larges.Delete(string(large.SHA256[:]))
	st.largeBytes -= n.size
	st.freed = append(st.freed, leasehold.Large{SHA256: large.SHA256, Size: n.size})
}
