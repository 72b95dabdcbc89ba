package listen

import (
	"context"
	"net"
	"sync"
)

// underWay has the connections on which something is under way that the HTTP server does not know of. A port that
// drains waits for them.
type underWay struct {
	mu    sync.Mutex // guards what follows
	conns map[net.Conn]struct{}
	empty *sync.Cond // there may be none
}

func newUnderWay() *underWay {
	u := &underWay{conns: map[net.Conn]struct{}{}}
	u.empty = sync.NewCond(&u.mu)
	return u
}

func (u *underWay) add(c net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conns[c] = struct{}{}
}

func (u *underWay) remove(c net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, c)
	u.empty.Broadcast()
}

// finish waits until nothing is under way. When ctx ends, it closes the remaining connections.
func (u *underWay) finish(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.empty.Broadcast()
	})()
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.conns) > 0 && ctx.Err() == nil {
		u.empty.Wait()
	}
	if len(u.conns) == 0 {
		return nil
	}
	for c := range u.conns {
		// Not by way of TLS, which would wait for a peer that reads nothing in order to say
		// goodbye.
		_ = ConnOf(c).closeNow()
	}
	return ctx.Err()
}
