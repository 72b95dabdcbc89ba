package redis

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// A line is a connection for one call at a time. All of the call happens in the goroutine of its caller: if there
// is one caller, that takes half the time of a call that is handed to the goroutines of the shared connection.
// While the line is taken, calls use the shared one, where those that come at once share their packets.
//
// It is for single servers. With Sentinel or a Cluster, the driver leaves the shared connection when another server
// takes over, and would not leave this one.
type line struct {
	options rueidis.ClientOption
	life    context.Context // of the store
	end     context.CancelFunc
	checks  sync.WaitGroup

	taken atomic.Bool

	// These belong to the one who has taken it.
	client   rueidis.Client // nil: there was no connection yet
	answered time.Time      // when it was known to work; zero: it has failed

	mu     sync.Mutex // guards what follows
	closed bool
	call   uint64          // the number of the call under way
	ctx    context.Context // of that call
	conn   net.Conn
}

// idle is for how long a line that nobody uses is trusted. What is between us and Redis may forget it.
const idle = time.Second

// newLine returns a line that connects when it is first wanted; nil if there can be none.
func newLine(o rueidis.ClientOption) *line {
	if !o.ForceSingleClient || o.Sentinel.MasterSet != "" || o.Standalone.EnableRedirect ||
		o.DialFn != nil { //nolint:staticcheck // a caller may have set it
		return nil
	}
	dial := o.DialCtxFn
	if dial == nil {
		dial = dialTCP
	}
	l := &line{options: o}
	l.life, l.end = context.WithCancel(context.Background())
	l.options.DialCtxFn = func(_ context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		return l.connect(func(ctx context.Context) (net.Conn, error) { return dial(ctx, address, d, t) })
	}
	// A ping of the driver that meets a call would make it start goroutines for the connection.
	l.options.Dialer.KeepAlive = -1
	l.options.RingScaleEachConn = 1
	return l
}

func dialTCP(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
	if t == nil {
		return d.DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{NetDialer: d, Config: t}).DialContext(ctx, "tcp", address)
}

// connect makes a connection for the call under way, and keeps it so that the end of the call can close it.
func (l *line) connect(dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	l.mu.Lock()
	ctx := l.ctx
	l.mu.Unlock()
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	l.conn = conn
	return conn, nil
}

// do makes a call, unless there is no line, it is taken, or it is not known to work. In that case it is tried
// for the calls to come.
func (l *line) do(ctx context.Context, build build) (r result, done bool) {
	if l == nil || !l.taken.CompareAndSwap(false, true) {
		return r, false
	}
	if time.Since(l.answered) > idle {
		l.check()
		return r, false
	}
	defer l.taken.Store(false)
	r.message, r.err = l.send(ctx, build)
	return r, true
}

// check finds out whether the line works, and connects it if it does not. Nobody waits for it.
func (l *line) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return // it stays taken
	}
	l.checks.Go(func() {
		defer l.taken.Store(false)
		ctx, cancel := context.WithTimeout(l.life, silence)
		defer cancel()
		// If it fails, it is not known to work.
		_, _ = l.send(ctx, func(b rueidis.Builder) rueidis.Completed { return b.Ping().Build() })
	})
}

// send makes a call on a line that was taken.
func (l *line) send(ctx context.Context, build build) (message rueidis.RedisMessage, err error) {
	defer l.begin(ctx)()
	if l.client == nil {
		if l.client, err = connect(ctx, l.options); err != nil {
			l.client = nil
			return message, err
		}
	}
	calm := ctx
	if _, ok := ctx.Deadline(); !ok {
		calm = context.WithoutCancel(ctx) // else the driver starts goroutines for the connection
	}
	message, err = l.client.Do(calm, build(l.client.B())).ToMessage()
	if _, ok := rueidis.IsRedisErr(err); err == nil || ok {
		l.answered = time.Now()
		return message, err
	}
	l.answered = time.Time{}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return message, err
}

// begin lets the end of a context interrupt a call. The driver only looks at its deadline, while it waits for an
// answer.
func (l *line) begin(ctx context.Context) (end func()) {
	l.mu.Lock()
	l.call++
	l.ctx = ctx
	call := l.call
	l.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { l.interrupt(call) })
	return func() {
		if !stop() {
			l.mu.Lock()
			l.call++ // it must not interrupt the next one
			l.mu.Unlock()
		}
	}
}

func (l *line) interrupt(call uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.call != call || l.conn == nil {
		return
	}
	conn := l.conn
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // TLS would take its leave, and wait
	}
	_ = conn.Close()
}

func (l *line) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.checks.Wait()
	if l.client != nil {
		l.client.Close()
	}
}
