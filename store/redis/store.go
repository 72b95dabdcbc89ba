package redis

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
	"github.com/redis/rueidis"
)

// DefaultMaxTTL is the largest TTL unless Config.MaxTTL says otherwise. It is also how long nothing is
// granted after a restart or failover of Redis, so it is twice the usual TTL and no more.
const DefaultMaxTTL = time.Minute

// Config says where Redis is and what to promise.
type Config struct {
	// Client is used if it is set, and stays open. Options say how to connect otherwise.
	Client  rueidis.Client
	Options rueidis.ClientOption

	Namespace string // empty: leasehold.DefaultNamespace
	Prefix    string // of all keys; empty: DefaultPrefix

	// MaxTTL is the largest TTL of a lease; 0: DefaultMaxTTL. If Redis may have lost leases, it grants
	// none for this long, so it must be the same in all programs that use the namespace. A TTL that was
	// granted once and is larger counts, too.
	MaxTTL time.Duration

	// Init says that nobody holds a lease in this namespace if Redis does not know the namespace, so
	// that nobody has to wait for MaxTTL at first use. Left on, it also skips the wait after Redis has
	// lost all its data.
	Init bool

	// Strict confirms nothing that a crash or failover could lose: Redis must sync each write to its
	// append-only file, and all replicas must have it. Open fails if that cannot be verified. Replicas
	// is how many replicas can be promoted.
	Strict   bool
	Replicas int

	Log   *slog.Logger // nil: no log
	Clock store.Clock  // nil: store.SystemClock
}

// A Store keeps leases in Redis.
type Store struct {
	client rueidis.Client
	own    bool  // Close closes the client
	line   *line // nil: all calls share the client's connection

	namespace string
	names     names
	maxTTL    time.Duration

	strict      bool
	replicas    int
	waitTimeout time.Duration // for replicas

	log   *slog.Logger
	clock store.Clock

	bound  atomic.Pointer[binding]
	steps  store.Steps
	wakes  *wakes
	closed atomic.Bool
}

// Open connects to Redis and checks that it can keep leases.
func Open(ctx context.Context, c Config) (*Store, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	s := &Store{
		client: c.Client, namespace: c.Namespace, names: newNames(c.Prefix, c.Namespace), maxTTL: c.MaxTTL,
		strict: c.Strict, replicas: c.Replicas, waitTimeout: time.Second, log: c.Log, clock: c.Clock,
	}
	if s.client == nil {
		client, err := connect(ctx, c.Options)
		if err != nil {
			return nil, failure(err)
		}
		s.client, s.own = client, true
		if !c.Strict { // there, WAIT follows on the same connection
			s.line = newLine(c.Options)
		}
	}
	s.wakes = &wakes{client: s.client, channel: s.names.channel(), waiters: map[string]chan struct{}{}}
	if err := s.begin(ctx, c.Init); err != nil {
		_ = s.Close() // it has nothing to lose
		return nil, err
	}
	return s, nil
}

func (c *Config) complete() error {
	if c.Namespace == "" {
		c.Namespace = leasehold.DefaultNamespace
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.MaxTTL == 0 {
		c.MaxTTL = DefaultMaxTTL
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = store.SystemClock()
	}
	switch {
	case c.MaxTTL < minTTL || c.MaxTTL > leasehold.MaxTTL:
		return invalid("max-ttl is %v: %v to %v are allowed", c.MaxTTL, minTTL, leasehold.MaxTTL)
	case c.Replicas < 0:
		return invalid("replicas is %d: it is the number of replicas that can be promoted", c.Replicas)
	case c.Replicas > 0 && !c.Strict:
		return invalid("replicas is for strict mode: set strict=true, too")
	}
	if err := checkName("namespace", c.Namespace); err != nil {
		return err
	}
	return checkPrefix(c.Prefix)
}

// connect opens a client for leases. The driver must not repeat what may have happened: that is decided
// where the id of the lease is known.
func connect(ctx context.Context, o rueidis.ClientOption) (rueidis.Client, error) {
	o.DisableRetry, o.DisableCache = true, true
	if o.ReadBufferEachConn == 0 {
		o.ReadBufferEachConn, o.WriteBufferEachConn = 32<<10, 32<<10 // answers are small
	}
	if o.PipelineMultiplex == 0 {
		o.PipelineMultiplex = -1 // one connection: calls that come at once share their packets
	}
	if o.ConnWriteTimeout == 0 {
		o.ConnWriteTimeout = silence
	}
	if o.ClientName == "" {
		o.ClientName = "leasehold"
	}
	if end, ok := ctx.Deadline(); ok && o.Dialer.Timeout == 0 {
		o.Dialer.Timeout = max(time.Millisecond, min(time.Until(end), rueidis.DefaultDialTimeout))
	}
	return rueidis.NewClient(o)
}

// silence is how long a connection may give no answer before the driver makes another. It is well below common
// TTLs: what is between us and Redis may lose a connection without a word.
const silence = 3 * time.Second

// begin checks the server, and then the permissions by using each.
//
// The calls have a deadline: for one without, the driver starts goroutines for the connection that make every
// later call slower.
func (s *Store) begin(ctx context.Context, initialize bool) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := s.checkServers(ctx); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	if initialize {
		return s.Init(ctx)
	}
	return nil
}

// Init says what Config.Init says, on a store that is open.
func (s *Store) Init(ctx context.Context) error {
	_, err := s.call(ctx, initScript, []string{s.names.record()}, decimal(s.maxTTL.Microseconds()))
	return err
}

// openTimeout is how long the checks of Open may take.
const openTimeout = 30 * time.Second

// minTTL is below what a network allows, so that tests can be fast.
const minTTL = time.Millisecond

// Features says what Redis promises.
func (s *Store) Features() store.Features {
	f := store.Features{
		Store: "redis", MinTTL: minTTL, MaxTTL: s.maxTTL, TTLStep: time.Microsecond,
		Raise: "max-ttl in the URL of Redis allows more; set it in all programs that use the namespace",
		Clock: "the wall clock of the primary",
		Durability: "what the append-only file or the last save has, and what a promoted replica has received; " +
			"after a loss nothing is granted for max-ttl",
		Tokens: store.Tokens{
			Scope: store.PerNamespace,
			Flush: "if the clock of Redis has not gone back, or the caller has seen the last token",
			Failover: "if the clock of the promoted replica is not behind by more than max-ttl, " +
				"or the caller has seen the last token",
			Restore: "if the clock of Redis has not gone back, or the caller has seen the last token",
		},
		Powers: []store.Power{store.FairQueue, store.BreakPeriod, store.ValueInLease, store.Detached},
	}
	if s.strict {
		f.Durability = "what was confirmed is in the append-only file of the primary and in the memory of all replicas"
		f.Tokens.Failover = ""
	}
	return f
}

// Close ends the subscription, and the connections unless the caller opened them.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.wakes.close()
	s.line.close()
	if s.own {
		s.client.Close()
	}
	return nil
}
