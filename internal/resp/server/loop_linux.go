package server

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A loop carries out what comes on all plain TCP connections, so that they share batches: it
// waits until some are readable, reads and begins what has come on all of them, submits that
// together, and writes the answers.
//
// It waits by itself, in a thread that it keeps, and Go's poller does not know its connections: that would wake another
// thread for each request that comes while a batch is carried out. Whatever may block (a command that runs, a client
// that does not read) is left to the connection's own goroutine, which uses it as any other would, and gives it back
// to the loop later.
type loop struct {
	server *Server
	epoll  int
	wakeUp int // an eventfd in epoll

	mu     sync.Mutex
	places map[int32]*place // guarded by mu: by descriptor
	posted []*place         // guarded by mu: those that it shall look at; nil: it shall end
	late   []*Conn          // guarded by mu: whose batch took long, and has its answers now
	ended  bool             // guarded by mu: the descriptors are closed

	// awaited is the batch that the loop's goroutine waits for. Who takes it away is the loop from then on.
	awaited atomic.Pointer[round]

	// The rest belongs to the loop's goroutine.
	active []*Conn // what it looks at in this turn
	events [256]unix.EpollEvent
	next   []*Conn // what it looks at in the next turn
	back   []*Conn // of late: it has them again
	round  *round
	relief *time.Timer
	spare  [][]byte // buffers for connections that have something to read: idle ones have none
}

func newLoop(s *Server) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	l := &loop{server: s, epoll: epoll, places: map[int32]*place{}, round: s.newRound()}
	l.wakeUp, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epoll)
		return nil, os.NewSyscallError("eventfd", err)
	}
	if err := l.watch(l.wakeUp); err != nil {
		l.close()
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	l.relief = time.AfterFunc(time.Hour, l.relieve)
	l.relief.Stop()
	go l.run()
	return l, nil
}

// watch has the loop learn when something comes.
func (l *loop) watch(fd int) error {
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd),
	})
}

func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	_, _ = unix.Close(l.epoll), unix.Close(l.wakeUp)
}

// admit takes a connection into the loop.
func (l *loop) admit(p *place) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.watch(p.fd); err != nil {
		return err
	}
	l.places[int32(p.fd)] = p
	return nil
}

// maxCalls is about how many commands share a batch, of all connections. A few that send many at
// a time leave room for the others, and the memory that a batch takes is kept for the next.
const maxCalls = 8192

// post has the loop look at a connection.
func (l *loop) post(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.wake()
	l.posted = append(l.posted, p)
}

