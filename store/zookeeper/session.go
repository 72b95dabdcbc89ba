package zookeeper

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
)

// A session is a session of ZooKeeper, and the connection to it. The driver would make a new session
// on the same connection when one has expired, and send what was queued for the old one. That is
// prevented: a connection whose session has expired cannot dial again.
type session struct {
	s    *Store
	ttl  time.Duration
	conn *zk.Conn

	ready chan struct{} // closed when there is a session, or when there will be none
	id    atomic.Int64  // 0: there is none yet
	over  atomic.Bool   // it has expired, or was given up

	introducing sync.Mutex
	introduced  bool // guarded by introducing

	mu       sync.Mutex // guards what follows
	raw      net.Conn
	dialed   time.Duration
	heard    time.Duration // when something came from ZooKeeper
	timeout  time.Duration // as ZooKeeper wants it
	evidence *evidence

	counting sync.Mutex // guards what follows
	leases   int        // and waiters
	replaced bool
}

// connect begins the session. The caller has locked mu: dial and event wait until conn is known.
func (c *session) connect() {
	conn, _, err := zk.Connect(c.s.servers, c.ttl, zk.WithDialer(c.dial), zk.WithEventCallback(c.event),
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	c.conn = conn
	c.mu.Unlock()
	if err != nil { // no server has an address
		c.giveUp()
	}
}

// readerTTL is the timeout of a session that is made for reads.
const readerTTL = 10 * time.Second

// silent takes what the driver says. What matters comes as errors.
type silent struct{}

func (silent) Printf(string, ...any) {}

var errOver = errors.New("the session is over")

func (c *session) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if c.over.Load() {
		return nil, errOver
	}
	began := c.s.clock.Now()
	raw, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Load() {
		_ = raw.Close()
		return nil, errOver
	}
	c.raw, c.dialed = raw, began
	return &handshake{Conn: raw, c: c}, nil
}

// handshake reads the timeout from ZooKeeper's answer to the request for a session, which the driver
// does not tell: length, version, timeout (four bytes each).
type handshake struct {
	net.Conn
	c    *session
	seen []byte
}

func (h *handshake) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if n > 0 {
		h.c.heard = h.c.s.clock.Now()
	}
	if len(h.seen) < 12 {
		h.seen = append(h.seen, b[:n]...)
		if len(h.seen) >= 12 {
			h.c.timeout = time.Duration(int32(be32(h.seen[8:]))) * time.Millisecond
		}
	}
	return n, err
}

// SetReadDeadline limits how long the driver waits for a member that does not answer to a handshake. By itself
// it would wait for several TTLs before it asks another member.
func (h *handshake) SetReadDeadline(t time.Time) error {
	limit := patience
	if h.c.id.Load() != 0 { // leases depend on it
		limit = h.c.ttl / 4
	}
	if most := time.Now().Add(limit); len(h.seen) == 0 && len(h.c.s.servers) > 1 && t.After(most) {
		t = most
	}
	return h.Conn.SetReadDeadline(t)
}

// impatient ends a connection on which nothing has come since a write was sent, and lets the driver connect
// to another member. The driver would notice such a silence only after two thirds of the TTL, which is all
// that remains of a lease after a renewal. It returns what ends the impatience.
func (c *session) impatient(sent time.Duration) (stop func()) {
	if len(c.s.servers) == 1 {
		return func() {}
	}
	timer := time.AfterFunc(c.ttl/6, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.dialed < sent && c.heard < sent {
			_ = c.raw.Close()
		}
	})
	return func() { timer.Stop() }
}

// event is called by the driver, before it goes on.
func (c *session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateExpired:
		c.giveUp()
	case zk.StateHasSession:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.evidence != nil || c.over.Load() {
			return
		}
		if c.timeout < c.ttl { // it would end too early
			go c.giveUp()
			return
		}
		c.evidence = newEvidence(c.ttl, c.dialed)
		c.id.Store(c.conn.SessionID())
		close(c.ready)
	}
}

// await waits until there is a session.
func (c *session) await(ctx context.Context) error {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return &leasehold.Error{Code: leasehold.Unavailable,
			Message: "ZooKeeper gave no session in time: check that a majority of its members run"}
	}
	if c.over.Load() {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "ZooKeeper gave no session: try again"}
	}
	return c.introduce()
}

