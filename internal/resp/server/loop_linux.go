package server

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A loop carries out what comes on all plain TCP connections, so that they share batches: it
// waits until some are readable, reads and begins what has come on all of them, submits that
// together, and writes the answers.
//
// Its epoll instance is itself a file that Go's poller waits for: an idle loop is a parked
// goroutine and takes no thread. The connections stay in Go's poller as well. So whatever may
// block (a command that runs, a client that does not read) is left to a goroutine, which uses
// the connection as any other would, and gives it back to the loop when it is done.
type loop struct {
	server *Server
	epoll  *os.File
	raw    syscall.RawConn
	fd     int
	wakeUp int // an eventfd in epoll

	mu     sync.Mutex
	places map[int32]*place // guarded by mu: by descriptor
	posted []*place         // guarded by mu: those that a goroutine gave back, or that have ended

	// awaited is the batch that the loop's goroutine waits for. Who takes it away is the loop from then on.
	awaited atomic.Pointer[round]

	// The rest belongs to the loop's goroutine.
	active []*Conn // what it looks at in this turn
	events [256]unix.EpollEvent
	ready  int
	next   []*Conn // what it looks at in the next turn
	round  *round
	relief *time.Timer
	buf    []byte // for what reads and writes
	count  int
	errno  error
	spare  [][]byte // buffers for connections that have something to read: idle ones have none
	waits  func(fd uintptr) bool
	polls  func(fd uintptr)
	reads  func(fd uintptr) bool
	writes func(fd uintptr) bool
}

func newLoop(s *Server) (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &loop{server: s, fd: fd, places: map[int32]*place{}, round: s.newRound()}
	l.relief = time.AfterFunc(time.Hour, l.relieve)
	l.relief.Stop()
	if err = unix.SetNonblock(fd, true); err == nil {
		l.epoll = os.NewFile(uintptr(fd), "epoll")
		l.raw, err = l.epoll.SyscallConn()
	}
	if err == nil {
		l.wakeUp, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err == nil {
		err = l.watch(l.wakeUp)
	}
	if err != nil {
		return nil, err
	}
	l.waits = func(uintptr) bool { l.poll(); return l.ready > 0 }
	l.polls = func(uintptr) { l.poll() }
	l.reads = func(fd uintptr) bool { l.count, l.errno = unix.Read(int(fd), l.buf); return true }
	l.writes = func(fd uintptr) bool { l.count, l.errno = unix.Write(int(fd), l.buf); return true }
	go l.run()
	return l, nil
}

// watch has the loop learn when something comes.
func (l *loop) watch(fd int) error {
	return unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd),
	})
}

func (l *loop) poll() {
	n, err := unix.EpollWait(l.fd, l.events[:], 0)
	l.ready = n
	if err != nil {
		l.ready = 0
	}
}

// maxCalls is about how many commands share a batch, of all connections. A few that send many at
// a time leave room for the others, and the memory that a batch takes is kept for the next.
const maxCalls = 8192

