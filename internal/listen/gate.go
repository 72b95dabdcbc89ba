package listen

import (
	"container/list"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/internal/metric"
	"github.com/leasehold/leasehold/internal/socket"
)

// Limits say how many connections a port takes.
type Limits struct {
	Most int // in all

	// Mutual says that clients show certificates. Some room is then kept for those that have,
	// so that a flood of strangers cannot lock out the clients that an operator knows.
	Mutual bool

	// Refuse is given a connection for which there is no room, and closes it. Nil: it is closed
	// at once. It must not wait.
	Refuse func(net.Conn)

	Name string       // of the port, in logs and metrics
	Log  *slog.Logger // nil: nothing is written
}

// alone is how many times as many connections one address may keep as are free for others to keep: one that is alone
// has three quarters at most, and several that take all they get leave some for the next one.
const alone = 3

// uncertified is how many connections without a certificate there may be in all.
func (l *Limits) uncertified() int {
	if l.Mutual {
		return max(1, l.Most-l.Most/10)
	}
	return l.Most
}

// reserve is how many places are for this machine alone, so that an operator who is logged in there gets through.
func (l *Limits) reserve() int { return l.Most / 200 }

// A Gate is a listener that limits the number of connections. When there is no room for a newcomer, the oldest
// connection on which nothing was proven goes, from the address that has the most of them: one that says nothing, or
// asks what anybody may, costs others nothing. Once a credential was accepted on it, or without access rules something
// real was asked, it is kept: it may hold leases that it has to renew.
type Gate struct {
	net.Listener
	limits Limits
	clock  func() time.Time

	mu          sync.Mutex // guards what follows
	open        int
	uncertified int
	kept        int // of the uncertified
	addresses   map[netip.Prefix]*address
	conns       map[*Conn]struct{}
	refused     uint64
	evicted     uint64
	told        time.Time // when the log was last told
	untold      int       // refused or evicted since then
}

// An address is where connections come from. Of IPv6 it is a /64: anybody who has one address there has all of them.
type address struct {
	open     int
	kept     int       // of those without a certificate
	unproven list.List // of *Conn: those that are not kept, oldest first
}

// NewGate returns a listener that keeps to limits.
func NewGate(l net.Listener, limits Limits) *Gate {
	if limits.Log == nil {
		limits.Log = slog.New(slog.DiscardHandler)
	}
	return &Gate{Listener: l, limits: limits, clock: time.Now, addresses: map[netip.Prefix]*address{},
		conns: map[*Conn]struct{}{}}
}

// Accept returns the next connection that may come in: a *Conn.
func (g *Gate) Accept() (net.Conn, error) {
	for {
		accepted, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, evicted := g.admit(accepted)
		if evicted != nil {
			_ = evicted.Conn.Close()
		}
		switch {
		case c != nil:
			return c, nil
		case g.limits.Refuse != nil:
			g.limits.Refuse(accepted)
		default:
			_ = accepted.Close()
		}
	}
}

// admit finds room for a connection. It returns nil if there is none, and the connection that
// had to go for it. That one is closed by the caller, outside the lock.
func (g *Gate) admit(accepted net.Conn) (c, evicted *Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := networkOf(accepted.RemoteAddr())
	if !g.full(from) {
		return g.enter(accepted, from), nil
	}
	if evicted = g.evict(g.busiest()); evicted == nil {
		g.refused++
		g.tell(from)
		return nil, nil
	}
	return g.enter(accepted, from), evicted
}

// full reports whether somebody has to go before another one can come in from an address.
func (g *Gate) full(from netip.Prefix) bool {
	most := g.limits.Most
	if !from.Addr().IsLoopback() {
		most -= g.limits.reserve()
	}
	return g.open >= most || g.uncertified >= g.limits.uncertified()
}

func (g *Gate) enter(accepted net.Conn, from netip.Prefix) *Conn {
	a := g.addresses[from]
	if a == nil {
		a = &address{}
		g.addresses[from] = a
	}
	c := &Conn{Conn: socket.New(accepted), gate: g, from: from}
	g.open++
	a.open++
	g.uncertified++
	c.place = a.unproven.PushBack(c)
	g.conns[c] = struct{}{}
	return c
}

