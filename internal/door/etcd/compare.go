package etcd

import (
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

var relations = map[pb.Compare_CompareResult]core.Relation{
	pb.Compare_EQUAL: core.Equal, pb.Compare_NOT_EQUAL: core.NotEqual, pb.Compare_LESS: core.Less,
	pb.Compare_GREATER: core.Greater,
}

// compareOf translates a comparison.
func compareOf(c *pb.Compare) core.Compare {
	keys, some := spanOf(c.Key, c.RangeEnd)
	out := core.Compare{Is: relations[c.Result]}
	out.Path, out.To, out.Range = keys.asked(some)
	switch c.Target {
	case pb.Compare_VERSION:
		return ofNumber(out, core.RecordVersion, c.GetVersion())
	case pb.Compare_CREATE:
		return ofRevision(out, core.RecordCreate, c.GetCreateRevision())
	case pb.Compare_MOD:
		return ofRevision(out, core.RecordMod, c.GetModRevision())
	case pb.Compare_LEASE:
		out.What, out.Text = core.RecordSession, sessionOf(c.GetLease())
		return out
	}
	out.What, out.Text = core.RecordValue, string(c.GetValue())
	return out
}

// ofNumber compares with a number that may be negative, which none of ours is.
func ofNumber(c core.Compare, what core.What, n int64) core.Compare {
	c.What, c.Number = what, uint64(max(0, n))
	if n < 0 {
		return always(c, c.Is == core.NotEqual || c.Is == core.Greater)
	}
	return c
}

// ofRevision compares with a revision. What is not there has 0 in both worlds, and everything else has one more in
// etcd's: there is nothing at 1.
func ofRevision(c core.Compare, what core.What, n int64) core.Compare {
	if n <= 0 {
		return ofNumber(c, what, n)
	}
	c.What, c.Number = what, uint64(n-1)
	switch {
	case n > 1:
	case c.Is == core.Less: // than 1, which is what is not there
		c.Is = core.Equal
	case c.Is != core.Greater:
		return always(c, c.Is == core.NotEqual)
	}
	return c
}

// always returns a comparison that always holds, or never.
func always(c core.Compare, holds bool) core.Compare {
	c.What, c.Is, c.Number, c.Text = core.RecordVersion, core.Less, 0, ""
	if holds {
		c.Is, c.Number = core.NotEqual, math.MaxUint64
	}
	return c
}

// selectionOf translates in which order a range is shown, and between which revisions.
func selectionOf(r *pb.RangeRequest) (s core.Selection) {
	if byKey(r) {
		return s
	}
	switch r.SortTarget {
	case pb.RangeRequest_CREATE:
		s.By = core.ByCreate
	case pb.RangeRequest_MOD:
		s.By = core.ByMod
	case pb.RangeRequest_VERSION:
		s.By = core.ByVersion
	case pb.RangeRequest_VALUE:
		s.By = core.ByValue
	}
	s.Descend = r.SortOrder == pb.RangeRequest_DESCEND
	s.MinCreate, s.MaxCreate = bounds(r.MinCreateRevision, r.MaxCreateRevision)
	s.MinMod, s.MaxMod = bounds(r.MinModRevision, r.MaxModRevision)
	return s
}

// bounds translates the least and the largest revision of what is wanted; 0: there is no bound.
func bounds(least, most int64) (leasehold.Revision, leasehold.Revision) {
	if most != 0 && most < 2 {
		return math.MaxInt64, 0 // nothing is as old as that
	}
	return internal(least), internal(most)
}
