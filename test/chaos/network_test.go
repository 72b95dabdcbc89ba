//go:build linux

package chaos

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A network carries everything that servers say to each other, and what clients say to
// servers, through doors that it can shut: each direction between two parties by itself.
type network struct {
	mu        sync.Mutex // guards what follows
	links     map[pair]*link
	wires     map[*wire]bool
	listeners []net.Listener
	closed    bool
	work      sync.WaitGroup
}

// A pair is a direction: from one party to another.
type pair struct{ from, to string }

// A condition is how a direction is. The zero value is well.
type condition struct {
	cut   bool          // connections are reset, and none can be made
	held  bool          // nothing arrives until it is over
	delay time.Duration // each byte arrives so much later
}

// A link is one direction.
type link struct {
	mu      sync.Mutex // guards what follows
	now     condition
	changed chan struct{} // closed when it does
}

// A wire is one connection.
type wire struct {
	pair
	near, far net.Conn
	over      chan struct{}
	once      sync.Once
}

func newNetwork() *network { return &network{links: map[pair]*link{}, wires: map[*wire]bool{}} }

func (n *network) link(p pair) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.links[p] == nil {
		n.links[p] = &link{changed: make(chan struct{})}
	}
	return n.links[p]
}

// set puts a direction into a condition.
func (n *network) set(p pair, c condition) {
	l := n.link(p)
	l.mu.Lock()
	l.now = c
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if c.cut {
		n.reset(func(w pair) bool { return w == p || w == p.back() })
	}
}

func (p pair) back() pair { return pair{p.to, p.from} }

// heal makes everything well.
func (n *network) heal() {
	n.mu.Lock()
	var all []pair
	for p := range n.links {
		all = append(all, p)
	}
	n.mu.Unlock()
	for _, p := range all {
		n.set(p, condition{})
	}
}

// reset ends connections as a machine does that forgot them.
func (n *network) reset(which func(pair) bool) {
	n.mu.Lock()
	var ended []*wire
	for w := range n.wires {
		if which(w.pair) {
			ended = append(ended, w)
		}
	}
	n.mu.Unlock()
	for _, w := range ended {
		w.end(true)
	}
}

func (l *link) get() (condition, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.changed
}

// close ends everything.
func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	for _, l := range n.listeners {
		_ = l.Close()
	}
	n.mu.Unlock()
	n.reset(func(pair) bool { return true })
	n.work.Wait()
}

// A gate is where a party is reached.
type gate struct {
	to     string
	who    func(net.Conn) string // finds out who comes; empty: nobody who is let in
	target func() string         // where the party itself is
}

// open opens a gate and returns its address.
func (n *network) open(g gate) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	n.listeners = append(n.listeners, listener)
	n.mu.Unlock()
	n.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n.work.Go(func() { n.carry(conn, g) })
		}
	})
	return listener.Addr().String(), nil
}

// carry takes one connection to its target.
func (n *network) carry(near net.Conn, g gate) {
	from := g.who(near)
	p := pair{from, g.to}
	there, _ := n.link(p).get()
	back, _ := n.link(p.back()).get()
	if from == "" || there.cut || back.cut {
		reset(near)
		return
	}
	far, err := net.DialTimeout("tcp", g.target(), 5*time.Second)
	if err != nil {
		reset(near)
		return
	}
	w := &wire{pair: p, near: near, far: far, over: make(chan struct{})}
	n.mu.Lock()
	closed := n.closed
	n.wires[w] = true
	n.mu.Unlock()
	if closed {
		w.end(true)
	}
	var both sync.WaitGroup
	both.Go(func() { w.pump(near, far, n.link(p)) })
	both.Go(func() { w.pump(far, near, n.link(p.back())) })
	both.Wait()
	n.mu.Lock()
	delete(n.wires, w)
	n.mu.Unlock()
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// end closes both ends of a connection.
func (w *wire) end(hard bool) {
	w.once.Do(func() {
		close(w.over)
		if hard {
			reset(w.near)
			reset(w.far)
			return
		}
		_ = w.near.Close()
		_ = w.far.Close()
	})
}

// A parcel is some bytes with when they came.
type parcel struct {
	bytes []byte
	came  time.Time
}

// pump carries one direction of a connection until either end is gone.
func (w *wire) pump(from, to net.Conn, l *link) {
	defer w.end(false)
	parcels := make(chan parcel, 64)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(parcels)
		for {
			buffer := make([]byte, 16<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case parcels <- parcel{buffer[:n], time.Now()}:
				case <-w.over:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	for p := range parcels {
		if !w.wait(p, l) {
			break
		}
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	w.end(false)
	reading.Wait()
}

// wait waits until a parcel may arrive, and reports whether it can.
func (w *wire) wait(p parcel, l *link) bool {
	for {
		c, changed := l.get()
		later := time.Until(p.came.Add(c.delay))
		if !c.held && later <= 0 {
			return true
		}
		due := make(<-chan time.Time)
		if !c.held {
			due = time.After(later)
		}
		select {
		case <-due:
		case <-changed:
		case <-w.over:
			return false
		}
	}
}

// always is for gates where only one party comes in.
func always(party string) func(net.Conn) string { return func(net.Conn) string { return party } }

// processOf finds which of some processes made a connection. All servers reach another
// one at the same address, so this is how we know who comes.
func processOf(c net.Conn, pids map[int]string) string {
	inode := peerSocket(c)
	if inode == "" {
		return ""
	}
	for pid, name := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && target == "socket:["+inode+"]" {
				return name
			}
		}
	}
	return ""
}

// peerSocket returns the inode of the socket at the other end of a connection. Both addresses
// have to match: a port can also belong to connections with others, or to one that just ended.
func peerSocket(c net.Conn) string {
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	local, ok2 := c.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return ""
	}
	from, to := tableAddress(remote), tableAddress(local)
	// The kernel hands the table out in pieces. What changes between two of them can hide an
	// entry that is there, so one that is not found is looked for again.
	for range 5 {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			return ""
		}
		for line := range bytes.Lines(table) {
			fields := strings.Fields(string(line))
			if len(fields) > 9 && fields[1] == from && fields[2] == to {
				return fields[9]
			}
		}
	}
	return ""
}

// tableAddress returns an address as /proc/net/tcp writes it.
func tableAddress(a *net.TCPAddr) string {
	ip := a.IP.To4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], a.Port)
}