// certify keeps a connection whose client has shown a certificate.
func (g *Gate) certify(c *Conn) {
	if c.left || c.certified {
		return
	}
	a := g.addresses[c.from]
	g.unkeep(c, a)
	c.certified = true
	g.uncertified--
	c.kept.Store(true)
}

// keep keeps a connection on which something was proven, unless its address keeps its share already.
func (g *Gate) keep(c *Conn) {
	a := g.addresses[c.from]
	if c.left || c.kept.Load() || a.kept >= alone*(g.limits.uncertified()-g.kept) {
		return
	}
	g.unkeep(c, a)
	g.kept++
	a.kept++
	c.kept.Store(true)
}

// unkeep takes a connection out of the counts of those that are kept, or that may be evicted.
func (g *Gate) unkeep(c *Conn, a *address) {
	switch {
	case c.place != nil:
		a.unproven.Remove(c.place)
		c.place = nil
	case !c.certified:
		g.kept--
		a.kept--
	}
}

// busiest returns the address with the most connections that may be evicted; nil: there are none.
func (g *Gate) busiest() (most *address) {
	for _, a := range g.addresses {
		if n := a.unproven.Len(); n > 0 && (most == nil || n > most.unproven.Len()) {
			most = a
		}
	}
	return most
}

// evict removes the oldest connection of an address on which nothing was proven; nil: there is none. The caller closes
// it.
func (g *Gate) evict(a *address) *Conn {
	if a == nil {
		return nil
	}
	c := a.unproven.Front().Value.(*Conn)
	g.leave(c)
	g.evicted++
	g.tell(c.from)
	return c
}

// leave counts a connection out, once.
func (g *Gate) leave(c *Conn) {
	if c.left {
		return
	}
	c.left = true
	delete(g.conns, c)
	a := g.addresses[c.from]
	g.open--
	a.open--
	if !c.certified {
		g.uncertified--
	}
	g.unkeep(c, a)
	g.forget(c.from, a)
}

// forget drops an address that has no connections left: a flood from changing addresses must
// not grow the map for ever.
func (g *Gate) forget(from netip.Prefix, a *address) {
	if a.open == 0 {
		delete(g.addresses, from)
	}
}

// tellEvery is how often refused connections are logged: a flood is one fact.
const tellEvery = 10 * time.Second

func (g *Gate) tell(from netip.Prefix) {
	g.untold++
	now := g.clock()
	if now.Sub(g.told) < tellEvery {
		return
	}
	g.limits.Log.Warn("there are as many connections as there can be: some were refused, or closed because "+
		"nothing was proven on them",
		"port", g.limits.Name, "connections", g.open, "most", g.limits.Most, "count", g.untold, "last_from", from)
	g.told, g.untold = now, 0
}

// closeAll closes all connections that there are.
func (g *Gate) closeAll() {
	g.mu.Lock()
	all := slices.Collect(maps.Keys(g.conns))
	g.mu.Unlock()
	for _, c := range all {
		_ = c.closeNow()
	}
}

// Open returns how many connections there are.
func (g *Gate) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func networkOf(a net.Addr) netip.Prefix {
	if a == nil {
		return netip.Prefix{}
	}
	return socket.Network(a.String())
}

var (
	connections = metric.Connections.Desc()
	refused     = metric.ConnectionsRefused.Desc()
	evicted     = metric.ConnectionsEvicted.Desc()
)

// Gates are the gates of all ports of a server, for its metrics. A nil Gates keeps none.
type Gates struct {
	mu  sync.Mutex // guards what follows
	all []*Gate
}

// Add adds a gate.
func (s *Gates) Add(g *Gate) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, g)
}

// Open returns how many connections all of them have.
func (s *Gates) Open() (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.all {
		open += g.Open()
	}
	return open
}

// Describe says which figures there are.
func (s *Gates) Describe(c chan<- *prometheus.Desc) {
	c <- connections
	c <- refused
	c <- evicted
}

// Collect reads them.
func (s *Gates) Collect(c chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.all {
		g.mu.Lock()
		open, no, out := g.open, g.refused, g.evicted
		g.mu.Unlock()
		c <- prometheus.MustNewConstMetric(connections, prometheus.GaugeValue, float64(open), g.limits.Name)
		c <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(no), g.limits.Name)
		c <- prometheus.MustNewConstMetric(evicted, prometheus.CounterValue, float64(out), g.limits.Name)
	}
}
