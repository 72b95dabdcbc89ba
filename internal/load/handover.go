package load

import (
	"context"
	"sync/atomic"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// patience is how long a taker waits in the queue. Those before it hold only as long as a request
// takes, so a minute is plenty, and what takes longer is an error.
const patience = time.Minute

// A group is the clients that want the same resource.
type group struct {
	released atomic.Pointer[time.Time] // when its last holder sent the release; nil: unknown
}

// A taker wants what others have: it waits in the queue, and gives back what it got as soon as it
// has renewed it, which is what a holder that waited should do. The renewal also gives the holder
// before it time to join the queue again, so that there is somebody to hand over to.
type taker struct {
	client
	group     *group
	contended int
}

func (t *taker) prepare(context.Context) error { return nil }
func (t *taker) clear(context.Context) int     { return 0 }

// step counts only what was waited for: a resource that was free when the request
// came was not handed over. Holders of one resource follow one another, so that
// the last release sent is the one that made room.
func (t *taker) step(ctx context.Context) (s sample, err error) {
	id := t.newID()
	request := t.request(t.contended, id)
	request.Wait = v1.Duration(patience)
	lease, err := t.Acquire(ctx, request)
	granted := time.Now()
	if err != nil {
		t.drop(id)
		return sample{}, err
	}
	if released := t.group.released.Load(); released != nil && lease.WaitedMS > 0 {
		s = sample{*released, granted.Sub(*released)}
	}
	if err := t.giveBack(ctx, id); err != nil {
		// The release may or may not have arrived, so the next grant has no known beginning.
		t.group.released.Store(nil)
		t.drop(id)
		return sample{}, err
	}
	return s, nil
}

func (t *taker) giveBack(ctx context.Context, id string) error {
	// At the end the queue should empty quickly.
	if !t.run.stopped() {
		if _, err := t.Renew(ctx, v1.RenewRequest{ID: id}); err != nil {
			return err
		}
	}
	now := time.Now()
	t.group.released.Store(&now)
	return t.Release(ctx, v1.ReleaseRequest{ID: id})
}
