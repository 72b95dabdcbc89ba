package server

import "time"

// guardTime is how exactly slow clients are noticed.
const guardTime = time.Second

// look ends the connections of clients that are too slow: those that began a command and do not finish it, those that
// do not take what they are sent, and those that have proven nothing and say nothing. One look at all of them each
// second is cheaper than a deadline for each read and write.
func (s *Server) look() {
	now := s.tick.Add(1)
	late := func(since int64, limit time.Duration) bool {
		return since != 0 && time.Duration(now-since)*guardTime > limit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if late(c.asked.Load(), s.config.SendTime) || late(c.sent.Load(), s.config.TakeTime) ||
			!c.proven.Load() && c.sent.Load() == 0 && late(c.heard.Load(), s.config.IdleTime) {
			s.slow.Add(1)
			go c.end() // TLS takes its time to say goodbye
		}
	}
	if len(s.conns) > 0 {
		s.guard.Reset(guardTime)
	}
}

// now is the time for asked and sent; never 0.
func (s *Server) now() int64 { return s.tick.Load() + 1 }
