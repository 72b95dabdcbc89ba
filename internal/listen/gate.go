package listen

import (
	"container/list"
	"log/slog"
	"maps"
	"net"
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

// share is how many unproven connections one address may have, so that it can never lock others
// out. Where there is room for only a few connections, a part of that would be too little to
// work with.
func (l *Limits) share() int {
	if l.Most < 8 {
		return l.Most
	}
	return l.Most * 3 / 4
}

// unproven is how many connections without a certificate there may be in all.
func (l *Limits) unproven() int {
	if l.Mutual {
		return max(1, l.Most-l.Most/10)
	}
	return l.Most
}

// A Gate is a listener that limits the number of connections. A connection that says nothing,
// or speaks too slowly, costs others nothing: when there is no room for a newcomer, the oldest
// connection that never sent a whole request goes, from the address that has the most of them.
// One that has sent a request is never evicted: it may hold leases that it has to renew.
type Gate struct {
	net.Listener
	limits Limits
	clock  func() time.Time

	mu        sync.Mutex // guards what follows
	open      int
	unproven  int
	addresses map[string]*address
	conns     map[*Conn]struct{}
	refused   uint64
	evicted   uint64
	told      time.Time // when the log was last told
	untold    int       // refused or evicted since then
}

// An address is where connections come from.
type address struct {
	open     int
	unproven int
	silent   list.List // of *Conn: those that never greeted, oldest first
}

// NewGate returns a listener that keeps to limits.
func NewGate(l net.Listener, limits Limits) *Gate {
	if limits.Log == nil {
		limits.Log = slog.New(slog.DiscardHandler)
	}
	return &Gate{Listener: l, limits: limits, clock: time.Now, addresses: map[string]*address{},
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
	from := hostOf(accepted.RemoteAddr())
	a := g.addresses[from]
	if a == nil {
		a = &address{}
		g.addresses[from] = a
	}
	switch {
	// An address that has its share makes room among its own, never among others'.
	case a.unproven >= g.limits.share():
		evicted = g.evict(a)
	case g.open >= g.limits.Most || g.unproven >= g.limits.unproven():
		evicted = g.evict(g.busiest())
	default:
		return g.enter(accepted, from, a), nil
	}
	if evicted == nil {
		g.refused++
		g.tell(from)
		g.forget(from, a)
		return nil, nil
	}
	return g.enter(accepted, from, a), evicted
}

func (g *Gate) enter(accepted net.Conn, from string, a *address) *Conn {
	c := &Conn{Conn: socket.New(accepted), gate: g, from: from}
	g.addresses[from] = a // an eviction may have forgotten it
	g.open++
	a.open++
	g.unproven++
	a.unproven++
	c.place = a.silent.PushBack(c)
	g.conns[c] = struct{}{}
	return c
}

// busiest returns the address with the most connections that never sent a request.
func (g *Gate) busiest() (most *address) {
	for _, a := range g.addresses {
		if most == nil || a.silent.Len() > most.silent.Len() {
			most = a
		}
	}
	return most
}

// evict removes the oldest connection of an address that never sent a request; nil: there is
// none. The caller closes it.
func (g *Gate) evict(a *address) *Conn {
	oldest := a.silent.Front()
	if oldest == nil {
		return nil
	}
	c := oldest.Value.(*Conn)
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
	if !c.proven {
		g.unproven--
		a.unproven--
	}
	g.greet(c, a)
	g.forget(c.from, a)
}

func (g *Gate) greet(c *Conn, a *address) {
	if c.place != nil {
		a.silent.Remove(c.place)
		c.place = nil
	}
}

// forget drops an address that has no connections left: a flood from changing addresses must
// not grow the map for ever.
func (g *Gate) forget(from string, a *address) {
	if a.open == 0 {
		delete(g.addresses, from)
	}
}

// tellEvery is how often refused connections are logged: a flood is one fact.
const tellEvery = 10 * time.Second

func (g *Gate) tell(from string) {
	g.untold++
	now := g.clock()
	if now.Sub(g.told) < tellEvery {
		return
	}
	g.limits.Log.Warn("there are as many connections as there can be: some were refused, or closed because they "+
		"never sent a request",
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

func hostOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	if host, _, err := net.SplitHostPort(a.String()); err == nil {
		return host
	}
	return a.String()
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
