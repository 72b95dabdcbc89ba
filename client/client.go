package client

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Client holds leases. Its methods may be called from any goroutine, and one client
// is enough for a program.
type Client struct {
	config    Config
	servers   *v1.Servers
	clock     Clock
	log       *slog.Logger
	scheduler *scheduler
	name      string // what the ids of its sessions begin with

	expired       atomic.Int64    // sessions that did, since the last stall
	watchComplete atomic.Bool     // the watch has begun, and misses nothing
	watchBegun    chan struct{}   // closed when the watch has begun for the first time, or should have
	beginOnce     sync.Once       // closes it
	context       context.Context // ends with Close
	stop          context.CancelFunc
	work          sync.WaitGroup

	mu       sync.Mutex // guards what follows
	sessions map[string]*Session
	shared   map[sessionTerms][]*Session
	ttls     map[time.Duration]int // how many sessions have it
	opened   int
	watching bool
	closed   bool
}

// callTimeout is how long a call goes on that does not wait for anything but an answer.
const callTimeout = 15 * time.Second

// backoff is the pause between two attempts at what failed.
var backoff v1.Backoff

// Dial returns a client, once a server has answered. Call Close at the end.
func Dial(ctx context.Context, config Config) (*Client, error) {
	config = config.complete()
	http, err := config.httpClient()
	if err != nil {
		return nil, err
	}
	config.HTTP = http
	servers, err := v1.NewServers(v1.CallerConfig{
		Servers: config.Servers, Namespace: config.Namespace, Client: config.HTTP, Timeout: callTimeout, PingWithin: config.TTL,
	})
	if err != nil {
		return nil, err
	}
	err = servers.Each(ctx, v1.Attempts{Limit: callTimeout, Idempotent: true}, func(ctx context.Context, server *v1.Caller) error {
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
		sessions: map[string]*Session{}, shared: map[sessionTerms][]*Session{}, ttls: map[time.Duration]int{}, watchBegun: make(chan struct{}),
	}
	c.context, c.stop = context.WithCancel(context.Background())
	c.scheduler = newScheduler(c)
	c.spawn(func() { c.scheduler.run(c.context) })
	return c
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

	ctx, cancel := context.WithTimeout(context.Background(), callTimeout/3)
	defer cancel()
	failures := make([]error, len(open))
	var wg sync.WaitGroup
	for i, s := range open {
		if s.renewal.mode == renewNever {
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
