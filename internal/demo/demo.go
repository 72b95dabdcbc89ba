package demo

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
)

// Config is what a demo needs to know.
type Config struct {
	Server string // its URL
	Seed   uint64 // of all choices; the order of what happens at the same time differs all the same

	// Dial makes connections; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// An actor does something again and again. Each has a client, and chance, of its own.
type actor struct {
	*client.Client
	*rand.Rand
	api   *v1.Caller
	began time.Time
	role
}

// A role is what an actor does, once: it is played again until the demo ends.
type role struct {
	name string
	play func(context.Context, *actor)
}

// ttl is that of the leases: short enough that a dead holder is seen to be dead soon.
const ttl = 15 * time.Second

// Play plays the scenario until ctx ends, and has then released what its actors held. The error is that of a server
// that cannot be used.
func Play(ctx context.Context, c Config) error {
	err := play(ctx, c)
	if ctx.Err() != nil {
		return nil // it was told to end, perhaps while it began
	}
	return err
}

func play(ctx context.Context, c Config) error {
	api, err := v1.NewCaller(v1.CallerConfig{Server: c.Server, Dial: c.Dial})
	if err != nil {
		return err
	}
	defer api.CloseIdle()
	if err := define(ctx, api); err != nil {
		return err
	}
	actors, err := engage(ctx, c, api)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, a := range actors {
		all.Go(func() {
			defer a.Close()
			for a.pause(ctx, a.between(0, 2*time.Second)) {
				a.play(ctx, a)
			}
		})
	}
	all.Wait()
	return nil
}

// engage returns who plays.
func engage(ctx context.Context, c Config, api *v1.Caller) (actors []*actor, err error) {
	began := time.Now()
	for i, r := range cast() {
		own, err := client.Dial(ctx, client.Config{Servers: []string{c.Server}, Namespace: "default", Holder: r.name,
			TTL: ttl, Wire: v1.WireHTTP, Token: nobody, TLS: &tls.Config{}, Dial: c.Dial})
		if err != nil {
			for _, a := range actors {
				a.Close()
			}
			return nil, err
		}
		actors = append(actors, &actor{Client: own, Rand: rand.New(rand.NewPCG(c.Seed, uint64(i))), api: api,
			began: began, role: r})
	}
	return actors, nil
}

// nobody is who the actors say they are: the server of a demo has no rules, whatever the environment has.
func nobody(context.Context) (string, error) { return "", nil }

// define sets what the server should know about some of the resources.
func define(ctx context.Context, api *v1.Caller) error {
	second := func(n int) v1.Duration { return v1.Duration(time.Duration(n) * time.Second) }
	for path, d := range map[string]v1.DefinitionRequest{
		pool:          {Units: []string{"gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"}},
		"db/":         {Expected: second(60)},
		"ci/licences": {Capacity: 3},
		"backup/":     {Unclean: "warn"},
		"prod/":       {HoldLimit: second(300)},
	} {
		d.By, d.Reason = "demo", "the demo's scenario"
		if _, err := api.Define(ctx, path, d); err != nil {
			return err
		}
	}
	return nil
}

// between returns some time from one to another.
func (a *actor) between(least, most time.Duration) time.Duration {
	return least + time.Duration(a.Int64N(int64(most-least)+1))
}

// one returns one of several words.
func (a *actor) one(words ...string) string { return words[a.IntN(len(words))] }

// pause waits, and reports whether the demo goes on.
func (a *actor) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// hurry shortens the work of the first minute, so that there is soon something to see behind it.
func (a *actor) hurry(d time.Duration) time.Duration {
	const slow = time.Minute
	if passed := time.Since(a.began); passed < slow {
		return d/5 + time.Duration(float64(d)*0.8*float64(passed)/float64(slow))
	}
	return d
}

// hold waits for a resource, works for a while, and gives it back, unless somebody takes it away.
func (a *actor) hold(ctx context.Context, resource string, work time.Duration, options ...client.Option) {
	h, err := a.Acquire(ctx, resource, append([]client.Option{client.Wait(2 * time.Minute)}, options...)...)
	if err != nil {
		a.pause(ctx, time.Second)
		return
	}
	a.work(ctx, h, a.hurry(work))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = h.Release(ctx) // if it fails, the lease ends by itself
}

// work passes the time, and gives way soon if somebody asks for that.
func (a *actor) work(ctx context.Context, h *client.Hold, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.Lost():
			return
		case <-timer.C:
			return
		case _, ok := <-h.Messages():
			if ok {
				timer.Reset(2 * time.Second)
			}
		}
	}
}
