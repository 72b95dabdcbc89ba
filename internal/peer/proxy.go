//go:build linux

package peer

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy forwards TCP connections to a server, until it is told to do worse. Connections and
// streams keep their order whatever it does.
type Proxy struct {
	Address string // host:port, for clients

	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	target  string
	state   trouble
	delay   time.Duration
	changed chan struct{} // closed when the state changes
	pairs   map[*pair]bool
}

// trouble is what a proxy does to what it should forward.
type trouble int

const (
	none        trouble = iota
	cut                 // connections are reset, new ones too
	hang                // nothing arrives, but nothing is lost: it waits
	dropReplies         // requests arrive, the answers are lost
)

// StartProxy starts a proxy in front of a server at an address.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	return startProxyAt(t, "127.0.0.1", target)
}

func startProxyAt(t testing.TB, host, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Address: listener.Addr().String(), listener: listener, target: target,
		changed: make(chan struct{}), pairs: map[*pair]bool{},
	}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		p.running.Wait()
	})
	return p
}

// Forward ends all trouble. Connections that lost bytes meanwhile are closed, since what follows
// would make no sense to the client.
func (p *Proxy) Forward() { p.set(none, 0) }

// Cut resets all connections, and every new one, until [Proxy.Forward].
func (p *Proxy) Cut() { p.set(cut, 0) }

// Hang keeps connections open and lets nothing through, in either direction, until
// [Proxy.Forward]: then all of it arrives, late.
func (p *Proxy) Hang() { p.set(hang, 0) }

// Delay lets everything arrive later, in each direction, until [Proxy.Forward].
func (p *Proxy) Delay(by time.Duration) { p.set(none, by) }

// DropReplies lets requests through and loses every answer, until [Proxy.Forward].
func (p *Proxy) DropReplies() { p.set(dropReplies, 0) }

// Forget loses all that is sent on the connections that there are now, without a word to either side. New
// ones work, as after the failover of an address, or if something on the way has forgotten them.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.forgotten = true
	}
}

// Redirect resets all connections and forwards new ones to another server, as a name or a virtual
// address does after a failover.
func (p *Proxy) Redirect(target string) {
	p.mu.Lock()
	p.target = target
	pairs := p.pairs
	p.pairs = map[*pair]bool{}
	p.mu.Unlock()
	for c := range pairs {
		c.reset()
	}
}

func (p *Proxy) set(state trouble, delay time.Duration) {
	p.mu.Lock()
	p.state, p.delay = state, delay
	close(p.changed)
	p.changed = make(chan struct{})
	var over []*pair
	for c := range p.pairs {
		if state == cut || state == none && c.lost {
			over = append(over, c)
		}
	}
	p.mu.Unlock()
	for _, c := range over {
		c.reset()
	}
}

// look returns what a proxy does now, and a channel that is closed when that changes.
func (p *Proxy) look() (trouble, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.delay, p.changed
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

// serve connects a client to the server. While the proxy hangs, the server does not hear of it.
func (p *Proxy) serve(client *net.TCPConn) {
	c := &pair{client: client, over: make(chan struct{})}
	defer c.reset()
	p.mu.Lock()
	p.pairs[c] = true
	target := p.target
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.pairs, c)
		p.mu.Unlock()
	}()
	if state := p.gate(c); state == cut {
		return
	}
	server, err := net.DialTimeout("tcp", target, 10*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	both.Go(func() { p.stream(c, client, server, false) })
	both.Go(func() { p.stream(c, server, client, true) })
	<-c.over
	_ = server.Close()
	both.Wait()
}

// gate waits while the proxy hangs, and returns what it does then.
func (p *Proxy) gate(c *pair) trouble {
	for {
		state, _, changed := p.look()
		if state != hang {
			return state
		}
		select {
		case <-changed:
		case <-c.over:
			return cut
		}
	}
}

// A parcel is what was read at once, and when it may be delivered.
type parcel struct {
	data []byte
	due  time.Time
	last bool
}

// stream forwards one direction of a connection until it ends.
func (p *Proxy) stream(c *pair, from, to net.Conn, reply bool) {
	parcels := make(chan parcel, 1024)
	p.running.Go(func() { c.read(p, from, parcels) })
	defer c.reset()
	for {
		var next parcel
		select {
		case next = <-parcels:
		case <-c.over:
			return
		}
		select {
		case <-time.After(time.Until(next.due)):
		case <-c.over:
			return
		}
		if !p.deliver(c, next, to, reply) {
			return
		}
	}
}

// deliver writes a parcel or loses it, and reports whether more can follow.
func (p *Proxy) deliver(c *pair, next parcel, to net.Conn, reply bool) bool {
	state := p.gate(c)
	p.mu.Lock()
	forgotten := c.forgotten
	p.mu.Unlock()
	switch {
	case state == cut, forgotten && next.last && !reply:
		return false
	case forgotten:
		return true
	case state == dropReplies && reply:
		p.mu.Lock()
		c.lost = true
		p.mu.Unlock()
	default:
		if _, err := to.Write(next.data); err != nil {
			return false
		}
	}
	if next.last {
		c.end()
	}
	return !next.last
}

// A pair is a client's connection and the one to the server that belongs to it.
type pair struct {
	client *net.TCPConn
	once   sync.Once
	over   chan struct{}
	lost   bool // bytes were lost; guarded by the proxy, as is forgotten

	forgotten bool
}

// reset ends both connections, and the client gets an error.
func (c *pair) reset() {
	c.once.Do(func() {
		_ = c.client.SetLinger(0)
		_ = c.client.Close()
		close(c.over)
	})
}

// end ends both connections after what was written has arrived.
func (c *pair) end() {
	c.once.Do(func() {
		_ = c.client.Close()
		close(c.over)
	})
}

// read puts what arrives into the channel, until there is no more.
func (c *pair) read(p *Proxy, from net.Conn, parcels chan<- parcel) {
	for last := false; !last; {
		b := make([]byte, 32<<10)
		n, err := from.Read(b)
		last = err != nil
		_, delay, _ := p.look()
		select {
		case parcels <- parcel{b[:n], time.Now().Add(delay), last}:
		case <-c.over:
			return
		}
	}
}
