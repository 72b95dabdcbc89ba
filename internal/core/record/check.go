package record

import "github.com/leasehold/leasehold"

// The invariants of records: everything that is counted is counted again, over all tables, and
// compared. See State.Check in core.

// A Checker looks for contradictions in the tables of a store. That is called with each thing that
// must be so.
type Checker struct {
	That func(ok bool, format string, args ...any)

	records, bytes    int
	versions, keeping int
	larges            map[leasehold.Large]int
}

// A Scope is what a table belongs to.
type Scope struct {
	Name     string
	Revision leasehold.Revision           // no record is newer
	Token    leasehold.Token              // no record was written under a larger one
	Session  func(id string) bool         // reports whether a session is known
	Bound    func(session string)         // is called for each record of a session
	Loose    func(*leasehold.Record) bool // reports whether a record does not end with its session
}

// name counts who names a large value. A value that is counted once too often would never be
// freed; one too few, and it is freed while a record still has it.
func (c *Checker) name(large *leasehold.Large) {
	if large == nil {
		return
	}
	if c.larges == nil {
		c.larges = map[leasehold.Large]int{}
	}
	c.larges[*large]++
}

// Table checks one table, and counts what is in it.
func (c *Checker) Table(t *Table, in Scope) {
	bound, bytes, linked := 0, 0, 0
	t.records.Scan(func(path string, r *leasehold.Record) bool {
		c.records, c.bytes = c.records+1, c.bytes+Bytes(r)
		bytes += size(r.Path, r.Value, r.Large)
		c.name(r.Large)
		c.record(path, r, in)
		if r.Lease != "" {
			linked++
		}
		if r.Session != "" && !in.Loose(r) {
			bound++
			in.Bound(r.Session)
			c.That(in.Session(r.Session), "%s: record %q is bound to session %q, which is not there",
				in.Name, path, r.Session)
			_, ok := t.bound.Get(binding{r.Session, path})
			c.That(ok, "%s: record %q would not end with its session", in.Name, path)
		}
		return true
	})
	c.That(bound == t.bound.Len(), "%s: %d records have sessions, %d bindings exist", in.Name, bound, t.bound.Len())
	c.That(linked == t.linked, "%s: %d records are linked, %d are counted", in.Name, linked, t.linked)
	former := c.former(t, in)
	for _, n := range former {
		bytes += n.bytes
	}
	c.That(bytes == t.bytes, "%s: records have %d bytes, %d are counted", in.Name, bytes, t.bytes)
	c.shelves(t, in, former)
}

func (c *Checker) record(path string, r *leasehold.Record, in Scope) {
	c.That(path == r.Path, "%s: record %q is filed under %q", in.Name, r.Path, path)
	c.That(r.Create > 0 && r.Create <= r.Mod && r.Mod <= in.Revision,
		"%s: record %q was made at %d and changed at %d, beyond revision %d", in.Name, path, r.Create, r.Mod,
		in.Revision)
	c.That(r.Version >= 1 && r.Version-1 <= uint64(r.Mod-r.Create),
		"%s: record %q has version %d from revision %d to %d", in.Name, path, r.Version, r.Create, r.Mod)
	c.That(r.Token <= in.Token, "%s: record %q was written under token %d above %d", in.Name, path, r.Token, in.Token)
	c.That(len(r.Value) <= leasehold.MaxValue, "%s: record %q has %d bytes", in.Name, path, len(r.Value))
	c.That(r.Large == nil || r.Value == "" && r.Large.Size <= leasehold.MaxLarge,
		"%s: record %q has a value and a large value, or too large a one", in.Name, path)
}

// A shelved is how many versions of a path there are, and what they weigh.
type shelved struct{ count, bytes int }

// former checks the former versions of a table, and counts those of each path.
func (c *Checker) former(t *Table, in Scope) map[string]shelved {
	counts := map[string]shelved{}
	t.versions.Scan(func(v *leasehold.Version) bool {
		n := counts[v.Path]
		counts[v.Path] = shelved{n.count + 1, n.bytes + size(v.Path, v.Value, v.Large)}
		c.versions, c.bytes = c.versions+1, c.bytes+versionBytes(v)
		c.name(v.Large)
		if r, there := t.records.Get(v.Path); there {
			c.That(v.Revision < r.Mod, "%s: record %q was changed at %d, and has a former version of %d",
				in.Name, v.Path, r.Mod, v.Revision)
		}
		c.That(v.Create > 0 && v.Create <= v.Revision && v.Revision <= in.Revision,
			"%s: a version of %q was made at %d and written at %d, beyond revision %d",
			in.Name, v.Path, v.Create, v.Revision, in.Revision)
		c.That(!v.Current, "%s: revision %d of %q is former and current", in.Name, v.Revision, v.Path)
		return true
	})
	return counts
}

// shelves checks the shelves of a table, which have so many versions of each path.
func (c *Checker) shelves(t *Table, in Scope, counts map[string]shelved) {
	t.shelves.Scan(func(path string, shelf *Shelf) bool {
		_, there := t.records.Get(path)
		if shelf.Deleted == 0 {
			c.keeping++
		}
		c.That(path == shelf.Path, "%s: the shelf of %q is filed under %q", in.Name, shelf.Path, path)
		c.That(there == (shelf.Deleted == 0), "%s: record %q is there: %v, and was deleted at %d",
			in.Name, path, there, shelf.Deleted)
		c.That(shelf.Keep > 0 && shelf.count <= shelf.Keep, "%s: record %q keeps %d versions, and has %d",
			in.Name, path, shelf.Keep, shelf.count)
		found := counts[path]
		c.That(shelf.count == found.count, "%s: record %q counts %d versions, and has %d", in.Name, path, shelf.count,
			found.count)
		c.That(shelf.bytes == found.bytes, "%s: the versions of record %q have %d bytes, and %d are counted", in.Name,
			path, found.bytes, shelf.bytes)
		delete(counts, path)
		return true
	})
	for path, n := range counts {
		c.That(false, "%s: record %q has %d versions, and keeps none", in.Name, path, n.count)
	}
}

// Store checks what is counted, after all tables.
func (c *Checker) Store(st *Store) {
	c.That(c.records == st.records && c.bytes == st.bytes, "there are %d records of %d bytes, %d of %d are counted",
		c.records, c.bytes, st.records, st.bytes)
	c.That(c.versions == st.versions && c.keeping == st.keeping,
		"%d versions of %d records are kept, %d of %d are counted", c.versions, c.keeping, st.versions, st.keeping)
	c.That(st.kept() <= leasehold.MaxVersions, "%d versions are kept", st.kept())
	size := int64(0)
	for large, n := range c.larges {
		size += large.Size
		found, _ := st.larges.Get(string(large.SHA256[:]))
		c.That(found == naming{n, large.Size},
			"large value %v of %d bytes is named %d times, %d are counted, of %d bytes",
			large.SHA256, large.Size, n, found.count, found.size)
	}
	c.That(len(c.larges) == st.larges.Len() && size == st.largeBytes,
		"%d large values of %d bytes are named, %d of %d are counted", len(c.larges), size, st.larges.Len(),
		st.largeBytes)
}
