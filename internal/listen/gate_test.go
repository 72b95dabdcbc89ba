package listen

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"
)

// A caller is one end of a connection from some address.
type caller struct {
	net.Conn
	from   string
	closed bool
}

func (c *caller) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }
func (c *caller) Close() error         { c.closed = true; return nil }

// A queue is a listener at which callers stand.
type queue struct {
	net.Listener
	next []*caller
}

func (q *queue) Accept() (net.Conn, error) {
	if len(q.next) == 0 {
		return nil, errors.New("nobody comes")
	}
	c := q.next[0]
	q.next = q.next[1:]
	return c, nil
}

type hall struct {
	t     *testing.T
	queue *queue
	*Gate
}

func newHall(t *testing.T, limits Limits) *hall {
	q := &queue{}
	return &hall{t, q, NewGate(q, limits)}
}

// come lets one caller in; the Conn is nil if it was refused.
func (h *hall) come(from string) (*caller, *Conn) {
	c := &caller{from: from}
	h.queue.next = append(h.queue.next, c)
	accepted, err := h.Accept()
	if err != nil {
		return c, nil
	}
	return c, accepted.(*Conn)
}

func (h *hall) expect(open int, refused, evicted uint64) {
	h.t.Helper()
	if h.open != open || h.refused != refused || h.evicted != evicted {
		h.t.Errorf("%d open, %d refused, %d evicted; want %d, %d, %d", h.open, h.refused, h.evicted, open, refused, evicted)
	}
}

var proof = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}

func TestTheBusiestSilentAddressMakesRoom(t *testing.T) {
	h := newHall(t, Limits{Most: 20})
	first, _ := h.come("10.0.0.1")
	var crowd []*caller
	for range 15 {
		c, _ := h.come("10.0.0.9")
		crowd = append(crowd, c)
	}
	for i := range 4 {
		_, c := h.come(fmt.Sprint("10.0.1.", i))
		c.Greeted(nil)
	}
	h.expect(20, 0, 0)
	_, newcomer := h.come("10.0.0.2")
	if newcomer == nil || !crowd[0].closed || first.closed {
		t.Errorf("the oldest of the crowd: %v; somebody else who came before: %v", crowd[0].closed, first.closed)
	}
	h.expect(20, 0, 1)
}

func TestWhoProvedSomethingStays(t *testing.T) {
	h := newHall(t, Limits{Most: 10})
	var all []*Conn
	for i := range 10 {
		_, c := h.come(fmt.Sprint("10.0.0.", i))
		c.Proven()
		all = append(all, c)
	}
	if c, conn := h.come("10.0.1.1"); conn != nil || !c.closed {
		t.Error("one too many was let in")
	}
	h.expect(10, 1, 0)
	_ = all[3].Close()
	_ = all[3].Close() // twice is once
	h.expect(9, 1, 0)
	if _, conn := h.come("10.0.1.1"); conn == nil {
		t.Error("there is room again, and nobody is let in")
	}
}

// One address cannot have all connections, even if it greets with each of them.
func TestOneAddressHasAShare(t *testing.T) {
	h := newHall(t, Limits{Most: 100})
	for range 100 {
		if _, c := h.come("10.0.0.9"); c != nil {
			c.Proven()
		}
	}
	if kept := h.kept; kept != 75 {
		t.Errorf("one address keeps %d connections, want 75", kept)
	}
	for i := range 25 {
		_, c := h.come(fmt.Sprint("10.0.1.", i))
		if c == nil {
			t.Fatal("another address is locked out")
		}
		c.Proven()
	}
	if h.open != 100 || h.kept != 100 || h.refused != 0 {
		t.Errorf("%d open, %d kept, %d refused", h.open, h.kept, h.refused)
	}
}

// Where clients show certificates, those that have not leave room for those that have, and a
// share is for strangers alone.
func TestTheAuthenticatedHaveRoom(t *testing.T) {
	h := newHall(t, Limits{Most: 100, Mutual: true})
	for range 60 {
		_, c := h.come("10.0.0.1")
		c.Greeted(proof)
	}
	for i := range 40 {
		h.come(fmt.Sprint("10.0.2.", i))
	}
	h.expect(100, 0, 0)
	for range 40 { // each takes the place of a stranger
		_, c := h.come("10.0.0.1")
		if c == nil {
			t.Fatal("who has a certificate is locked out")
		}
		c.Greeted(proof)
	}
	h.expect(100, 0, 40)
	strangers := newHall(t, Limits{Most: 100, Mutual: true})
	for i := range 200 {
		strangers.come(fmt.Sprint("10.0.3.", i))
	}
	strangers.expect(90, 0, 110)
	if len(h.addresses) > 2 {
		t.Errorf("%d addresses are remembered", len(h.addresses))
	}
}

// Whoever proves nothing makes room for everybody, however much it asks of what anybody may: a few addresses that open
// all connections lock nobody out.
func TestWhoProvesNothingLocksNobodyOut(t *testing.T) {
	h := newHall(t, Limits{Most: 100})
	for i := range 99 {
		_, c := h.come(fmt.Sprint("10.0.0.", i%2))
		c.Greeted(nil)
	}
	for i := range 50 {
		_, c := h.come(fmt.Sprint("10.0.1.", i))
		if c == nil {
			t.Fatal("a newcomer is locked out")
		}
		c.Proven()
	}
	if h.refused != 0 || h.kept != 50 {
		t.Errorf("%d are refused, %d kept", h.refused, h.kept)
	}
}

// A /64 of IPv6 is one address.
func TestANetworkHasAShare(t *testing.T) {
	h := newHall(t, Limits{Most: 100})
	for i := range 200 {
		if _, c := h.come(fmt.Sprintf("2001:db8:1:1::%x", i)); c != nil {
			c.Proven()
		}
	}
	if h.kept != 75 || len(h.addresses) != 1 {
		t.Errorf("one network keeps %d connections from %d addresses, want 75", h.kept, len(h.addresses))
	}
	if _, c := h.come("2001:db8:1:2::1"); c == nil {
		t.Error("another network is locked out")
	}
}

// Whoever has credentials for all connections, from many addresses, leaves some for an operator at the machine itself.
func TestTheMachineItselfHasAReserve(t *testing.T) {
	h := newHall(t, Limits{Most: 1000})
	for i := range 1200 {
		if _, c := h.come(fmt.Sprintf("10.%d.%d.1", i/250, i%250)); c != nil {
			c.Proven()
		}
	}
	for range 5 {
		if _, c := h.come("127.0.0.1"); c == nil {
			t.Fatal("the operator is locked out")
		}
	}
}
