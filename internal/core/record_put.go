package core

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
	w := write{path: c.Path, value: c.Value, large: c.Large, session: c.Session, keep: c.Keep, holder: s.writer(sp, c.Fence)}
	if refused := s.rollBack(sp, &w, c.From); refused != nil {
		return Answer{Err: refused}
	}
	if refused := s.roomFor(sp, []write{w}); refused != nil {
		return Answer{Err: refused}
	}
	// Only now, since a refusal must not begin a namespace.
	sp, refused = s.makeSpace(c.Namespace)
	if refused != nil {
		return Answer{Err: refused}
	}
	return Answer{Record: withoutValue(s.setRecord(sp, w, token))}
}
