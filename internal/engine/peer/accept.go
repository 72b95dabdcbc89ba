package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/listen"
)

// maxIncoming bounds how many connections other servers can make.
const maxIncoming = 1024

// acceptLoop takes the connections of others.
func (m *Mesh) acceptLoop() {
	for pause := time.Duration(0); ; {
		conn, err := m.Listener.Accept()
		if m.ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			// Most likely too many files are open, which passes. Giving up would cut this
			// server off for good.
			pause = min(max(2*pause, 10*time.Millisecond), time.Second)
			m.Log.Warn("a connection of another server could not be taken", "err", err)
			m.sleep(pause)
			continue
		}
		pause = 0
		if m.keep(conn) {
			m.workers.Go(func() { m.serve(conn) })
		}
	}
}

// sleep waits, unless the mesh is closed.
func (m *Mesh) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.ctx.Done():
	}
}

func (m *Mesh) keep(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		_ = conn.Close()
		return false
	}
	m.conns[conn] = struct{}{}
	return true
}

// serve takes one connection: handshake, greeting, admission, and then what it is for. Nothing
// of what it carries is looked at before the other end is admitted.
func (m *Mesh) serve(raw net.Conn) {
	defer func() {
		_ = raw.Close()
		m.mu.Lock()
		delete(m.conns, raw)
		m.mu.Unlock()
	}()
	_ = raw.SetDeadline(time.Now().Add(2 * m.greetWithin))
	conn, err := m.secureServer(m.ctx, raw)
	if err != nil {
		// A client that only looks whether the port is open says nothing at all.
		if !errors.Is(err, io.EOF) {
			m.complain("another server could not be let in", raw.RemoteAddr(), err)
		}
		return
	}
	h, err := readHello(conn)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			m.complain("another server could not be understood", raw.RemoteAddr(), err)
		}
		return
	}
	refused := m.admit(conn, h)
	if err := answerHello(conn, m.Self(), refused); err != nil {
		return
	}
	if refused != nil {
		m.Log.Debug("another server was refused", "server", h.Name, "from", raw.RemoteAddr(), "reason", refused.Message)
		return
	}
	if known := listen.ConnOf(raw); known != nil {
		known.Greeted(stateOf(conn))
		known.Proven()
	}
	_ = conn.SetDeadline(time.Time{})
	switch h.Purpose {
	case forMessages, forUrgent:
		m.takeMessages(conn, raw, h)
	case forAsk:
		m.answer(conn, h.Identity)
	case forStream:
		m.takeStream(conn, h.Identity)
	}
}

// complain logs why another server was not let in. That server tries again twice a second for
// as long as it lasts, so the same complaint about one machine is logged once a minute.
func (m *Mesh) complain(what string, from net.Addr, err error) {
	host, _, _ := net.SplitHostPort(from.String())
	key, now := host+" "+lasting(err), time.Now()
	m.mu.Lock()
	last, known := m.said[key]
	fresh := !known || now.Sub(last) >= complainEvery
	if fresh {
		if len(m.said) >= maxComplaints {
			clear(m.said)
		}
		m.said[key] = now
	}
	m.mu.Unlock()
	if fresh {
		m.Log.Warn(what, "from", from, "err", err)
	}
}

// lasting returns an error's text without what differs from one attempt to the next: the port,
// and the moment at which a certificate was checked.
func lasting(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	text, _, _ := strings.Cut(err.Error(), ": current time ")
	return text
}

func (m *Mesh) admit(conn net.Conn, h hello) *Refusal {
	var r *Refusal
	if err := certified(conn, h.Name); errors.As(err, &r) {
		return r
	}
	switch self := m.Self(); {
	case h.To != 0 && self.ID == 0:
		return refuse(NotReady, "server %s has no cluster yet", self)
	case h.To != 0 && h.To != self.ID:
		return refuse(WrongServer, "server %s is there, and not the one with the id %d", self, h.To)
	}
	switch h.Purpose {
	case forMessages, forUrgent, forAsk, forStream:
		return m.Handler.Admit(h.Identity, h.Purpose == forAsk)
	}
	return refuse(NotReady, "what a connection for %q is, this version does not know", h.Purpose)
}

// takeMessages passes on what another server sends. A newer connection from it replaces an
// older one, which may be dead without anybody having noticed.
func (m *Mesh) takeMessages(conn, raw net.Conn, h hello) {
	from := sender{h.ID, h.Purpose}
	m.mu.Lock()
	if old := m.incoming[from]; old != nil {
		_ = old.Close()
	}
	m.incoming[from] = raw
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		if m.incoming[from] == raw {
			delete(m.incoming, from)
		}
		m.mu.Unlock()
	}()
	if err := m.readMessages(conn, h.ID); err != nil && m.ctx.Err() == nil {
		m.Log.Debug("the connection of another server ended", "server", h.Name, "err", err)
	}
}

// unavailable is the error for what did not reach another server.
func unavailable(p Peer, err error) error {
	name := p.Name
	if name == "" {
		name = p.Address
	}
	return fmt.Errorf("server %s could not be asked: %w", name, err)
}