// post has the loop look at a connection.
func (l *loop) post(p *place) {
	l.mu.Lock()
	first := len(l.posted) == 0
	l.posted = append(l.posted, p)
	l.mu.Unlock()
	if first {
		_, _ = unix.Write(l.wakeUp, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (l *loop) run() {
	for {
		if err := l.wait(); err != nil {
			_ = l.epoll.Close()
			_ = unix.Close(l.wakeUp)
			return
		}
		l.active, l.next = l.next, l.active[:0]
		for _, c := range l.active {
			c.place.listed = false
			l.begin(c, max(1, maxCalls/len(l.active)))
		}
		if !l.answer() {
			return
		}
		clear(l.active)
	}
}

// wait waits until there is something to do, and lists what.
func (l *loop) wait() error {
	var err error
	if len(l.next) > 0 {
		err = l.raw.Control(l.polls)
	} else {
		err = l.raw.Read(l.waits)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events[:l.ready] {
		if p := l.places[e.Fd]; p != nil {
			p.readable = true
			p.last = p.last || e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
			l.list(p)
		}
	}
	for _, p := range l.posted {
		if p == nil {
			return io.EOF
		}
		if p.away = p.lent.Load(); !p.away {
			p.readable = true
			l.list(p)
		}
	}
	clear(l.posted)
	l.posted = l.posted[:0]
	return nil
}

func (l *loop) list(p *place) {
	if !p.listed && !p.away && !p.gone {
		p.listed = true
		l.next = append(l.next, p.conn)
	}
}

// begin reads what has come on a connection, once, and begins it. What has been read comes first: a client that sends
// faster than its commands are carried out has to wait.
func (l *loop) begin(c *Conn, most int) {
	p := c.place
	if p.readable && !p.over && p.why == pauseEmpty {
		l.read(c)
	}
	c.hold()
	if p.calls, p.why = 0, pauseEmpty; c.ending || c.isEnded() {
		return
	}
	before := l.round.count
	for {
		p.why = c.gather(l.round, min(most, l.server.config.Pipeline))
		p.calls = l.round.count - before
		if p.why != pauseTurn || p.calls > 0 || c.turn.blocks() {
			return
		}
		c.perform()
		if c.ending {
			return
		}
		if c.out.Len() > fullOutput {
			p.why = pauseFull
			return
		}
	}
}

func (l *loop) keep(buffer []byte) {
	if buffer != nil && len(l.spare) < len(l.events) {
		l.spare = append(l.spare, buffer)
	}
}

func (l *loop) read(c *Conn) {
	p := c.place
	if n := len(l.spare); n > 0 {
		if c.in.Use(l.spare[n-1]) {
			l.spare = l.spare[:n-1]
		}
	}
	l.buf = c.in.Space()
	err := p.raw.Read(l.reads)
	if err == nil {
		err = l.errno
	}
	switch {
	case errors.Is(err, unix.EAGAIN):
		p.readable = false
		p.over = c.expired.Load()
	case errors.Is(err, unix.EINTR):
	case err != nil || l.count == 0:
		p.over = true
	default:
		p.readable = p.last || l.count == len(l.buf)
		c.in.Filled(l.count)
	}
}

// answer submits what began, waits for it, and answers. It reports false if that took so long that another goroutine is
// the loop now.
func (l *loop) answer() bool {
	r := l.round
	if r.count > 0 {
		for _, c := range l.active {
			// What was answered before is not kept waiting for this batch.
			if c.out.Len() > 0 {
				l.flush(c)
				c.hold()
			}
		}
		l.awaited.Store(r)
		l.relief.Reset(patience)
		r.await()
		if !l.awaited.CompareAndSwap(r, nil) {
			r.answerLeft()
			return false
		}
		l.relief.Stop()
		r.answer()
	}
	for _, c := range l.active {
		if !c.place.away {
			l.goOn(c)
		}
	}
	return true
}

// patience is how long a loop waits for a batch before it goes on with other connections.
const patience = 20 * time.Millisecond

// relieve goes on as the loop, if its goroutine still waits for a batch: it may be in the middle of a Submit. The batch
// and its connections are left to that goroutine.
func (l *loop) relieve() {
	r := l.awaited.Load()
	if r == nil || !l.awaited.CompareAndSwap(r, nil) {
		return
	}
	active := l.active
	l.active, l.round = nil, l.server.newRound()
	var theirs []*Conn
	for _, c := range active {
		switch p := c.place; {
		case p.away:
		case p.calls == 0:
			l.goOn(c)
		default:
			p.away = true
			p.lent.Store(true)
			theirs = append(theirs, c)
		}
	}
	r.left <- theirs
	l.run()
}

// answerLeft answers a batch that took long, where the loop was relieved of it.
func (r *round) answerLeft() {
	theirs := <-r.left
	r.answer()
	for _, c := range theirs {
		go c.goOnAway()
	}
}

// lendTo gives a connection to a goroutine, until that gives it back.
func (l *loop) lendTo(c *Conn) {
	c.place.away = true
	c.place.lent.Store(true)
	go c.goOnAway()
}

// goOnAway carries out what the loop cannot: what blocks.
func (c *Conn) goOnAway() {
	p := c.place
	if p.why == pauseTurn && (!c.ending || c.turn.bad != nil) {
		c.perform()
	}
	p.why = pauseEmpty
	if c.ending {
		c.flush() // what comes after QUIT is not carried out
	} else if !c.work() {
		p.over = true
	}
	p.lent.Store(false)
	p.loop.post(p)
}

// goOn ends a connection's part of a batch.
func (l *loop) goOn(c *Conn) {
	p := c.place
	switch {
	case p.why == pauseTurn && !c.ending && c.turn.blocks():
		l.lendTo(c)
		return
	case p.why == pauseTurn && (!c.ending || c.turn.bad != nil):
		c.perform()
		p.why = pauseFull
	}
	if p.why == pauseEmpty || c.ending {
		c.in.Release()
		c.clock()
		l.keep(c.in.Idle())
	}
	if !l.flush(c) {
		l.lendTo(c)
		return
	}
	switch {
	case c.ending || c.isEnded() || p.over && p.why == pauseEmpty:
		l.remove(c)
	case p.why != pauseEmpty || p.readable:
		l.list(p)
	case l.server.deserted():
		p.back = true
		l.remove(c)
	}
}

// flush writes the answers, as much as the client takes. It reports false if a goroutine has to
// see to the rest.
func (l *loop) flush(c *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing || c.ended {
		return c.ended
	}
	b := append(c.out.Bytes(), c.pushed...)
	c.pushed = c.pushed[:0]
	if len(b) == 0 {
		c.held = false
		return true
	}
	l.buf = b
	err := c.place.raw.Write(l.writes)
	if err == nil && l.errno == nil && l.count == len(b) {
		c.out.Reset(kept(b))
		c.held = false
		return true
	}
	// Pushes stay held: one that leaves now would be in the middle of an answer.
	if err == nil && l.errno == nil {
		b = b[:copy(b, b[l.count:])]
	}
	c.out.Reset(b)
	return false
}

func (l *loop) remove(c *Conn) {
	p := c.place
	p.gone = true
	l.mu.Lock()
	if l.places[p.fd] == p { // not that of a newer connection
		delete(l.places, p.fd)
	}
	l.mu.Unlock()
	_ = p.raw.Control(func(fd uintptr) { _ = unix.EpollCtl(l.fd, unix.EPOLL_CTL_DEL, int(fd), nil) })
	c.mu.Lock()
	c.place = nil
	c.mu.Unlock()
	close(p.left)
}