// wake has the loop look, unless somebody has before. The caller has the lock.
func (l *loop) wake() {
	if len(l.posted)+len(l.late) == 0 {
		_, _ = unix.Write(l.wakeUp, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// giveBack gives the loop the connections of a batch that it was relieved of.
func (l *loop) giveBack(conns []*Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
	l.late = append(l.late, conns...)
}

func (l *loop) run() {
	for {
		if l.wait() {
			l.close()
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

// wait waits until there is something to do, and lists what. It reports whether the loop is over.
func (l *loop) wait() (over bool) {
	over = l.look()
	for _, c := range l.back {
		c.place.away, c.place.readable = false, true // what came meanwhile was not noted
		l.goOn(c)
	}
	clear(l.back)
	l.back = l.back[:0]
	return over
}

func (l *loop) look() (over bool) {
	forEver := -1
	if len(l.next) > 0 {
		forEver = 0
	}
	n, err := unix.EpollWait(l.epoll, l.events[:], forEver)
	if err != nil {
		n = 0 // a signal
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events[:n] {
		if p := l.places[e.Fd]; p != nil {
			p.last = p.last || e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
			l.readable(p)
		}
	}
	for _, p := range l.posted {
		if p == nil {
			return true
		}
		l.readable(p)
	}
	clear(l.posted)
	l.posted = l.posted[:0]
	l.back, l.late = l.late, l.back
	return false
}

// readable lists a connection on which something may have come.
func (l *loop) readable(p *place) {
	if !p.away {
		p.readable = true
		l.list(p)
	}
}

func (l *loop) list(p *place) {
	if !p.listed {
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
	if p.calls, p.why = 0, pauseEmpty; c.ending && c.turn.bad != nil {
		p.why = pauseTurn
	}
	if c.ending || c.isEnded() {
		return
	}
	before := l.round.count
	for done := 0; ; done++ {
		p.why = c.gather(l.round, min(most, l.server.config.Pipeline))
		p.calls = l.round.count - before
		if p.why != pauseTurn || p.calls > 0 || c.turn.blocks() {
			return
		}
		c.perform()
		if c.ending {
			return
		}
		// What else has come on it waits for its next turn, so that no other connection waits for all of it.
		if done >= most || c.out.Len() > min(c.full(), most*turnOutput) {
			p.why = pauseFull
			return
		}
	}
}

// turnOutput is about how many bytes of answers of the server itself make as much work as a command.
const turnOutput = 32

func (l *loop) keep(buffer []byte) {
	if buffer != nil && len(l.spare) < len(l.events) {
		l.spare = append(l.spare, buffer)
	}
}

func (l *loop) read(c *Conn) {
	p := c.place
	if n := len(l.spare); n > 0 && c.mayHave(l.spare[n-1]) {
		if c.in.Use(l.spare[n-1]) {
			l.spare = l.spare[:n-1]
		}
	}
	space := c.space()
	if space == nil {
		c.noRoom()
		return
	}
	n, err := unix.Read(p.fd, space)
	switch {
	case errors.Is(err, unix.EAGAIN):
		p.readable = false
		p.over = c.expired.Load()
	case errors.Is(err, unix.EINTR):
	case err != nil || n == 0:
		p.over = true
	default:
		p.readable = p.last || n == len(space)
		c.in.Filled(n)
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
			theirs := <-r.left
			r.answer()
			l.giveBack(theirs)
			return false
		}
		l.relief.Stop()
		r.answer()
	}
	for _, c := range l.active {
		l.goOn(c)
	}
	return true
}

// patience is how long a loop waits for a batch before it goes on with other connections.
const patience = 20 * time.Millisecond

// relieve goes on as the loop, if its goroutine still waits for a batch: it may be in the middle of a Submit. The batch
// and its connections are left to that goroutine, which gives them back.
func (l *loop) relieve() {
	r := l.awaited.Load()
	if r == nil || !l.awaited.CompareAndSwap(r, nil) {
		return
	}
	active := l.active
	l.active, l.round = nil, l.server.newRound()
	var theirs []*Conn
	for _, c := range active {
		if c.place.calls == 0 {
			l.goOn(c)
			continue
		}
		c.place.away = true
		theirs = append(theirs, c)
	}
	r.left <- theirs
	l.run()
}

// letGo leaves a connection to its own goroutine.
func (l *loop) letGo(p *place) {
	p.away = true
	l.mu.Lock()
	delete(l.places, int32(p.fd))
	l.mu.Unlock()
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, p.fd, nil)
	close(p.left)
}

// goOn ends a connection's part of a batch.
func (l *loop) goOn(c *Conn) {
	p := c.place
	switch {
	case p.why == pauseTurn && !c.ending && c.turn.blocks():
		l.letGo(p)
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
	flushed := l.flush(c)
	if flushed {
		c.giveBack()
	}
	switch {
	case !flushed, c.ending, c.isEnded():
		l.letGo(p)
	case p.why != pauseEmpty || p.readable && !p.over:
		l.list(p)
	case p.over, l.server.deserted():
		l.letGo(p)
	}
}

// flush writes the answers, as much as the client takes. It reports false if a goroutine has to
// see to the rest.
func (l *loop) flush(c *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return true
	}
	b := c.unsent()
	if len(b) == 0 {
		c.held = false
		return true
	}
	n, err := c.place.send(b)
	if err == nil && n == len(b) {
		c.out.Reset(c.kept(b))
		c.held = false
		return true
	}
	// Pushes stay held: one that leaves now would be in the middle of an answer.
	c.out.Reset(b[:copy(b, b[n:])])
	return false
}
