//go:build linux

package system

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/internal/peer"
)

func startConsul(on *stage.Stage, config Config) *Server {
	c := peer.StartConsul(on, peer.ConsulConfig{Members: config.Nodes, Settings: map[string]any{
		"session_ttl_min": "1s", "limits": map[string]any{"http_max_conns_per_client": 10000},
	}})
	s := &Server{
		Version: versionOf(c.Binary(), "version"), Setup: "raft_multiplier 1", Addresses: c.Addresses(),
		Leader: func() *peer.Server { return &c.Leader().Server },
	}
	for _, m := range c.Members {
		s.Nodes = append(s.Nodes, &m.Server)
	}
	return s
}

// A consulClient has one connection for its requests, one for those that end the session of its last lock, and others
// for those that wait: each lock that is held has one, by which the library hears of its loss.
type consulClient struct {
	*api.Client
	transport *http.Transport
}

func dialConsul(_ context.Context, s *Server, d Dialing) (Client, error) {
	t := &http.Transport{MaxIdleConnsPerHost: max(3, 3*d.Users)}
	c, err := api.NewClient(&api.Config{Address: s.first(d)[0], HttpClient: &http.Client{Transport: t}})
	return consulClient{c, t}, err
}

// dialLeaseholdConsul connects to the port of Leasehold for clients of Consul.
func dialLeaseholdConsul(ctx context.Context, s *Server, d Dialing) (Client, error) {
	return dialConsul(ctx, &Server{Addresses: s.consul}, d)
}

func (c consulClient) Close() { c.transport.CloseIdleConnections() }

type consulLock struct {
	client  *api.Client
	lock    *api.Lock
	session string
}

func (c consulClient) Acquire(ctx context.Context, r Request) (Hold, error) {
	o := &api.LockOptions{Key: r.Name, SessionTTL: r.TTL.String(), LockTryOnce: !r.Wait, LockDelay: time.Millisecond}
	if !r.Wait {
		o.LockWaitTime = time.Millisecond
	}
	h := consulLock{client: c.Client}
	if r.ByHand {
		id, _, err := c.Session().CreateNoChecks(&api.SessionEntry{TTL: o.SessionTTL, LockDelay: o.LockDelay}, nil)
		if err != nil {
			return nil, err
		}
		h.session, o.Session = id, id
	}
	var err error
	if h.lock, err = c.LockOpts(o); err != nil {
		return nil, err
	}
	lost, err := h.lock.Lock(ctx.Done())
	switch {
	case err != nil:
		return nil, err
	case lost == nil:
		return nil, errors.Join(ErrHeld, ctx.Err())
	}
	return h, nil
}

func (h consulLock) Renew(ctx context.Context) error {
	_, _, err := h.client.Session().Renew(h.session, (&api.WriteOptions{}).WithContext(ctx))
	return err
}

func (h consulLock) Release(context.Context) error {
	err := h.lock.Unlock()
	if h.session != "" {
		_, destroyed := h.client.Session().Destroy(h.session, nil)
		err = errors.Join(err, destroyed)
	}
	return err
}
