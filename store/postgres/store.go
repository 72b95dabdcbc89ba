package postgres

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Defaults of the configuration.
const (
	DefaultSchema = "leasehold"
	DefaultMaxTTL = 5 * time.Minute
)

// A Config says where leases are kept.
type Config struct {
	URL  string          // of the database, as libpq has it; or
	Pool *pgxpool.Config // how to connect, for what a URL cannot say, such as credentials that change

	Namespace string // empty: leasehold.DefaultNamespace
	Schema    string // where the tables are; empty: DefaultSchema

	// MaxTTL is the largest TTL. It is also how long nothing is granted after a failover or a restore, since
	// grants of the old server may be missing on the new one. 0: DefaultMaxTTL.
	MaxTTL time.Duration

	// Lossless says that no failover loses a commit, because each standby that may be promoted is
	// synchronous. Grants then go on at once after it.
	Lossless bool

	// Listen is a URL for LISTEN, if URL leads to a pooler such as pgbouncer, through which no notification
	// arrives; or Off. Without notifications, waiters learn of a release when they ask again: within a second.
	Listen string

	Migrate bool // set the database up, if that is missing; see Migrate

	Log   *slog.Logger // nil: no log
	Clock store.Clock  // nil: store.SystemClock
}

// A Store keeps leases in a PostgreSQL database.
type Store struct {
	namespace []byte
	schema    string // quoted
	maxTTL    time.Duration
	lossless  bool
	pool      *pgxpool.Pool
	slots     chan struct{} // for calls other than renewals
	listener  *listener
	log       *slog.Logger
	clock     store.Clock
	steps     store.Steps

	stop context.CancelFunc // of the cleaner
	done sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open connects to a database, and checks that it is set up for leases and that the role may use them.
func Open(ctx context.Context, c Config) (*Store, error) {
	s, config, err := prepare(c)
	if err != nil {
		return nil, err
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.connectError(err)
	}
	if c.Migrate {
		err = s.migrate(ctx)
	}
	if err == nil {
		err = s.check(ctx)
	}
	if err != nil {
		s.pool.Close()
		return nil, err
	}
	var background context.Context
	background, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.done.Go(func() { s.clean(background) })
	return s, nil
}

// Migrate sets a database up for leases: it creates the schema, or brings it up to date. It may be called at
// any time, and by several programs at once. The role needs the right to create the schema, or to create in
// it if there is one.
func Migrate(ctx context.Context, c Config) error {
	s, config, err := prepare(c)
	if err != nil {
		return err
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return s.connectError(err)
	}
	defer s.pool.Close()
	return s.migrate(ctx)
}

// prepare returns a store that is not connected.
func prepare(c Config) (*Store, *pgxpool.Config, error) {
	config, err := c.pool()
	if err != nil {
		return nil, nil, err
	}
	if c.Schema == "" {
		c.Schema = DefaultSchema
	}
	if c.Namespace == "" {
		c.Namespace = leasehold.DefaultNamespace
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
	if err := first(checkSchema(c.Schema), checkName("namespace", c.Namespace), checkMaxTTL(c.MaxTTL)); err != nil {
		return nil, nil, err
	}
	s := &Store{namespace: []byte(c.Namespace), schema: pgx.Identifier{c.Schema}.Sanitize(), maxTTL: c.MaxTTL,
		lossless: c.Lossless, log: c.Log, clock: c.Clock, slots: make(chan struct{}, max(1, config.MaxConns-1))}
	s.listener, err = newListener(c, config)
	return s, config, err
}

// pool returns how to connect. Statements are never prepared: through a pooler that gives each transaction
// another connection, they would be missing there.
func (c Config) pool() (*pgxpool.Config, error) {
	config := c.Pool
	if config == nil {
		var err error
		if config, err = pgxpool.ParseConfig(c.URL); err != nil {
			// Without the cause, which may quote a password.
			return nil, invalid("the URL of the database is malformed: use postgres://USER:PASSWORD@HOST:PORT/DATABASE")
		}
	}
	config = config.Copy()
	conn := config.ConnConfig
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn.StatementCacheCapacity, conn.DescriptionCacheCapacity = 0, 0
	conn.OnNotice = onNotice(conn.OnNotice)
	config.BeforeClose = drop(config.BeforeClose)
	return config, nil
}

// drop closes a connection at once that a call has given up. The driver would listen to it for another 15
// seconds, and give its place in the pool to no other: if all connections were lost without a word, as in the
// failover of an address, leases would be lost as well.
func drop(next func(*pgx.Conn)) func(*pgx.Conn) {
	return func(c *pgx.Conn) {
		if next != nil {
			next(c)
		}
		if c.IsClosed() {
			_ = c.PgConn().Conn().Close()
		}
	}
}

func checkSchema(name string) error {
	// PostgreSQL would cut a longer name, and a channel has the same limit.
	if len(name) > 63 {
		return invalid("the schema has %d bytes: at most 63 are allowed", len(name))
	}
	return checkName("schema", name)
}

func checkMaxTTL(d time.Duration) error {
	if d < leasehold.MinTTL || d > leasehold.MaxTTL {
		return invalid("the largest TTL is %v: %v to %v are allowed", d, leasehold.MinTTL, leasehold.MaxTTL)
	}
	return nil
}

// Features says what the store promises.
func (s *Store) Features() store.Features {
	clock := "unless the clock of the server is behind by more than the resource was idle"
	return store.Features{
		Store:      "postgres",
		MinTTL:     leasehold.MinTTL,
		MaxTTL:     s.maxTTL,
		TTLStep:    time.Microsecond,
		Raise:      "max-ttl in its URL allows more, and is also how long nothing is granted after a failover",
		Clock:      "the wall clock of the database server",
		Durability: "as synchronous_commit = on: the server's disk, and that of its synchronous standby if it has one",
		Tokens: store.Tokens{
			Scope:    store.PerResource,
			Flush:    clock,
			Failover: clock,
			Restore:  clock,
		},
		Powers: []store.Power{store.FairQueue, store.BreakPeriod, store.ValueInLease, store.Detached},
	}
}

// Close ends the connections.
func (s *Store) Close() error {
	s.stop()
	s.done.Wait()
	s.listener.close()
	s.pool.Close()
	return nil
}

// How often the cleaner runs, and how much it removes in one transaction.
const (
	cleanInterval = time.Minute
	cleanLimit    = 500
)

// clean removes what is no longer needed, until ctx ends. A program that ends within a minute rarely does
// it, so one in sixteen does it at once.
func (s *Store) clean(ctx context.Context) {
	pause := rand.N(cleanInterval)
	if rand.N(16) == 0 {
		pause = 0
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := s.cleanOnce(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("ended leases could not be removed", "error", err)
		}
		pause = cleanInterval/2 + rand.N(cleanInterval)
	}
}

func (s *Store) cleanOnce(ctx context.Context) error {
	for {
		var removed int64
		err := s.call(ctx, func(rows pgx.Rows) error { return rows.Scan(&removed) },
			"select "+s.schema+".clean($1::integer)", cleanLimit)
		if err != nil || removed < cleanLimit {
			return err
		}
	}
}
