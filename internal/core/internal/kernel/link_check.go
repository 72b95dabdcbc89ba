package kernel

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
)

// allLinked refuses a snapshot that has claims without the records by which they show.
func (s *State) allLinked() (err error) {
	s.spaces.Scan(func(name string, sp *space) bool {
		if sp.shown != sp.records.Linked() {
			err = fmt.Errorf("snapshot has %d leases with records in namespace %q, and %d records of leases", sp.shown,
				name, sp.records.Linked())
		}
		return err == nil
	})
	return err
}

// links checks that claims and their records know each other, and the order of mirrored resources.
func (c *checker) links(s *look, sp *space) {
	shown := 0
	sp.claims.Scan(func(id string, claim *Claim) bool {
		f := claim.face()
		if f == nil {
			return true
		}
		shown++
		r, ok := sp.records.Get(f.Path)
		c.that(ok && r.Lease == id, "%s/%s shows as record %q, which does not stand for it", sp.name, id, f.Path)
		may := !f.Stay || !f.Made || f.Path == claim.Resource
		c.that(may, "%s/%s shows as record %q that cannot be", sp.name, id, f.Path)
		if at := claim.fades(); at.at != 0 {
			_, ok := sp.claimEnds.Get(at)
			c.that(ok, "%s/%s ends at %d, and its record is not noted", sp.name, id, at.at)
		}
		return true
	})
	sp.records.Ascend("", "", func(r *leasehold.Record) bool {
		claim := sp.faceOf(r)
		c.that(r.Lease == "" || claim != nil && claim.face() != nil && claim.face().Path == r.Path,
			"%s: record %q stands for lease %q, which does not show as it", sp.name, r.Path, r.Lease)
		return true
	})
	c.that(shown == sp.shown && shown == sp.records.Linked(), "%s: %d claims have records, %d are counted, %d records "+
		"are linked", sp.name, shown, sp.shown, sp.records.Linked())
	sp.mirrors.Scan(func(path, prefix string) bool {
		c.mirror(sp, path, prefix)
		return true
	})
}

// mirror checks that every claim on a mirrored resource has a record, in the order of the queue.
func (c *checker) mirror(sp *space, path, prefix string) {
	if sp.stands(path) {
		_, ok := sp.records.Get(path)
		c.that(ok, "%s/%s has a record that stands for its holders, and is not there", sp.name, path)
		c.that(sp.unshownHolder(path) == nil, "%s/%s has a record that does not show its holder", sp.name, path)
		return
	}
	r, ok := sp.resources.Get(path)
	if !ok || !r.Held() && r.Waiting == 0 {
		c.that(false, "%s/%s is mirrored below %q, and nobody has or wants it", sp.name, path, prefix)
		return
	}
	last := leasehold.Revision(0)
	sp.claimsOn(r, func(claim *Claim) bool {
		f := claim.face()
		ok := f != nil && strings.HasPrefix(f.Path, prefix)
		c.that(ok, "%s/%s has no record below %q, where %s is mirrored", sp.name, claim.ID, prefix, path)
		if !ok {
			return true
		}
		shown, ok := sp.records.Get(f.Path)
		c.that(ok && shown.Create > last, "%s/%s shows as record %q, which was created out of the order of the queue",
			sp.name, claim.ID, f.Path)
		if ok {
			last = shown.Create
		}
		return true
	})
	c.that(r.Sharers() == 0, "%s/%s is mirrored and shared", sp.name, path)
}
