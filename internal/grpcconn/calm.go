package grpcconn

import (
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// How many calls a client may begin and give up again: each costs the server more than the client. Some at once, such
// as all that are under way, and then one at a time.
const (
	givenUpEvery    = time.Millisecond
	strangerGivesUp = 1000 // at once, before anything was proven on the connection
)

// gaveUp counts a call that the client has begun and given up. The error says that it does nothing else. mu is held.
func (c *conn) gaveUp() error {
	now := time.Now()
	if c.calm.Before(now) {
		c.calm = now
	}
	c.calm = c.calm.Add(givenUpEvery)
	most := strangerGivesUp
	if c.proven.Load() {
		most = max(most, 2*c.server.MaxStreams)
	}
	if c.calm.Sub(now) > time.Duration(most)*givenUpEvery {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return nil
}

// Proven says that the client has shown who it is, or need not.
func (s *Stream) Proven() {
	if !s.conn.proven.Load() {
		s.conn.proven.Store(true)
	}
}

// strangerLooks is how many looks a connection lives without calls on which nothing was proven.
const strangerLooks = 4

// deserted reports whether nothing was proven on a connection, and nothing came on it for long. mu is held.
func (c *conn) deserted() bool {
	if c.proven.Load() || len(c.streams) > 0 || c.last != c.seen {
		c.seen, c.looks = c.last, 0
		return false
	}
	c.looks++
	return c.looks >= strangerLooks
}

// endHalf ends calls whose requests began before the last look and did not come whole. mu is held.
func (c *conn) endHalf() {
	for _, s := range c.streams {
		switch {
		case s.started:
		case !s.late:
			s.late = true
		default:
			s.broken = status.Error(codes.DeadlineExceeded, "the request did not arrive in time")
			c.hold(-len(s.in))
			s.in = nil
			s.start()
		}
	}
}
