package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A sight is how things stood at a moment.
type sight struct {
	asked     time.Time // before the request was sent: what remains is counted from here
	resources []v1.Resource
}

// news is one of: how things stand, what happened, or that nobody can be asked.
type news struct {
	sight *sight
	event *v1.Event
	lost  error
}

// A follower keeps a list of resources up to date. It reads the list again when a
// watch says that something happened: one list and one watch, however many there
// are. What comes out is always what the server said, never what was made up from
// events, which do not tell everything.
type follower struct {
	conn   *conn
	prefix string
	all    bool
	now    func() time.Time
	every  time.Duration // also reads so often, for renewals, which are no events; 0: never
	stale  chan struct{}
	out    chan news
}

const (
	// leastPause is between two readings of the list, however much happens. It grows
	// with how long a reading takes, so that a large list does not become a load.
	leastPause  = 200 * time.Millisecond
	pauseFactor = 10

	// longestTry is between two tries to reach a server that is gone.
	longestTry = 5 * time.Second
)

func (a *app) newFollower(c *conn, prefix string, all bool) *follower {
	return &follower{conn: c, prefix: prefix, all: all, now: a.now, stale: make(chan struct{}, 1), out: make(chan news)}
}

// start follows until ctx ends; then the channel is closed.
func (f *follower) start(ctx context.Context) <-chan news {
	var both sync.WaitGroup
	both.Go(func() { f.watch(ctx) })
	both.Go(func() { f.list(ctx) })
	go func() {
		both.Wait()
		close(f.out)
	}()
	return f.out
}

// again has the list read once more, soon.
func (f *follower) again() {
	select {
	case f.stale <- struct{}{}:
	default: // it will be anyway
	}
}

func (f *follower) tell(ctx context.Context, n news) {
	select {
	case f.out <- n:
	case <-ctx.Done():
	}
}

// watch listens, and comes back when the connection is lost. What happened in
// between is in the list, which is read after the hello of each connection.
func (f *follower) watch(ctx context.Context) {
	tries := 0
	query := v1.WatchQuery{Prefix: f.prefix, Once: true, Started: func(v1.Hello) {
		tries = 0
		f.again()
	}}
	for ctx.Err() == nil {
		for event, err := range f.conn.Watch(ctx, query) {
			if err != nil {
				f.tellLost(ctx, err)
				break
			}
			f.tell(ctx, news{event: &event})
			f.again()
		}
		tries++
		pause(ctx, min(100*time.Millisecond<<min(tries-1, 6), longestTry))
	}
}

// list reads whenever it is told to.
func (f *follower) list(ctx context.Context) {
	for f.wait(ctx) {
		began := f.now()
		resources, err := f.conn.everything(ctx, f.prefix, f.all)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.tellLost(ctx, err)
			pause(ctx, time.Second)
			f.again()
		default:
			f.tell(ctx, news{sight: &sight{asked: began, resources: resources}})
			pause(ctx, max(leastPause, pauseFactor*f.now().Sub(began)))
		}
	}
}

func (f *follower) wait(ctx context.Context) bool {
	var due <-chan time.Time
	if f.every > 0 {
		due = time.After(f.every)
	}
	select {
	case <-f.stale:
	case <-due:
	case <-ctx.Done():
		return false
	}
	return true
}

// tellLost tells of an error, unless it is that we have stopped to listen.
func (f *follower) tellLost(ctx context.Context, err error) {
	if ctx.Err() == nil {
		f.tell(ctx, news{lost: err})
	}
}

// hopeless tells errors that no waiting cures.
func hopeless(err error) bool {
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

// renewalsEvery is how often a live view is read anew when nothing happens: a
// renewal is no event, and what remains would otherwise run out on the screen.
const renewalsEvery = 10 * time.Second
