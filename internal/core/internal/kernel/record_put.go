package kernel

import "github.com/leasehold/leasehold/internal/core/record"

// putRecord writes one record. The fence, the expected revision and the limits are all judged
// in this command, at one stamp: a writer that loses its lease a moment before is refused.
func (t *turn) putRecord(c *PutRecord) Answer {
	sp := t.space(c.Namespace)
	old := t.liveRecord(sp, c.Path)
	token, refused := t.passFence(sp, old, c.Path, c.Fence)
	if refused != nil {
		return Answer{Err: refused}
	}
	if refused := unlessAsExpected(old, c.Path, c.IfRevision, c.IfAbsent); refused != nil {
		return Answer{Err: refused}
	}
	w := record.Write{
		Path: c.Path, Value: c.Value, Large: c.Large, Session: c.Session, Keep: c.Keep, Holder: t.writer(sp, c.Fence),
	}
	if refused := t.rollBack(sp, &w, c.From); refused != nil {
		return Answer{Err: refused}
	}
	p := putting{write: w, from: writing{token: token, by: c.By, reason: c.Reason}, link: c.Link}
	if c.Link != nil || old != nil && old.Lease != "" {
		if p, refused = t.planPut(t.orNew(sp, c.Namespace), old, p, c.KeepLink); refused != nil {
			return Answer{Err: refused}
		}
	}
	if refused := t.roomFor(sp, c.Namespace, []record.Write{p.write}); refused != nil {
		return Answer{Err: refused}
	}
	// Only now, since a refusal must not begin a namespace.
	sp, refused = t.makeSpace(c.Namespace)
	if refused != nil {
		return Answer{Err: refused}
	}
	if t.changedNow(sp, old) {
		sp.touched = 0
	}
	t.beginMirrors(sp, []putting{p})
	r, answer := t.doPut(sp, p)
	answer.Record = record.WithoutValue(r)
	return answer
}

// orNew returns a namespace or, if that does not exist, an empty one to look at: a refusal must not begin it.
func (s *State) orNew(sp *space, namespace string) *space {
	if sp == nil {
		return s.newSpace(namespace)
	}
	return sp
}
