package peer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// How connections are watched. Nothing reports that a machine has lost its power, so each end
// pings, and takes silence for the end.
const (
	defaultGreetWithin = 4 * time.Second // to connect, and to agree who is there: four round trips
	defaultSilentFor   = 2 * time.Second

	pingEvery   = 500 * time.Millisecond
	firstPause  = 50 * time.Millisecond
	longPause   = 500 * time.Millisecond
	writeWithin = 5 * time.Second
	urgentPause = 10 * time.Second
)

// Limits of what may be queued for a slow server: messages, and their bytes.
const (
	maxQueued      = 4096
	maxQueuedBytes = 32 << 20

	maxUrgent = 64 << 10  // bytes of an urgent message
	burst     = 256 << 10 // bytes that are sent before it is looked for what is urgent
)

// A link carries messages to one server. Urgent ones have a connection of their own, so that
// they never wait behind megabytes that are on their way; if the other server does not know of
// such a connection, or there is none at the moment, they go before everything that is still
// queued here.
type link struct {
	Peer
	mesh *Mesh
	id   uint64
	ctx  context.Context
	end  context.CancelFunc

	main, urgent lane
}

// A lane is one of the connections of a link, with what waits for it.
type lane struct {
	purpose string
	arrived chan struct{} // has one element while there is something to take

	mu      sync.Mutex // guards what follows
	up      bool
	first   [][]byte // goes before the queue
	queue   [][]byte
	bytes   int
	dropped uint64
	err     string // why it is not up
}

func (m *Mesh) newLink(id uint64, p Peer) *link {
	l := &link{Peer: p, mesh: m, id: id}
	l.main = lane{purpose: forMessages, arrived: make(chan struct{}, 1)}
	l.urgent = lane{purpose: forUrgent, arrived: make(chan struct{}, 1)}
	l.ctx, l.end = context.WithCancel(m.ctx)
	m.workers.Go(l.run)
	m.workers.Go(l.runUrgent)
	return l
}

func (l *link) status() Status {
	l.main.mu.Lock()
	defer l.main.mu.Unlock()
	return Status{Connected: l.main.up, Dropped: l.main.dropped, Error: l.main.err}
}

// send queues a message. A message that finds no connection is dropped at once: it would be out
// of date when there is one, and raft sends again what it still needs.
func (l *link) send(kind byte, body []byte) bool { return l.main.send(kind, body, false) }

// hurry queues a message that must not wait behind others.
func (l *link) hurry(kind byte, body []byte) bool {
	return l.urgent.isUp() && l.urgent.send(kind, body, true) || l.main.send(kind, body, true)
}

func (l *lane) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

func (l *lane) send(kind byte, body []byte, first bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := len(l.queue) >= maxQueued || l.bytes+len(body) > maxQueuedBytes
	if first {
		full = len(l.first) >= maxQueued || len(body) > maxUrgent
	}
	if !l.up || full || len(body) > MaxFrame {
		l.dropped++
		return false
	}
	frame := appendFrame(make([]byte, 0, frameHead+1+len(body)), kind, body)
	if first {
		l.first = append(l.first, frame)
	} else {
		l.queue = append(l.queue, frame)
		l.bytes += len(body)
	}
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	return true
}

// take returns what to send next: everything urgent, and then as much of the rest as may be
// sent before looking for urgent messages again.
func (l *lane) take() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	frames := l.first
	l.first = nil
	taken, size := 0, 0
	for taken < len(l.queue) && (taken == 0 || size+len(l.queue[taken]) <= burst) {
		size += len(l.queue[taken])
		taken++
	}
	frames = append(frames, l.queue[:taken]...)
	clear(l.queue[:taken])
	if l.queue = l.queue[taken:]; len(l.queue) == 0 {
		l.queue, l.bytes = nil, 0
		return frames
	}
	l.bytes -= size - taken*(frameHead+1)
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	return frames
}

// setUp notes whether messages get through. Those that were queued for a connection which is
// gone are dropped with it: nobody knows which of the ones before them arrived, and a command
// that was sent again might be carried out twice.
func (l *lane) setUp(up bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = up
	l.dropped += uint64(len(l.queue) + len(l.first))
	l.first, l.queue, l.bytes = nil, nil, 0
	l.err = ""
	if err != nil {
		l.err = err.Error()
	}
}

