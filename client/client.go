package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Config is what a client can be told. The zero value is the server, namespace and
// holder that the environment names, or the server on this machine.
type Config struct {
	// Servers are the URLs of one server or several. While one does not answer, the
	// next is asked. Empty: LEASEHOLD_SERVER, with commas between several; then
	// http://127.0.0.1:4653.
	Servers []string

	Namespace string // empty: LEASEHOLD_NAMESPACE, then "default"
	Holder    string // who holds, as others will see it; empty: LEASEHOLD_HOLDER, then user@host:pid

	// TTL is that of holds which are not given one. 0: 30 s. It is how long others wait
	// for a holder that died.
	TTL time.Duration

	// OnStall is called, in a goroutine of its own, when the process was paused for a
	// third of the TTL of something that it holds: it came close to losing it.
	OnStall func(Stall)

	Log   *slog.Logger // what went wrong and was tried again; nil: nothing is written
	TLS   *tls.Config  // for servers with https; nil: what LEASEHOLD_CA, LEASEHOLD_CERT and LEASEHOLD_KEY name, if anything
	Clock Clock        // nil: the machine's; for tests

	// HTTP is nil for a client of its own. It must have no Timeout: some requests wait. It
	// sees to TLS itself. If its Transport is an *http.Transport, connections are made as
	// that one makes them, but are not shared with it.
	HTTP *http.Client
}

// A Stall is a pause in which nothing of this process ran.
type Stall struct {
	Paused time.Duration
	TTL    time.Duration // of the session that it was a danger to
	Lost   bool          // something expired in it, or since the last one
}

// A Client holds leases. Its methods may be called from any goroutine, and one client
// is enough for a program.
type Client struct {
	config  Config
	servers *v1.Servers
	clock   Clock
	log     *slog.Logger
	keeper  *keeper
	name    string // what the ids of its sessions begin with

	expired atomic.Int64    // sessions that did, since the last stall
	hearing atomic.Bool     // the watch has begun, and misses nothing
	begun   chan struct{}   // closed when the watch has begun for the first time, or should have
	once    sync.Once       // closes it
	context context.Context // ends with Close
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex // guards what follows
	sessions map[string]*Session
	shared   map[terms][]*Session
	ttls     map[time.Duration]int // how many sessions have it
	opened   int
	watching bool
	closed   bool
}

// terms is what holds must have in common to share a session.
type terms struct {
	ttl      time.Duration
	fraction float64
}

// patience is how long a call goes on that does not wait for anything but an answer.
const patience = 15 * time.Second

// backoff is the pause between two attempts at what failed.
var backoff v1.Backoff

// Dial returns a client, once a server has answered. Call Close at the end.
func Dial(ctx context.Context, config Config) (*Client, error) {
	config = config.complete()
	http, err := config.secure()
	if err != nil {
		return nil, err
	}
	config.HTTP = http
	servers, err := v1.NewServers(v1.CallerConfig{
		Servers: config.Servers, Namespace: config.Namespace, Client: config.HTTP, Timeout: patience, PingWithin: config.TTL,
	})
	if err != nil {
		return nil, err
	}
	err = servers.Each(ctx, v1.Attempts{Limit: patience, Idempotent: true}, func(ctx context.Context, server *v1.Caller) error {
		_, err := server.Version(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newClient(config, servers), nil
}

func newClient(config Config, servers *v1.Servers) *Client {
	c := &Client{
		config: config, servers: servers, clock: config.Clock, log: config.Log, name: newID()[:16] + ".",
		sessions: map[string]*Session{}, shared: map[terms][]*Session{}, ttls: map[time.Duration]int{}, begun: make(chan struct{}),
	}
	c.context, c.stop = context.WithCancel(context.Background())
	c.keeper = newKeeper(c)
	c.spawn(func() { c.keeper.run(c.context) })
	return c
}

// complete fills in what was left open.
func (c Config) complete() Config {
	if len(c.Servers) == 0 {
		for s := range strings.SplitSeq(cmp.Or(os.Getenv("LEASEHOLD_SERVER"), v1.DefaultServer), ",") {
			c.Servers = append(c.Servers, strings.TrimSpace(s))
		}
	}
	c.Namespace = cmp.Or(c.Namespace, os.Getenv("LEASEHOLD_NAMESPACE"))
	c.Holder = cmp.Or(c.Holder, os.Getenv("LEASEHOLD_HOLDER"), thisProcess())
	c.TTL = cmp.Or(c.TTL, leasehold.DefaultTTL)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = systemClock()
	}
	return c
}

// thisProcess is user@host:pid.
func thisProcess() string {
	name, host := cmp.Or(os.Getenv("USER"), "unknown"), "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host, _, _ = strings.Cut(h, ".")
	}
	return fmt.Sprintf("%s@%s:%d", name, host, os.Getpid())
}

// newID makes an id: 26 characters with 130 bits of chance in them.
func newID() string { return strings.ToLower(rand.Text()) }

// Close ends everything that the client holds, but for what RenewNever was said of,
// and then the client. The contexts of its holds end with ErrSessionClosed. Call it
// when the work has ended. The error says what could not be told to a server; that
// ends with its TTL.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	open := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), patience/3)
	defer cancel()
	failures := make([]error, len(open))
	var wg sync.WaitGroup
	for i, s := range open {
		if s.renewal.way == neverRenew {
			s.end(leasehold.SessionClosed, "")
			continue
		}
		wg.Go(func() { failures[i] = s.close(ctx) })
	}
	wg.Wait()
	c.stop()
	c.work.Wait()
	c.servers.CloseIdle()
	return errors.Join(failures...)
}

var errClosed = &leasehold.Error{Code: leasehold.Refused, Message: "the client was closed: dial another one"}

