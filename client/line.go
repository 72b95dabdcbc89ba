package client

import (
	"net/http"
	"sync"
	"time"
)

// A line is the way to one server, over connections of its own. A connection can lead
// nowhere without anybody noticing: a router forgot it, a machine moved. HTTP/2 would go on
// to use it for every message. So a line can be redialled: messages that follow go over new
// connections, whatever became of the old ones.
type line struct {
	pattern http.RoundTripper

	mu      sync.Mutex // guards what follows
	ttl     time.Duration
	current http.RoundTripper
	number  int // of redials
	retired []*http.Transport
}

// maxRetired is how many former transports a line remembers, to close what they leave
// idle. Beyond it that happens after idleTimeout.
const maxRetired = 4

const idleTimeout = time.Minute

// newLine returns a line whose connections are made as the pattern makes them. They are
// checked often enough for what lasts for a TTL.
func newLine(pattern http.RoundTripper, ttl time.Duration) *line {
	l := &line{pattern: pattern, ttl: ttl}
	l.current = l.transport()
	return l
}

// transport makes what the next connections belong to. Where the pattern is not the
// standard library's there is only the pattern itself.
func (l *line) transport() http.RoundTripper {
	pattern, ok := l.pattern.(*http.Transport)
	if !ok {
		return l.pattern
	}
	t := pattern.Clone()
	if t.IdleConnTimeout == 0 {
		t.IdleConnTimeout = idleTimeout
	}
	if t.HTTP2 == nil {
		t.HTTP2 = &http.HTTP2Config{}
	}
	if t.HTTP2.SendPingTimeout == 0 {
		t.HTTP2.SendPingTimeout, t.HTTP2.PingTimeout = pings(l.ttl)
	}
	return t
}

// pings says after which silence a connection of HTTP/2 is pinged, and how long the answer
// may take: together an eighth of the TTL, so that a dead one is gone before an attempt
// over it has used up its fifth.
func pings(ttl time.Duration) (after, within time.Duration) {
	const least = 100 * time.Millisecond // below it a busy machine would lose good connections
	return max(ttl/12, least), max(ttl/24, least)
}

// RoundTrip sends a request over the newest connections.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	current := l.current
	l.mu.Unlock()
	return current.RoundTrip(r)
}

// dialled is the number by which to redial.
func (l *line) dialled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.number
}

// redial leaves the present connections, unless somebody did already. What is under way
// over them goes on.
func (l *line) redial(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.number == number {
		l.renewLocked()
	}
}

// suit makes connections be checked often enough for a TTL.
func (l *line) suit(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ttl >= l.ttl {
		return
	}
	l.ttl = ttl
	l.renewLocked()
}

func (l *line) renewLocked() {
	if t, ok := l.current.(*http.Transport); ok {
		l.retired = append(l.retired, t)
		l.retired = l.retired[max(0, len(l.retired)-maxRetired):]
	}
	l.closeIdleLocked()
	l.current = l.transport()
	l.number++
}

// CloseIdleConnections closes what is not in use.
func (l *line) CloseIdleConnections() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeIdleLocked()
}

func (l *line) closeIdleLocked() {
	for _, t := range l.retired {
		t.CloseIdleConnections()
	}
	if c, ok := l.current.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
