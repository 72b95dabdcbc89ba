//go:build linux

package system

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis9 "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/internal/peer"
)

// startRedis starts a Redis that, like the others, answers when the answer is durable. It makes no
// snapshots beside its log, which would only disturb it.
func startRedis(on *stage.Stage, _ Config) *Server {
	r := peer.StartRedis(on, peer.RedisConfig{
		Args: []string{"--appendonly", "yes", "--appendfsync", "always", "--save", ""},
	})
	version := "unknown version"
	for line := range strings.Lines(r.Do("INFO", "server")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			version = v
		}
	}
	goredis9.SetLogger(quiet{}) // it would write a line for each connection that is closed
	looks := goredis9.NewClient(&goredis9.Options{Addr: r.Address})
	on.Cleanup(func() { _ = looks.Close() })
	return &Server{
		Version: version, Setup: "appendfsync always", Addresses: []string{r.Address}, Nodes: []*peer.Server{&r.Server},
		Count: func(ctx context.Context) (int, error) {
			n, err := looks.DBSize(ctx).Result()
			return int(n), err
		},
	}
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

type redisClient struct {
	*goredis9.Client
	locks *redsync.Redsync
}

func dialRedis(ctx context.Context, s *Server, d Dialing) (Client, error) {
	c := goredis9.NewClient(&goredis9.Options{
		Addr: s.Addresses[0], PoolSize: max(1, d.Users), PoolTimeout: time.Minute,
	})
	if err := c.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	return redisClient{c, redsync.New(goredis.NewPool(c))}, nil
}

func (c redisClient) Close() { _ = c.Client.Close() }

type redisHold struct{ *redsync.Mutex }

func (c redisClient) Acquire(ctx context.Context, r Request) (Hold, error) {
	tries := 1
	if r.Wait {
		tries = math.MaxInt
	}
	m := c.locks.NewMutex(r.Name, redsync.WithExpiry(r.TTL), redsync.WithTries(tries))
	if err := m.LockContext(ctx); err != nil {
		var taken *redsync.ErrTaken
		return nil, heldIf(errors.As(err, &taken), err)
	}
	return redisHold{m}, nil
}

func (h redisHold) Renew(ctx context.Context) error {
	ok, err := h.ExtendContext(ctx)
	return lostUnless(ok, err)
}

func (h redisHold) Release(ctx context.Context) error {
	ok, err := h.UnlockContext(ctx)
	return lostUnless(ok, err)
}

func lostUnless(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("the lock was lost")
	}
	return err
}

func (c redisClient) Fill(ctx context.Context, prefix string, from, to int, until time.Time) error {
	for ; from < to; from += 1000 {
		batch := c.Pipeline()
		for i := from; i < min(to, from+1000); i++ {
			batch.SetNX(ctx, fmt.Sprint(prefix, i), "bench", time.Until(until))
		}
		if _, err := batch.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Watch uses what people use: notifications about the key. They are not kept for who is away.
func (c redisClient) Watch(ctx context.Context, name string, began, seen func()) error {
	if err := c.ConfigSet(ctx, "notify-keyspace-events", "K$").Err(); err != nil {
		return err
	}
	s := c.Subscribe(ctx, "__keyspace@0__:"+name)
	defer s.Close()
	if _, err := s.Receive(ctx); err != nil {
		return err
	}
	began()
	for ctx.Err() == nil {
		if _, err := s.ReceiveMessage(ctx); err == nil {
			seen()
		} else if ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (c redisClient) Publish(ctx context.Context, name string) error {
	return c.Set(ctx, name, "x", time.Minute).Err()
}

// redisKeeper renews keys as sessions are renewed, at a third of their TTL: a library that does it for
// many at once is not known.
func (c redisClient) Keep(ctx context.Context, n int, ttl time.Duration) (func() int, error) {
	k := &redisKeeper{client: c}
	for range n {
		h, err := c.Acquire(ctx, Request{Name: NewName("keep/"), TTL: ttl})
		if err != nil {
			return nil, err
		}
		k.holds = append(k.holds, h)
	}
	go k.renew(ctx, ttl/3)
	return func() int { return int(k.lost.Load()) }, nil
}
