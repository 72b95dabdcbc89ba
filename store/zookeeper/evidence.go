package zookeeper

import (
	"sync"
	"time"
)

// Until when is a session alive? A session ends when the leader has not heard of it for its timeout T.
// But clients talk to any member, and a follower tells the leader which sessions it has heard of only
// every half tick. So one answered write proves little: if the follower dies right after the answer,
// the leader counts from what it was told before. (Seen with T = 10 s: silent for 8 s, then a write was
// answered by a follower that died; the session was over 3.1 s later.)
//
// What is sound:
//
//   - Of two answered writes with at least T/4 between the answer of the first and the sending of the
//     second, the first one's moment of sending + T. T is two ticks or more, so half a tick has passed
//     between them, and the follower that answered the second has told the leader of the first. If it
//     was another member that answered the second, the leader has heard of the session when the client
//     connected to that one, which was after the first write.
//   - The creation of the session, the moment of sending + T, without a second write. It is not a
//     follower that starts to count then: a session is created by a transaction, and the leader
//     itself begins to count when it prepares it. A test kills the follower right after the creation.
//
// A connection that is made again to the same session is not counted, and neither are pings and reads:
// a follower answers them without the leader.
type evidence struct {
	timeout time.Duration // T

	mu     sync.Mutex // guards what follows
	proven time.Duration
	writes []write // answered, oldest first, and not older than what is proven
}

type write struct{ sent, answered time.Duration }

func newEvidence(timeout, created time.Duration) *evidence {
	return &evidence{timeout: timeout, proven: created}
}

// gap is what has to lie between two writes.
func (e *evidence) gap() time.Duration { return e.timeout / 4 }

// answered adds a write.
func (e *evidence) answered(sent, now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	drop := 0
	for drop < len(e.writes) && e.writes[drop].answered+e.gap() <= sent {
		e.proven = max(e.proven, e.writes[drop].sent)
		drop++
	}
	e.writes = append(e.writes[:0], e.writes[drop:]...)
	// One in each 32nd of T is enough, and keeps the list short.
	if n := len(e.writes); n == 0 || sent-e.writes[n-1].sent >= e.timeout/32 {
		e.writes = append(e.writes, write{sent, now})
	}
}

// until returns how long the session lives at least.
func (e *evidence) until() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.proven + e.timeout
}

// next returns what until would be after a write that is sent now.
func (e *evidence) next(now time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	proven := e.proven
	for _, w := range e.writes {
		if w.answered+e.gap() <= now {
			proven = max(proven, w.sent)
		}
	}
	return proven + e.timeout
}
