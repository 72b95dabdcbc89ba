package redis

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// wakes tells waiters of this process when it is worth asking again. There is one subscription for all,
// from the first wait until the store is closed.
type wakes struct {
	client  rueidis.Client
	channel string

	mu      sync.Mutex // guards what follows
	waiters map[string]chan struct{}
	cancel  context.CancelFunc // nil: not subscribed yet
	ended   chan struct{}
	closed  bool
}

// resubscribe is the pause after a subscription failed. Waiters poll meanwhile.
const resubscribe = time.Second

// wait returns what receives when a waiter should ask. The caller ends it by done.
func (w *wakes) wait(id string) (wake <-chan struct{}, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil && !w.closed {
		ctx, cancel := context.WithCancel(context.Background())
		w.cancel, w.ended = cancel, make(chan struct{})
		go w.run(ctx)
	}
	c := make(chan struct{}, 1)
	w.waiters[id] = c
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.waiters[id] == c {
			delete(w.waiters, id)
		}
	}
}

func (w *wakes) run(ctx context.Context) {
	defer close(w.ended)
	for ctx.Err() == nil {
		_ = w.client.Dedicated(func(c rueidis.DedicatedClient) error { return w.subscribe(ctx, c) })
		select {
		case <-ctx.Done():
		case <-time.After(resubscribe):
		}
	}
}

// subscribe listens until it fails. What was published before it began is lost, so all ask then.
func (w *wakes) subscribe(ctx context.Context, c rueidis.DedicatedClient) error {
	failed := c.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { w.wake(m.Message) },
		OnSubscription: func(rueidis.PubSubSubscription) { w.wakeAll() },
	})
	if err := c.Do(ctx, c.B().Subscribe().Channel(w.channel).Build()).Error(); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		c.Close()
		return ctx.Err()
	}
}

func (w *wakes) wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	nudge(w.waiters[id])
}

func (w *wakes) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.waiters {
		nudge(c)
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is nil, or was told already
	}
}

func (w *wakes) close() {
	w.mu.Lock()
	w.closed = true
	cancel, ended := w.cancel, w.ended
	w.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}