// spawn runs something that Close waits for. It is called by what Close waits for
// itself, or with the lock while the client is open.
func (c *Client) spawn(f func()) { c.work.Go(f) }

// background does something for a caller who does not wait for it.
func (c *Client) background(f func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.spawn(func() { f(c.context) })
	}
}

// OpenSession opens a session of the program's own. Bind leases to it with In, and
// records with Session.Put; end it with Session.Close. It is renewed by the client.
func (c *Client) OpenSession(ctx context.Context, given ...Option) (*Session, error) {
	o := c.options(nil, 0, given)
	if o.renewal.private() {
		o.renewal = RenewAt(o.renewal.fraction)
	}
	for {
		s, err := c.newSession(o, true)
		if err == nil {
			err = c.openSession(ctx, s, o.labels)
		}
		switch {
		case err == nil:
			return s, nil
		case !errors.Is(err, ErrLost) || ctx.Err() != nil:
			return nil, err
		}
	}
}

// join returns a session that a hold with these options can be bound to, and has
// entered it.
func (c *Client) join(ctx context.Context, o options) (*Session, error) {
	if o.session != nil {
		if !o.session.enter() {
			return nil, o.session.lostError(leasehold.SessionClosed)
		}
		return o.session, nil
	}
	for {
		s, ours, err := c.pick(o)
		if err != nil {
			return nil, err
		}
		if ours {
			err := c.openSession(ctx, s, nil)
			switch {
			case err == nil:
				return s, nil
			case !errors.Is(err, ErrLost) || ctx.Err() != nil:
				return nil, err
			}
			continue // it took so long that it was over when we heard of it
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			s.leave()
			return nil, context.Cause(ctx)
		}
		if s.failed == nil {
			return s, nil
		}
		s.leave()
	}
}

// pick finds a session that is open, or being opened, or makes one that the caller
// has to open. It has entered it.
func (c *Client) pick(o options) (s *Session, ours bool, err error) {
	key := terms{o.ttl, o.renewal.fraction}
	if !o.renewal.private() {
		c.mu.Lock()
		candidates := c.shared[key]
		c.mu.Unlock()
		for _, s := range candidates {
			if s.enter() {
				return s, false, nil
			}
		}
	}
	s, err = c.newSession(o, false)
	return s, true, err
}

// newSession makes a session that one caller has entered. It is not open yet.
func (c *Client) newSession(o options, own bool) (*Session, error) {
	c.servers.PingWithin(ttlOf(o.ttl))
	s := &Session{
		client: c, ttl: o.ttl, renewal: o.renewal, own: own, alone: !own && o.renewal.private(),
		holds: map[string]*Hold{}, ready: make(chan struct{}), idle: c.clock.Now(),
	}
	if !own {
		s.users = 1
	}
	s.alarm.ring = s.ring
	s.done, s.finish = context.WithCancelCause(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	c.opened++
	s.id = fmt.Sprint(c.name, c.opened)
	c.sessions[s.id] = s
	c.ttls[s.ttl]++
	if !own && !s.alone {
		// The list is read without the lock: it is never changed, but replaced.
		key := terms{o.ttl, o.renewal.fraction}
		c.shared[key] = append(c.shared[key][:len(c.shared[key]):len(c.shared[key])], s)
	}
	if !c.watching {
		c.watching = true
		c.spawn(func() { c.watch(c.context) })
	}
	return s, nil
}

// openSession opens a session for all who wait for it.
func (c *Client) openSession(ctx context.Context, s *Session, labels map[string]string) error {
	err := s.open(ctx, labels)
	if err == nil {
		c.awaitHearing(ctx, s)
	}
	if err != nil {
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
		s.end(leasehold.SessionClosed, "")
		// The server may have opened it although no answer came: nobody will renew it.
	}
	close(s.ready)
	return err
}

// awaitHearing lets the watch begin before anything is held, so that no message is missed,
// but does not insist on it.
func (c *Client) awaitHearing(ctx context.Context, s *Session) {
	within := time.NewTimer(min(s.attempt(), time.Second))
	defer within.Stop()
	select {
	case <-c.begun:
	case <-ctx.Done():
	case <-within.C:
		c.once.Do(func() { close(c.begun) }) // nobody else need wait for it
	}
}

// forget drops a session that ended.
func (c *Client) forget(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s.id)
	if c.ttls[s.ttl]--; c.ttls[s.ttl] == 0 {
		delete(c.ttls, s.ttl)
	}
	key := terms{s.ttl, s.renewal.fraction}
	var rest []*Session
	for _, other := range c.shared[key] {
		if other != s {
			rest = append(rest, other)
		}
	}
	if c.shared[key] = rest; rest == nil {
		delete(c.shared, key)
	}
}

// shortest is the smallest TTL of the sessions.
func (c *Client) shortest() (ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d := range c.ttls {
		if ttl == 0 || d < ttl {
			ttl = d
		}
	}
	return ttl
}

// stalled tells of a pause that was a danger to what had a TTL.
func (c *Client) stalled(paused, ttl time.Duration) {
	stall := Stall{Paused: paused, TTL: ttl, Lost: c.lookForLosses()}
	c.log.Warn("nothing of this process ran for a while", "paused", paused, "ttl", ttl, "lost", stall.Lost)
	if c.config.OnStall != nil {
		c.spawn(func() { c.config.OnStall(stall) })
	}
}

// lookForLosses ends what the clock has ended, and tells whether anything expired since
// it was called last.
func (c *Client) lookForLosses() bool {
	c.mu.Lock()
	open := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range open {
		if s.deadline.Load() != 0 { // else it is still being opened
			s.alive()
		}
	}
	return c.expired.Swap(0) > 0
}
