package core

import "github.com/leasehold/leasehold/internal/core/record"

// putRecord writes one record. The fence, the expected revision and the limits are all judged
// in this command, at one stamp: a writer that loses its lease a moment before is refused.
func (s *State) putRecord(c *PutRecord) Answer {
	sp := s.space(c.Namespace)
	old := s.liveRecord(sp, c.Path)
	token, refused := s.passFence(sp, old, c.Path, c.Fence)
	if refused != nil {
		return Answer{Err: refused}
	}
	if refused := unlessAsExpected(old, c.Path, c.IfRevision, c.IfAbsent); refused != nil {
		return Answer{Err: refused}
	}
	w := record.Write{
		Path: c.Path, Value: c.Value, Large: c.Large, Session: c.Session, Keep: c.Keep, Holder: s.writer(sp, c.Fence),
	}
	if refused := s.rollBack(sp, &w, c.From); refused != nil {
		return Answer{Err: refused}
	}
	if refused := s.roomFor(sp, c.Namespace, []record.Write{w}); refused != nil {
		return Answer{Err: refused}
	}
	// Only now, since a refusal must not begin a namespace.
	sp, refused = s.makeSpace(c.Namespace)
	if refused != nil {
		return Answer{Err: refused}
	}
	return Answer{Record: record.WithoutValue(s.setRecord(sp, w, writing{token, c.By, c.Reason}))}
}
