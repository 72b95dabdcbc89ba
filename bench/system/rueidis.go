//go:build linux

package system

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// The scripts that everybody uses: what is not ours any more is left alone.
var (
	rueidisRelease = rueidis.NewLuaScript(
		`if redis.call("GET",KEYS[1]) == ARGV[1] then return redis.call("DEL",KEYS[1]) end return 0`)
	rueidisRenew = rueidis.NewLuaScript(
		`if redis.call("GET",KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE",KEYS[1],ARGV[2]) end return 0`)
)

// A rueidisClient is the fastest that Redis can be: the bare commands of a lock, by a client that
// pipelines what its goroutines send.
type rueidisClient struct{ rueidis.Client }

func rueidisOptions(s *Server, d Dialing) rueidis.ClientOption {
	o := rueidis.ClientOption{InitAddress: s.Addresses, DisableCache: true}
	if d.Users == 0 {
		o.PipelineMultiplex = -1 // one connection
	}
	return o
}

func dialRueidis(_ context.Context, s *Server, d Dialing) (Client, error) {
	c, err := rueidis.NewClient(rueidisOptions(s, d))
	return rueidisClient{c}, err
}

type rueidisHold struct {
	client rueidis.Client
	name   string
	value  string
	ttl    string // in ms
}

func (c rueidisClient) Acquire(ctx context.Context, r Request) (Hold, error) {
	if r.Wait {
		return nil, errors.ErrUnsupported
	}
	h := rueidisHold{c.Client, r.Name, rand.Text(), strconv.FormatInt(r.TTL.Milliseconds(), 10)}
	set := c.B().Set().Key(h.name).Value(h.value).Nx().Px(r.TTL).Build()
	if err := c.Do(ctx, set).Error(); err != nil {
		return nil, heldIf(rueidis.IsRedisNil(err), err)
	}
	return h, nil
}

func (h rueidisHold) Renew(ctx context.Context) error {
	n, err := rueidisRenew.Exec(ctx, h.client, []string{h.name}, []string{h.value, h.ttl}).AsInt64()
	return lostUnless(n == 1, err)
}

func (h rueidisHold) Release(ctx context.Context) error {
	n, err := rueidisRelease.Exec(ctx, h.client, []string{h.name}, []string{h.value}).AsInt64()
	return lostUnless(n == 1, err)
}

// A rueidisLocker renews by itself, and does not wait for the answer to a release.
type rueidisLocker struct{ rueidislock.Locker }

func dialRueidisLock(_ context.Context, s *Server, d Dialing) (Client, error) {
	o := rueidisOptions(s, d)
	o.DisableCache = false // it hears of releases by invalidations
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: o, KeyMajority: 1, KeyValidity: d.TTL, NoLoopTracking: true,
	})
	return rueidisLocker{l}, err
}

type rueidisLock struct{ cancel context.CancelFunc }

func (l rueidisLocker) Acquire(ctx context.Context, r Request) (Hold, error) {
	if r.ByHand {
		return nil, errors.ErrUnsupported
	}
	acquire := l.TryWithContext
	if r.Wait {
		acquire = l.WithContext
	}
	_, cancel, err := acquire(ctx, r.Name)
	if err != nil {
		return nil, heldIf(errors.Is(err, rueidislock.ErrNotLocked), err)
	}
	return rueidisLock{cancel}, nil
}

func (h rueidisLock) Renew(context.Context) error { return errors.ErrUnsupported }

func (h rueidisLock) Release(context.Context) error {
	h.cancel()
	return nil
}
