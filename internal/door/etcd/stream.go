package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/internal/door"
)

// staying returns a context for a call that stays: it ends when the server drains, and when the credential of who asks
// does.
func (d *Door) staying(ctx context.Context) (context.Context, context.CancelFunc) {
	c := callOf(ctx)
	return d.backend.Staying(c.ctx, c.proof)
}

// streamEnded returns why a call that stayed had to end.
func (d *Door) streamEnded(ctx context.Context, err error) error {
	c := callOf(ctx)
	switch {
	case err == nil:
		return nil
	case d.backend.Stopping().Err() != nil:
		return status.Error(codes.Unavailable, door.StoppingMessage)
	case errors.Is(context.Cause(ctx), errNoLeader):
		return rpctypes.ErrGRPCNoLeader
	}
	if ended := d.backend.Ended(ctx, c.proof, err); ended != nil {
		return ended
	}
	return err
}

// errNoLeader is why the streams end whose clients want to know that there is no leader.
var errNoLeader = errors.New("there is no leader")

// leaders are the streams whose clients want to know at once when there is no leader: concurrency.Session asks for it,
// since a session that cannot be renewed is better given up in time.
type leaders struct {
	mu      sync.Mutex // guards what follows
	streams map[*call]context.CancelCauseFunc
	stop    context.CancelFunc // of who looks after them
}

const (
	leaderLook = time.Second     // between two looks
	leaderTime = 3 * time.Second // for an answer
)

// watchLeader ends a stream when there is no leader, if its client wants that. Call leave when it ends by itself.
func (d *Door) watchLeader(c *call) (leave func()) {
	if !c.needsLeader {
		return func() {}
	}
	ctx, end := context.WithCancelCause(c.ctx)
	c.ctx = context.WithValue(ctx, callKey{}, c)
	l := &d.leaders
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.streams) == 0 {
		l.streams = map[*call]context.CancelCauseFunc{}
		looking, stop := context.WithCancel(context.Background())
		l.stop = stop
		go d.lookForLeader(looking)
	}
	l.streams[c] = end
	return func() {
		end(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, there := l.streams[c]; !there {
			return
		}
		if delete(l.streams, c); len(l.streams) == 0 {
			l.stop()
		}
	}
}

// lookForLeader runs while there are such streams.
func (d *Door) lookForLeader(ctx context.Context) {
	for d.backend.Pause(ctx, leaderLook) {
		asking, cancel := context.WithTimeout(ctx, leaderTime)
		err := d.backend.Ready(asking)
		cancel()
		if err != nil && ctx.Err() == nil {
			d.endLeaderless()
		}
	}
}

func (d *Door) endLeaderless() {
	l := &d.leaders
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range l.streams {
		end(errNoLeader)
	}
}