// run keeps a connection up.
func (l *link) run() {
	pause, said := firstPause, ""
	for l.ctx.Err() == nil {
		conn, err := l.mesh.connect(l.ctx, l.id, l.Peer, forMessages)
		if err == nil {
			l.mesh.Log.Info("another server is connected", "server", l.Name, "address", l.Address)
			l.main.setUp(true, nil)
			l.mesh.Handler.Reached(l.id)
			pause, said = firstPause, ""
			err = l.carry(conn, &l.main)
			_ = conn.Close()
		}
		if l.ctx.Err() != nil {
			return
		}
		l.main.setUp(false, err)
		l.mesh.Handler.Lost(l.id)
		if said != lasting(err) {
			said = lasting(err) // once is enough
			l.mesh.Log.Log(l.ctx, levelOf(err), "another server cannot be reached", "server", l.Name, "address",
				l.Address, "err", err)
		}
		l.sleep(pause)
		pause = min(2*pause, longPause)
	}
}

// runUrgent keeps the connection for urgent messages up. Everything works without it, only
// slower.
func (l *link) runUrgent() {
	for l.ctx.Err() == nil {
		conn, err := l.mesh.connect(l.ctx, l.id, l.Peer, forUrgent)
		pause := longPause
		if err == nil {
			l.urgent.setUp(true, nil)
			err = l.carry(conn, &l.urgent)
			_ = conn.Close()
		} else if isRefusal(err, NotReady) && l.main.isUp() {
			pause = urgentPause // it is of a version that has none
		}
		l.urgent.setUp(false, err)
		l.sleep(pause)
	}
}

func isRefusal(err error, reason Reason) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Reason == reason
}

// levelOf is the level at which to log an error. A server that is not ready soon will be.
func levelOf(err error) slog.Level {
	if isRefusal(err, NotReady) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

func (l *link) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
}

// carry sends messages until the connection breaks, and returns why.
func (l *link) carry(conn net.Conn, from *lane) error {
	ctx, cancel := context.WithCancelCause(l.ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var reader sync.WaitGroup
	reader.Go(func() { cancel(l.mesh.readPongs(conn)) })
	cancel(from.write(ctx, conn))
	reader.Wait()
	return context.Cause(ctx)
}

// write sends what is queued, and a ping now and then.
func (l *lane) write(ctx context.Context, conn net.Conn) error {
	ping := appendFrame(nil, kindPing, nil)
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	w := bufio.NewWriterSize(conn, 64<<10)
	for {
		var frames [][]byte
		select {
		case <-l.arrived:
			frames = l.take()
		case <-ticker.C:
			frames = [][]byte{ping}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := writeAll(conn, w, frames); err != nil {
			return err
		}
	}
}

func writeAll(conn net.Conn, w *bufio.Writer, frames [][]byte) error {
	for _, frame := range frames {
		_ = conn.SetWriteDeadline(time.Now().Add(writeWithin))
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeWithin))
	return w.Flush()
}

var (
	errSilent = errors.New("it has been silent for too long")
	errEnded  = errors.New("it ended the connection")
)

// readPongs returns when the other end is silent or gone.
func (m *Mesh) readPongs(conn net.Conn) error {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(m.silentFor))
		kind, _, err := readFrame(conn, 0)
		if err != nil {
			return inWords(err)
		}
		if kind != kindPong {
			return errKind
		}
	}
}

// inWords returns in plain words how a connection ended.
func inWords(err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return errSilent
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errEnded
	}
	return err
}

// readMessages passes messages on until the connection ends.
func (m *Mesh) readMessages(conn net.Conn, from uint64) error {
	r := bufio.NewReaderSize(&listener{Conn: conn, silentFor: m.silentFor, heard: time.Now()}, 64<<10)
	for {
		kind, body, err := readFrame(r, MaxFrame)
		if err != nil {
			return inWords(err)
		}
		switch {
		case kind == kindPing:
			if err := pong(conn); err != nil {
				return err
			}
		case kind < kindHello:
			m.Handler.Message(from, kind, body)
		default:
			return errKind
		}
	}
}

func pong(conn net.Conn) error {
	_ = conn.SetWriteDeadline(time.Now().Add(writeWithin))
	return writeFrame(conn, kindPong, nil)
}

// A listener reads from a connection for as long as anything arrives, and answers now and then
// that it does: on a slow link the other end's pings may be behind megabytes, and it must not
// take this end for dead while they arrive.
type listener struct {
	net.Conn
	silentFor time.Duration
	heard     time.Time // when it last said so
}

func (l *listener) Read(b []byte) (int, error) {
	_ = l.SetReadDeadline(time.Now().Add(l.silentFor))
	n, err := l.Conn.Read(b)
	if now := time.Now(); err == nil && now.Sub(l.heard) >= pingEvery {
		l.heard = now
		err = pong(l.Conn)
	}
	return n, err
}
