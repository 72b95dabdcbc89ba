package records

import (
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Put writes one record. The fence, the expected revision and the limits are all judged
// in this command, at one stamp: a writer that loses its lease a moment before is refused.
func (s *records) Put(k kernel.Turn, c *kernel.PutRecord) kernel.Answer {
	old := s.liveRecord(k, c.Path)
	token, refused := s.passFence(k, old, c.Path, c.Fence)
	if refused != nil {
		return kernel.Answer{Err: refused}
	}
	if refused := unlessAsExpected(old, c.Path, c.IfRevision, c.IfAbsent); refused != nil {
		return kernel.Answer{Err: refused}
	}
	w := record.Write{
		Path: c.Path, Value: c.Value, Large: c.Large, Session: c.Session, Keep: c.Keep, Holder: writer(k, c.Fence),
	}
	if refused := s.rollBack(&w, c.From); refused != nil {
		return kernel.Answer{Err: refused}
	}
	p := putting{write: w, from: writing{token: token, by: c.By, reason: c.Reason}, link: c.Link}
	if c.Link != nil || old != nil && old.Lease != "" {
		if p, refused = s.planPut(k, new(plan), old, p, c.KeepLink); refused != nil {
			return kernel.Answer{Err: refused}
		}
	}
	if refused := s.roomFor(k, []record.Write{p.write}); refused != nil {
		return kernel.Answer{Err: refused}
	}
	// Only now, since a refusal must not begin a namespace.
	if refused := k.Keep(); refused != nil {
		return kernel.Answer{Err: refused}
	}
	k.ReviseAfter(old)
	defer s.forgetReserved()
	s.beginMirrors(k, []putting{p})
	r, answer := s.doPut(k, p)
	answer.Record = record.WithoutValue(r)
	return answer
}