// introduce says who we are, once for each session. The driver repeats it when it connects again.
func (c *session) introduce() error {
	c.introducing.Lock()
	defer c.introducing.Unlock()
	if c.s.user == "" || c.introduced {
		return nil
	}
	err := c.conn.AddAuth("digest", []byte(c.s.user+":"+c.s.password))
	c.introduced = err == nil
	return err
}

// giveUp ends the connection without a word, so that the session, and what is bound to it, lives on
// until ZooKeeper ends it.
func (c *session) giveUp() {
	if c.over.Swap(true) {
		return
	}
	c.mu.Lock()
	raw, conn := c.raw, c.conn
	if c.evidence == nil {
		close(c.ready)
	}
	c.mu.Unlock()
	if raw != nil {
		_ = raw.Close()
	}
	c.s.forget(c)
	if conn == nil {
		return
	}
	go conn.Close() // takes a second, since nobody answers
}

// end ends the session at ZooKeeper.
func (c *session) end() {
	if !c.over.Swap(true) {
		c.conn.Close()
		c.s.forget(c)
	}
}

// usable reports whether a lease that is acquired now can be relied on for a while.
func (c *session) usable(now time.Duration) bool {
	if c.over.Load() {
		return false
	}
	select {
	case <-c.ready:
	default:
		return true // it is being made
	}
	return c.conn.State() == zk.StateHasSession && c.evidence.next(now)-now >= c.ttl/2
}

// written counts a write that was answered.
func (c *session) written(sent time.Duration) { c.evidence.answered(sent, c.s.clock.Now()) }

// multi carries out a transaction. It is a write also if it has checks alone.
func (c *session) multi(ops ...any) ([]zk.MultiResponse, error) {
	sent := c.s.clock.Now()
	defer c.impatient(sent)()
	answers, err := c.conn.Multi(ops...)
	if err == nil {
		c.written(sent)
	}
	return answers, err
}

// use counts a lease or waiter that is bound to the session; done counts back, and ends a session that
// nobody will use any more.
func (c *session) use() {
	c.counting.Lock()
	defer c.counting.Unlock()
	c.leases++
}

func (c *session) done() {
	c.counting.Lock()
	c.leases--
	idle := c.leases == 0 && c.replaced
	c.counting.Unlock()
	if idle {
		go c.end()
	}
}

// replace says that no further lease will use the session.
func (c *session) replace() {
	c.counting.Lock()
	c.replaced = true
	idle := c.leases == 0
	c.counting.Unlock()
	if idle {
		go c.giveUpUnlessReady()
	}
}

func (c *session) giveUpUnlessReady() {
	select {
	case <-c.ready:
		c.end()
	default:
		c.giveUp()
	}
}

// session returns a session for a new lease. Its use is counted.
func (s *Store) session(ctx context.Context, ttl time.Duration) (*session, error) {
	c, err := s.current(ttl)
	if err != nil {
		return nil, err
	}
	if err := c.await(ctx); err != nil {
		c.done()
		return nil, err
	}
	return c, nil
}

// anySession returns a session to read by, or to write what is bound to none. Its use is counted.
func (s *Store) anySession(ctx context.Context) (*session, error) {
	if c := s.connected(); c != nil {
		if err := c.introduce(); err != nil {
			c.done()
			return nil, err
		}
		return c, nil
	}
	return s.session(ctx, min(max(readerTTL, s.minTTL), s.maxTTL))
}

// connected returns a session that has a connection, if there is one.
func (s *Store) connected() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sessions {
		if c.id.Load() != 0 && !c.over.Load() && c.conn.State() == zk.StateHasSession {
			c.use()
			return c
		}
	}
	return nil
}

func (s *Store) current(ttl time.Duration) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	old := s.sessions[ttl]
	if old != nil && old.usable(s.clock.Now()) {
		old.use()
		return old, nil
	}
	c := &session{s: s, ttl: ttl, ready: make(chan struct{})}
	c.use()
	s.sessions[ttl] = c
	s.all[c] = true
	c.mu.Lock()
	go c.connect() // which asks for the addresses of the servers
	if old != nil {
		old.replace()
	}
	return c, nil
}
