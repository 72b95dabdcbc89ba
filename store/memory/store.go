package memory

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/store"
)

func init() { store.Register("memory", openURL) }

// Config says what to open. The zero Config is a store of its own.
type Config struct {
	Name      string // of the store, which is then shared with everybody who opens that name
	Namespace string // empty: leasehold.DefaultNamespace

	// Clock measures the time by which leases end; nil: Go's own clock, which is virtual in a
	// testing/synctest bubble. A store that exists already keeps the clock that it has.
	Clock store.Clock
}

// A Store is a handle on a store in memory. What it keeps ends with its last handle, unless
// something in it is still alive.
type Store struct {
	namespace string
	world     *world
	ctx       context.Context // ends with the handle
	cancel    context.CancelFunc
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Sessions  = (*Store)(nil)
	_ store.Watcher   = (*Store)(nil)
	_ store.Records   = (*Store)(nil)
	_ store.Changer   = (*Store)(nil)
	_ store.Messenger = (*Store)(nil)
	_ store.Noter     = (*Store)(nil)
	_ store.Historian = (*Store)(nil)
	_ store.Definer   = (*Store)(nil)
	_ store.Mover     = (*Store)(nil)
)

// Open opens a store.
func Open(c Config) (*Store, error) {
	if c.Namespace == "" {
		c.Namespace = leasehold.DefaultNamespace
	}
	if len(c.Namespace) > leasehold.MaxName {
		return nil, invalid("the namespace has %d bytes: at most %d are allowed", len(c.Namespace), leasehold.MaxName)
	}
	return handle(enter(c), c.Namespace), nil
}

func handle(w *world, namespace string) *Store {
	s := &Store{namespace: namespace, world: w}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Again returns another handle on the same store, as another process would have one.
func (s *Store) Again() *Store {
	s.world.join()
	return handle(s.world, s.namespace)
}

func openURL(_ context.Context, u *url.URL, settings store.Settings) (store.Store, error) {
	switch {
	case u.Opaque != "" || u.Path != "" || u.User != nil || u.Port() != "" || u.Fragment != "":
		return nil, invalid("the store in memory is memory: or memory://NAME, not %s", u.Redacted())
	case u.RawQuery != "":
		return nil, invalid("the store in memory has no parameters: leave out ?%s", u.RawQuery)
	}
	// The clock of the settings is that of the machine if nobody gave one, and would not be
	// virtual in a bubble.
	s, err := Open(Config{Name: u.Host, Namespace: settings.Namespace})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Features says what the store promises.
func (s *Store) Features() store.Features {
	const ends = "no: everything ends with the process"
	return store.Features{
		Store: "memory", MinTTL: leasehold.MinTTL, MaxTTL: leasehold.MaxTTL,
		Clock: "this process, by a clock that cannot be set", Durability: "nothing: it ends with the process",
		Tokens: store.Tokens{Scope: store.PerNamespace, Failover: ends, Restore: ends},
		Powers: []store.Power{
			store.SessionPower, store.WatchPower, store.RecordPower, store.ChangePower, store.MessagePower,
			store.NotePower, store.HistoryPower, store.DefinitionPower, store.MovePower, store.TaskPower,
			store.AdvicePower,
			store.FairQueue, store.Slots, store.Several, store.Selection, store.Reservations,
			store.Priority, store.Grace, store.HoldLimit,
			store.Parties,
			store.BreakPeriod, store.Detached,
		},
	}
}

// Close ends the handle, and the calls that wait in it.
func (s *Store) Close() error {
	if s.ctx.Err() != nil {
		return nil
	}
	s.cancel()
	return s.world.leave()
}

// Check returns every way in which the state contradicts itself. It is for tests.
func (s *Store) Check() error { return s.world.engine.Check() }

// begin refuses a call that cannot do anything. The context that it returns ends with the handle too.
func (s *Store) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if s.ctx.Err() != nil {
		return nil, nil, engine.Unavailable("the store in memory is closed")
	}
	if ctx.Err() != nil {
		return nil, nil, engine.Unavailable("the call had ended before it began: " + context.Cause(ctx).Error())
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

// clock is the clock of a store as an engine wants it.
type clock struct{ store.Clock }

// firstReading keeps the clock from zero, which engines take for no time at all.
const firstReading = time.Second

func (c clock) Monotonic() time.Duration { return c.Now() + firstReading }
func (c clock) Wall() time.Time          { return time.Now() }
func (c clock) Boot() string             { return "" }
