package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A place is that of one waiter in the queue of one resource.
type place struct{ no, n int64 }

func placeOf(a answer) place {
	if a.verdict != "held" {
		return place{}
	}
	return place{a.no, a.n}
}

// A listener wakes waiters when the database says that it is their turn. It needs a connection of its own,
// from the first wait on. It is a help and no more: waiters ask again anyway.
type listener struct {
	config  *pgx.ConnConfig                              // nil: it does not listen
	prepare func(context.Context, *pgx.ConnConfig) error // nil: nothing; for credentials that change
	channel string

	mu      sync.Mutex // guards what follows
	waiting map[place]chan<- struct{}
	stop    context.CancelFunc // nil: it does not run
	done    chan struct{}
	closed  bool
}

// Off as Config.Listen opens no connection for notifications.
const Off = "off"

func newListener(c Config, pool *pgxpool.Config) (*listener, error) {
	l := &listener{channel: c.Schema, waiting: map[place]chan<- struct{}{}}
	switch c.Listen {
	case "":
		l.config, l.prepare = pool.ConnConfig, pool.BeforeConnect
	case Off:
	default:
		config, err := pgx.ParseConfig(c.Listen)
		if err != nil {
			return nil, invalid("the URL to listen at is malformed: use postgres://USER:PASSWORD@HOST:PORT/DATABASE")
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		l.config = config
	}
	return l, nil
}

func notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (l *listener) enter(p place, wake chan<- struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[p] = wake
	if l.stop == nil && l.config != nil && !l.closed {
		var ctx context.Context
		ctx, l.stop = context.WithCancel(context.Background())
		l.done = make(chan struct{})
		go l.run(ctx, l.done)
	}
}

func (l *listener) leave(p place, wake chan<- struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[p] == wake {
		delete(l.waiting, p)
	}
}

func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	stop, done := l.stop, l.done
	l.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// run listens until ctx ends.
func (l *listener) run(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	for ctx.Err() == nil {
		l.listen(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

// listen returns when the connection fails.
func (l *listener) listen(ctx context.Context) {
	config := l.config.Copy()
	if l.prepare != nil && l.prepare(ctx, config) != nil {
		return
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{l.channel}.Sanitize()); err != nil {
		return
	}
	l.wakeAll()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return
		}
		var p place
		if _, err := fmt.Sscan(n.Payload, &p.no, &p.n); err == nil {
			l.wake(p)
		}
	}
}

func (l *listener) wake(p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wake := l.waiting[p]; wake != nil {
		notify(wake)
	}
}

// wakeAll makes everybody ask again: what was said before the connection was heard by nobody.
func (l *listener) wakeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, wake := range l.waiting {
		notify(wake)
	}
}
