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

// How connections are watched. Nobody is told that a machine lost its power: each end
// pings, and takes silence for the end.
const (
	defaultGreetWithin = 4 * time.Second // to connect, and to agree who is there: four round trips
	defaultSilentFor   = 2 * time.Second

	pingEvery   = 500 * time.Millisecond
	firstPause  = 50 * time.Millisecond
	longPause   = 500 * time.Millisecond
	writeWithin = 5 * time.Second
)

// What may wait for a server that is slow: so many messages, and so many bytes.
const (
	maxQueued      = 4096
	maxQueuedBytes = 32 << 20
)

// A link carries messages to one server.
type link struct {
	Peer
	mesh *Mesh
	id   uint64
	ctx  context.Context
	end  context.CancelFunc

	arrived chan struct{} // has one element while there is something to take
	mu      sync.Mutex    // guards what follows
	up      bool
	queue   [][]byte
	bytes   int
	dropped uint64
	err     string // why it is not up
}

func (m *Mesh) newLink(id uint64, p Peer) *link {
	l := &link{Peer: p, mesh: m, id: id, arrived: make(chan struct{}, 1)}
	l.ctx, l.end = context.WithCancel(m.ctx)
	m.workers.Go(l.run)
	return l
}

func (l *link) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Status{Connected: l.up, Dropped: l.dropped, Error: l.err}
}

// send queues a message. What finds no connection is lost at once: it would be old when
// there is one.
func (l *link) send(kind byte, body []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up || len(l.queue) >= maxQueued || l.bytes+len(body) > maxQueuedBytes || len(body) > MaxFrame {
		l.dropped++
		return false
	}
	l.queue = append(l.queue, appendFrame(make([]byte, 0, frameHead+1+len(body)), kind, body))
	l.bytes += len(body)
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	return true
}

// take returns what is to be sent.
func (l *link) take() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue, l.bytes = nil, 0
	return queue
}

// setUp notes whether messages get through. Those that wait for a connection which is
// gone are lost with it: nobody knows which of those before them came through, and what
// is sent again might come twice.
func (l *link) setUp(up bool, err error) {
	l.mu.Lock()
	l.up = up
	l.dropped += uint64(len(l.queue))
	l.queue, l.bytes = nil, 0
	l.err = ""
	if err != nil {
		l.err = err.Error()
	}
	l.mu.Unlock()
	if up {
		l.mesh.Handler.Reached(l.id)
	} else {
		l.mesh.Handler.Lost(l.id)
	}
}

// run keeps a connection up.
func (l *link) run() {
	pause, said := firstPause, ""
	for l.ctx.Err() == nil {
		conn, err := l.mesh.connect(l.ctx, l.id, l.Peer, forMessages)
		if err == nil {
			l.mesh.Log.Info("another server is connected", "server", l.Name, "address", l.Address)
			l.setUp(true, nil)
			pause, said = firstPause, ""
			err = l.carry(conn)
			_ = conn.Close()
		}
		if l.ctx.Err() != nil {
			return
		}
		l.setUp(false, err)
		if said != lasting(err) {
			said = lasting(err) // once is enough
			l.mesh.Log.Log(l.ctx, levelOf(err), "another server can not be reached", "server", l.Name, "address", l.Address, "err", err)
		}
		l.rest(pause)
		pause = min(2*pause, longPause)
	}
}

// levelOf is how loud to be about an error. A server that is not ready will be.
func levelOf(err error) slog.Level {
	var r *Refusal
	if errors.As(err, &r) && r.Reason == NotReady {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

func (l *link) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
}

// carry sends messages until the connection breaks, and returns why.
func (l *link) carry(conn net.Conn) error {
	ctx, cancel := context.WithCancelCause(l.ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var reader sync.WaitGroup
	reader.Go(func() { cancel(l.mesh.readPongs(conn)) })
	cancel(l.write(ctx, conn))
	reader.Wait()
	return context.Cause(ctx)
}

// write sends what is queued, and a ping now and then.
func (l *link) write(ctx context.Context, conn net.Conn) error {
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

// inWords says how a connection ended.
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
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(m.silentFor))
		kind, body, err := readFrame(r, MaxFrame)
		if err != nil {
			return inWords(err)
		}
		switch {
		case kind == kindPing:
			_ = conn.SetWriteDeadline(time.Now().Add(writeWithin))
			if err := writeFrame(conn, kindPong, nil); err != nil {
				return err
			}
		case kind < kindHello:
			m.Handler.Message(from, kind, body)
		default:
			return errKind
		}
	}
}
