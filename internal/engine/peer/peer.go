// Package peer is the mesh between the servers of a cluster: what one of them sends to
// another, and how each knows whom it talks to.
//
// There are two connections from each server to each other one for messages, which may get
// lost and are never sent twice, one of them for what is urgent; and one of its own for each
// question and each large file, so that none of them delays a heartbeat.
package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/listen"
)

// Config is what a mesh is made from.
type Config struct {
	Listener net.Listener // where others call; nil: nobody does
	Self     Identity
	Handler  Handler
	Log      *slog.Logger

	// TLS returns the certificate of this server and the authority of all of them. It is
	// called for each connection, so that they can be replaced while the server runs. Nil:
	// connections are plain.
	TLS func() *tls.Config

	// Dial connects to an address; nil: by TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	Gates *listen.Gates // where the connections of others are counted; nil: nowhere

	// For tests on machines that are too busy for the real limits.
	greetWithin, silentFor time.Duration
}

// A Handler takes what others send. Its methods are called from several goroutines.
type Handler interface {
	// Admit reports whether a server may talk to this one, and this one to it; question tells
	// questions from the rest.
	Admit(from Identity, question bool) *Refusal

	// Message takes a message. The next one of that server waits until it returns, unless
	// one of them is urgent and the other is not.
	Message(from uint64, kind byte, body []byte)

	// Ask answers a question. What is not a *leasehold.Error is told as Unavailable.
	Ask(ctx context.Context, from Identity, kind byte, body []byte) ([]byte, error)

	// Stream takes a large file, and returns when it has it for good.
	Stream(ctx context.Context, from Identity, kind byte, head []byte, body io.Reader) error

	// Refused hears that another server does not want this one.
	Refused(r *Refusal)

	// Reached and Lost tell that messages get through to a server, or no longer do.
	Reached(id uint64)
	Lost(id uint64)
}

// A Peer is where another server is.
type Peer struct{ Name, Address string }

// Status is how the connection to a server does.
type Status struct {
	Connected bool
	Dropped   uint64 // messages that could not be sent
	Error     string // why it is not connected
}

// A Mesh is one server's end of all connections between servers.
type Mesh struct {
	Config
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu       sync.Mutex // guards what follows
	self     Identity
	links    map[uint64]*link
	incoming map[sender]net.Conn   // for messages, by who sends them
	conns    map[net.Conn]struct{} // all that others made
	said     map[string]time.Time  // when what was last said of whom: see complain
	closed   bool
}

// A sender is a server that sends messages, and by which of its connections.
type sender struct {
	id      uint64
	purpose string
}

// New makes a mesh that takes no connections yet: its handler may have to know it first.
func New(c Config) *Mesh {
	m := &Mesh{Config: c, self: c.Self, links: map[uint64]*link{}, incoming: map[sender]net.Conn{},
		conns: map[net.Conn]struct{}{}, said: map[string]time.Time{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if m.Log == nil {
		m.Log = slog.New(slog.DiscardHandler)
	}
	if m.Dial == nil {
		m.Dial = dialTCP
	}
	if m.Listener != nil {
		gate := listen.NewGate(m.Listener,
			listen.Limits{Name: "servers", Most: maxIncoming, Mutual: m.TLS != nil, Log: m.Log})
		m.Gates.Add(gate)
		m.Listener = gate
	}
	m.greetWithin, m.silentFor = cmp.Or(m.greetWithin, defaultGreetWithin), cmp.Or(m.silentFor, defaultSilentFor)
	return m
}

// Start begins to take connections. Call Close when done.
func (m *Mesh) Start() {
	if m.Listener != nil {
		m.workers.Go(m.acceptLoop)
	}
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: time.Second}
	return d.DialContext(ctx, "tcp", address)
}

// Close ends all connections, and returns when all its goroutines have ended.
func (m *Mesh) Close() {
	m.mu.Lock()
	m.closed = true
	m.cancel()
	for conn := range m.conns {
		_ = conn.Close()
	}
	m.mu.Unlock()
	if m.Listener != nil {
		_ = m.Listener.Close()
	}
	m.workers.Wait()
}

// SetSelf says who this server is from now on.
func (m *Mesh) SetSelf(self Identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.self = self
}

// Self returns who this server is.
func (m *Mesh) Self() Identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self
}

// SetPeers says where the other servers are. Connections to and from servers that are not among
// them end.
func (m *Mesh) SetPeers(peers map[uint64]Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	for id, l := range m.links {
		if peers[id] == l.Peer {
			continue
		}
		l.end()
		delete(m.links, id)
	}
	for from, conn := range m.incoming {
		if _, ok := peers[from.id]; !ok {
			_ = conn.Close()
		}
	}
	for id, p := range peers {
		if m.links[id] == nil && p.Address != "" {
			m.links[id] = m.newLink(id, p)
		}
	}
}

// Send gives a message to a server, and reports whether it is on its way, where it may
// still get lost. It never waits.
func (m *Mesh) Send(to uint64, kind byte, body []byte) bool {
	m.mu.Lock()
	l := m.links[to]
	m.mu.Unlock()
	return l != nil && l.send(kind, body)
}

// SendUrgent is Send for a small message that must not wait behind others. It may overtake
// those that were sent before it.
func (m *Mesh) SendUrgent(to uint64, kind byte, body []byte) bool {
	m.mu.Lock()
	l := m.links[to]
	m.mu.Unlock()
	return l != nil && l.hurry(kind, body)
}

// Peers returns how the connections to the others do.
func (m *Mesh) Peers() map[uint64]Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[uint64]Status, len(m.links))
	for id, l := range m.links {
		all[id] = l.status()
	}
	return all
}

func (m *Mesh) peer(id uint64) (Peer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[id]
	if l == nil {
		return Peer{}, false
	}
	return l.Peer, true
}

// connect makes a connection to a server that knows who we are and what it is for.
func (m *Mesh) connect(ctx context.Context, to uint64, p Peer, purpose string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, m.greetWithin)
	defer cancel()
	raw, err := m.Dial(ctx, p.Address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	conn, err := m.secureClient(ctx, raw)
	if err == nil {
		var other Identity
		other, err = greet(conn, hello{Identity: m.Self(), Purpose: purpose, To: to}, p.Name)
		if err == nil && to != 0 && other.ID != to {
			err = refuse(WrongServer, "server %s answers there, and not %q (id %d)", other, p.Name, to)
		}
		if err == nil && to != 0 {
			// One that must not talk to us must not hear of us either: it may have lost what
			// it is taken to know.
			if refused := m.Handler.Admit(other, true); refused != nil {
				err = refused
			}
		}
	}
	if err != nil {
		_ = raw.Close()
		m.heard(err)
		if ctx.Err() != nil {
			err = fmt.Errorf("it did not say in time who it is: %w", ctx.Err())
		}
		return nil, err
	}
	return conn, nil
}

// heard passes on what another server refused us for.
func (m *Mesh) heard(err error) {
	var r *Refusal
	if errors.As(err, &r) && r.By != (Identity{}) {
		m.Handler.Refused(r)
	}
}

const (
	complainEvery = time.Minute
	maxComplaints = 1000 // strangers can make up as many as they like
)

var errKind = errors.New("a frame came that does not belong there")
