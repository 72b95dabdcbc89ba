package follow

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Snapshot is the list of resources as of a moment.
type Snapshot struct {
	Asked      time.Time // before the request was sent: what remains is counted from here
	Resources  []v1.Resource
	Quarantine v1.Quarantine // if the Follower asks for it
}

// An Update is one of three: a new snapshot, an event, or the error of a lost connection.
type Update struct {
	Snapshot *Snapshot
	Event    *v1.Event
	Lost     error
}

// A Follower keeps a list of resources up to date. It reads the whole list again when a watch says
// that something happened: one list and one watch, however many resources there are. What comes out
// is always what the server said. A list that is patched with events would drift, since not every
// change is an event.
type Follower struct {
	conn  *cli.Conn
	query v1.ResourceQuery
	now   func() time.Time
	Every time.Duration // also reads so often, for renewals, which are no events; 0: never
	stale chan struct{}
	out   chan Update

	// AsksQuarantine also reads whether nothing is granted yet after a restore.
	AsksQuarantine bool
}

const (
	// leastPause is between two readings of the list, however much happens. It grows
	// with how long a reading takes, so that a large list does not become a load.
	leastPause  = 200 * time.Millisecond
	pauseFactor = 10

	// longestTry is between two tries to reach a server that is gone.
	longestTry = 5 * time.Second
)

// New returns a Follower of the resources that a query lists.
func New(a *cli.App, c *cli.Conn, query v1.ResourceQuery) *Follower {
	return &Follower{conn: c, query: query, now: a.Now, stale: make(chan struct{}, 1),
		out: make(chan Update)}
}

// Start follows until ctx ends; then the channel is closed.
func (f *Follower) Start(ctx context.Context) <-chan Update {
	var both sync.WaitGroup
	both.Go(func() { f.watch(ctx) })
	both.Go(func() { f.list(ctx) })
	go func() {
		both.Wait()
		close(f.out)
	}()
	return f.out
}

// Again makes the list be read once more, soon.
func (f *Follower) Again() {
	select {
	case f.stale <- struct{}{}:
	default: // it will be anyway
	}
}

func (f *Follower) tell(ctx context.Context, n Update) {
	select {
	case f.out <- n:
	case <-ctx.Done():
	}
}

// watch listens for events, and reconnects when the connection is lost. What happened in between is
// in the list, which is read after the hello of each connection.
func (f *Follower) watch(ctx context.Context) {
	tries := 0
	query := v1.WatchQuery{Prefix: f.query.Prefix, Once: true, Started: func(v1.Hello) {
		tries = 0
		f.Again()
	}}
	for ctx.Err() == nil {
		for event, err := range f.conn.Watch(ctx, query) {
			if err != nil {
				f.tellLost(ctx, err)
				break
			}
			f.tell(ctx, Update{Event: &event})
			f.Again()
		}
		tries++
		cli.Pause(ctx, min(100*time.Millisecond<<min(tries-1, 6), longestTry))
	}
}

// list reads the list whenever something made it stale.
func (f *Follower) list(ctx context.Context) {
	for f.wait(ctx) {
		began := f.now()
		resources, err := f.conn.Everything(ctx, f.query)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.tellLost(ctx, err)
			cli.Pause(ctx, time.Second)
			f.Again()
		default:
			f.tell(ctx, Update{Snapshot: &Snapshot{Asked: began, Resources: resources, Quarantine: f.quarantine(ctx)}})
			cli.Pause(ctx, max(leastPause, pauseFactor*f.now().Sub(began)))
		}
	}
}

// quarantine reads the quarantine. A server that does not know of one, since it is older, or that fails
// just now, shows none: the list itself says whether it is lost.
func (f *Follower) quarantine(ctx context.Context) v1.Quarantine {
	if !f.AsksQuarantine {
		return v1.Quarantine{}
	}
	q, err := f.conn.Quarantine(ctx)
	if err != nil {
		return v1.Quarantine{}
	}
	return q
}

// wait waits for a reason to read the list: news, or that the last reading is old.
func (f *Follower) wait(ctx context.Context) bool {
	var due <-chan time.Time
	if f.Every > 0 {
		due = time.After(f.Every)
	}
	select {
	case <-f.stale:
	case <-due:
	case <-ctx.Done():
		return false
	}
	return true
}

// tellLost reports an error, unless it comes from our own end.
func (f *Follower) tellLost(ctx context.Context, err error) {
	if ctx.Err() == nil {
		f.tell(ctx, Update{Lost: err})
	}
}

// Permanent reports whether waiting cannot cure an error, so that a live view should end with it.
func Permanent(err error) bool {
	var e *leasehold.Error
	if !errors.As(err, &e) {
		return true
	}
	switch e.Code {
	case leasehold.Invalid, leasehold.Denied, leasehold.Refused, leasehold.NotFound:
		return true
	}
	return false
}

// RenewalsEvery is how often a live view is refreshed when nothing happens: a
// renewal is no event, and what remains would otherwise run out on the screen.
const RenewalsEvery = 10 * time.Second
