package etcd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	endsMany = 32          // in one step of etcd: it allows 128 operations and 1.5 MiB
	endsSlow = time.Second // the others no longer wait for a step that takes longer: one member may hang
)

// ends collects the ends that come while etcd is busy with others, and sends them together: what costs
// etcd most is the step, not what it does. One that comes alone is sent at once.
//
// Each keeps its own condition, so they do not depend on each other: if the step fails it is undecided for
// all of them, and to end something twice does no harm. (Grants are not collected, because all keys of a
// step have the same revision, which is their token.)
type ends struct {
	carry func(context.Context, []*end) error

	mu      sync.Mutex // guards what follows
	waiting []*end
	busy    bool
}

// carryOut returns when all ends are carried out, or one of the errors.
func (q *ends) carryOut(ctx context.Context, all ...*end) error {
	q.mu.Lock()
	for _, e := range all {
		e.ctx, e.done = ctx, make(chan error, 1)
	}
	q.waiting = append(q.waiting, all...)
	if !q.busy && len(all) > 0 {
		q.busy = true
		go q.run()
	}
	q.mu.Unlock()
	var failed error
	for _, e := range all {
		select {
		case err := <-e.done:
			if failed == nil {
				failed = err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return failed
}

// run sends what waits, until nothing does.
func (q *ends) run() {
	for {
		q.mu.Lock()
		some := q.next()
		q.busy = len(some) > 0
		q.mu.Unlock()
		if len(some) == 0 {
			return
		}
		instead := time.AfterFunc(endsSlow, q.run)
		err := q.send(some)
		for _, e := range some {
			e.done <- err
		}
		if !instead.Stop() {
			return
		}
	}
}

// next takes what can be sent together out of the queue: no resource and no id twice, because etcd refuses
// a step that writes a key twice.
func (q *ends) next() (some []*end) {
	taken := map[string]bool{}
	var rest []*end
	for i, e := range q.waiting {
		if len(some) == endsMany {
			rest = append(rest, q.waiting[i:]...)
			break
		}
		resource, id := "r"+e.ref.Resource, "i"+e.ref.ID
		switch {
		case e.ctx.Err() != nil: // nobody waits for it any more, and it was never sent
		case taken[resource] || taken[id]:
			rest = append(rest, e)
		default:
			taken[resource], taken[id] = true, true
			some = append(some, e)
		}
	}
	q.waiting = rest
	return some
}

// send carries out some ends. It gives up when nobody waits for any of them.
func (q *ends) send(some []*end) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(len(some)))
	for _, e := range some {
		defer context.AfterFunc(e.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})()
	}
	return q.carry(ctx, some)
}
