package client

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/id"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/server"
)

// A Client holds leases. Its methods may be called from any goroutine, and one client is enough
// for a program.
type Client struct {
	config     Config
	store      store.Store
	sessionful store.Sessions // nil: the store has no sessions, and each lease has a TTL of its own
	clock      Clock
	log        *slog.Logger
	scheduler  *scheduler
	name       string        // the prefix of its sessions' ids
	phase      time.Duration // sets its renewals apart from other clients'; see nextRenewal

	largest       atomic.Uint64   // the largest token that it was granted
	expired       atomic.Int64    // sessions, or leases without one, that expired since the last stall
	watchComplete atomic.Bool     // the watch has begun, and has missed no event
	watchBegun    chan struct{}   // closed once the watch has begun, or has taken too long
	beginOnce     sync.Once       // closes watchBegun
	context       context.Context // ends with Close
	stop          context.CancelFunc
	work          sync.WaitGroup

	mu       sync.Mutex // guards what follows
	sessions map[string]*Session
	shared   map[sessionTerms][]*Session
	ttls     map[time.Duration]int // the number of sessions with this TTL
	opened   int
	watching bool
	closed   bool
}

// callTimeout limits calls that only wait for an answer. Without it, a program that passes
// context.Background would wait for ever for servers that are gone.
const callTimeout = 15 * time.Second

// backoff is the pause between two attempts at what failed.
var backoff v1.Backoff

// Dial returns a client as soon as a server has answered. Call Close at the end. A wrong address or
// a certificate that is not trusted is thus reported here, and not by the first acquire.
//
// If Config.Servers has the URL of another store, such as redis://localhost, the client runs on that.
// Its package has to be imported.
func Dial(ctx context.Context, config Config) (*Client, error) {
	config = config.complete()
	if len(config.Servers) == 1 && store.Names(config.Servers[0]) {
		settings := store.Settings{Namespace: config.Namespace, Log: config.Log, Clock: config.Clock}
		s, err := store.Open(ctx, config.Servers[0], settings)
		if err != nil {
			return nil, err
		}
		c, err := Open(ctx, s, config)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return c, nil
	}
	secure, err := config.tls()
	if err != nil {
		return nil, err
	}
	s, err := server.Open(ctx, v1.CallerConfig{
		Servers: config.addresses(), Namespace: config.Namespace, Timeout: callTimeout, PingWithin: config.TTL,
		Wire: config.Wire, Client: config.HTTP, TLS: secure, Dial: config.Dial,
		Token: config.Token, Insecure: config.Insecure,
	})
	if err != nil {
		return nil, err
	}
	return newClient(config, s), nil
}

// Open returns a client that keeps its leases in a store. Config.Servers, TLS and HTTP do not matter
// then. Close closes the store too. The error is about a Config.TTL that the store does not allow.
func Open(_ context.Context, s store.Store, config Config) (*Client, error) {
	config = config.complete()
	if err := s.Features().CheckTTL(config.TTL); err != nil {
		return nil, err
	}
	return newClient(config, s), nil
}

func newClient(config Config, s store.Store) *Client {
	c := &Client{
		config: config, store: s, clock: config.Clock, log: config.Log, name: newID()[10:] + ".", // 80 bits of chance
		phase: rand.N(time.Hour), watchBegun: make(chan struct{}),
		sessions: map[string]*Session{}, shared: map[sessionTerms][]*Session{}, ttls: map[time.Duration]int{},
	}
	c.sessionful, _ = s.(store.Sessions)
	c.context, c.stop = context.WithCancel(context.Background())
	c.scheduler = newScheduler(c)
	c.spawn(func() { c.scheduler.run(c.context) })
	return c
}

func newID() string { return id.New() }

// Close releases everything that the client holds, except reservations (RenewNever), and ends
// the client. The contexts of its holds end with ErrSessionClosed. Call it when the work has
// ended. An error says what could not be released because no server was reached; that ends with
// its TTL.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	open := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), callTimeout/3)
	defer cancel()
	failures := make([]error, len(open))
	var wg sync.WaitGroup
	for i, s := range open {
		if s.renewal.mode == renewNever && !s.local {
			s.end(leasehold.SessionClosed, "")
			continue
		}
		wg.Go(func() { failures[i] = s.close(ctx) })
	}
	wg.Wait()
	c.stop()
	c.work.Wait()
	return errors.Join(append(failures, c.store.Close())...)
}

var errClosed = &leasehold.Error{Code: leasehold.Refused, Message: "the client is closed: dial another one"}

// spawn runs f in a goroutine that Close waits for. Call it from such a goroutine, or with the
// lock while the client is open: Close must not have begun to wait.
func (c *Client) spawn(f func()) { c.work.Go(f) }

// background runs f in a goroutine, unless the client is closed.
func (c *Client) background(f func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.spawn(func() { f(c.context) })
	}
}
