//go:build linux

package system

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/internal/peer"
)

func startEtcd(on *stage.Stage, config Config) *Server {
	e := peer.StartEtcd(on, peer.EtcdConfig{Members: config.Nodes, Args: []string{
		"--unsafe-no-fsync=false", "--quota-backend-bytes", "8589934592", "--max-concurrent-streams", "100000",
	}})
	s := &Server{
		Version: "unknown version", Setup: "as it comes", Addresses: e.Endpoints(),
		Leader: func() *peer.Server { return &e.Leader().Server },
	}
	for _, m := range e.Members {
		s.Nodes = append(s.Nodes, &m.Server)
	}
	looks, err := newEtcd(context.Background(), s, Dialing{})
	if err != nil {
		on.Fatal(err)
	}
	on.Cleanup(looks.Close)
	s.Count = looks.Count
	if status, err := looks.Status(context.Background(), s.Addresses[0]); err == nil {
		s.Version = status.Version
	}
	return s
}

// FillPrefix is what all names begin with that a [Filler] makes.
const FillPrefix = "fill/"

// An etcdClient uses mutexes. Those of a client share a session unless each has its own.
type etcdClient struct {
	*clientv3.Client
	own bool
	ttl time.Duration

	mu     sync.Mutex
	shared *concurrency.Session
}

func newEtcd(ctx context.Context, s *Server, d Dialing) (*etcdClient, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: s.first(d), Logger: zap.NewNop(), DialTimeout: 10 * time.Second, Context: context.WithoutCancel(ctx),
		MaxCallRecvMsgSize: math.MaxInt32,
	})
	return &etcdClient{Client: c, ttl: d.TTL}, err
}

// Count counts the keys that a [Filler] made.
func (c *etcdClient) Count(ctx context.Context) (int, error) {
	all, err := c.Get(ctx, FillPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(all.Count), nil
}

// dialLeaseholdEtcd connects to the port of Leasehold for clients of etcd.
func dialLeaseholdEtcd(ctx context.Context, s *Server, d Dialing) (Client, error) {
	return newEtcd(ctx, &Server{Addresses: s.etcd}, d)
}

func dialEtcd(ctx context.Context, s *Server, d Dialing) (Client, error) { return newEtcd(ctx, s, d) }

func dialEtcdOwn(ctx context.Context, s *Server, d Dialing) (Client, error) {
	c, err := newEtcd(ctx, s, d)
	c.own = true
	return c, err
}

func (c *etcdClient) Close() { _ = c.Client.Close() }

// session returns the client's session, or one for a single lock.
func (c *etcdClient) session(ttl time.Duration) (*concurrency.Session, error) {
	if c.own {
		return c.newSession(ttl)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared == nil {
		s, err := c.newSession(ttl)
		if err != nil {
			return nil, err
		}
		c.shared = s
	}
	return c.shared, nil
}

func (c *etcdClient) newSession(ttl time.Duration) (*concurrency.Session, error) {
	return concurrency.NewSession(c.Client, concurrency.WithTTL(seconds(ttl)))
}

// seconds rounds up: etcd has no shorter unit.
func seconds(ttl time.Duration) int { return int(math.Ceil(ttl.Seconds())) }

type etcdMutex struct {
	*concurrency.Mutex
	own *concurrency.Session
}

func (c *etcdClient) Acquire(ctx context.Context, r Request) (Hold, error) {
	if r.ByHand {
		return c.acquireRaw(ctx, r)
	}
	s, err := c.session(r.TTL)
	if err != nil {
		return nil, err
	}
	h := etcdMutex{Mutex: concurrency.NewMutex(s, r.Name)}
	if c.own {
		h.own = s
	}
	lock := h.TryLock
	if r.Wait {
		lock = h.Lock
	}
	if err := lock(ctx); err != nil {
		return nil, heldIf(errors.Is(err, concurrency.ErrLocked), err)
	}
	return h, nil
}

func (h etcdMutex) Renew(context.Context) error { return errors.ErrUnsupported }

func (h etcdMutex) Release(ctx context.Context) error {
	err := h.Unlock(ctx)
	if h.own != nil {
		err = errors.Join(err, h.own.Close())
	}
	return err
}

// An etcdRaw client does without the library's mutexes.
type etcdRaw struct{ *etcdClient }

func dialEtcdRaw(ctx context.Context, s *Server, d Dialing) (Client, error) {
	c, err := newEtcd(ctx, s, d)
	return etcdRaw{c}, err
}

func (c etcdRaw) Acquire(ctx context.Context, r Request) (Hold, error) {
	if r.Wait {
		return nil, errors.ErrUnsupported
	}
	return c.acquireRaw(ctx, r)
}

type etcdLease struct {
	client *clientv3.Client
	id     clientv3.LeaseID
}

// acquireRaw creates a key that is bound to a lease of its own.
func (c *etcdClient) acquireRaw(ctx context.Context, r Request) (Hold, error) {
	if r.Wait {
		return nil, errors.ErrUnsupported
	}
	lease, err := c.Grant(ctx, int64(seconds(r.TTL)))
	if err != nil {
		return nil, err
	}
	done, err := c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(r.Name), "=", 0)).
		Then(clientv3.OpPut(r.Name, "bench", clientv3.WithLease(lease.ID))).Commit()
	if err != nil {
		return nil, err
	}
	h := etcdLease{c.Client, lease.ID}
	if !done.Succeeded {
		return nil, errors.Join(ErrHeld, h.Release(ctx))
	}
	return h, nil
}

func (h etcdLease) Renew(ctx context.Context) error {
	_, err := h.client.KeepAliveOnce(ctx, h.id)
	return err
}

func (h etcdLease) Release(ctx context.Context) error {
	_, err := h.client.Revoke(ctx, h.id)
	return err
}

// An etcdStream client renews on a stream that stays, as the library's own sessions do: each lease has one.
type etcdStream struct{ *etcdClient }

func dialEtcdStream(ctx context.Context, s *Server, d Dialing) (Client, error) {
	c, err := newEtcd(ctx, s, d)
	return etcdStream{c}, err
}

func dialLeaseholdEtcdStream(ctx context.Context, s *Server, d Dialing) (Client, error) {
	return dialEtcdStream(ctx, &Server{Addresses: s.etcd}, d)
}

func (c etcdStream) Acquire(ctx context.Context, r Request) (Hold, error) {
	if !r.ByHand {
		return nil, errors.ErrUnsupported
	}
	lease, err := c.Grant(ctx, int64(seconds(r.TTL)))
	if err != nil {
		return nil, err
	}
	stream, err := pb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(c.Ctx())
	return etcdKept{etcdLease{c.Client, lease.ID}, stream}, err
}

type etcdKept struct {
	etcdLease
	stream pb.Lease_LeaseKeepAliveClient
}

func (h etcdKept) Renew(context.Context) error {
	if err := h.stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(h.id)}); err != nil {
		return err
	}
	answer, err := h.stream.Recv()
	if err == nil && answer.TTL <= 0 {
		err = errors.New("the lease is gone")
	}
	return err
}

// Close ends a group.
func (h etcdLease) Close(ctx context.Context) error { return h.Release(ctx) }

func (c *etcdClient) Group(ctx context.Context, ttl time.Duration, names []string) (Group, error) {
	lease, err := c.Grant(ctx, int64(seconds(ttl)))
	if err != nil {
		return nil, err
	}
	for len(names) > 0 {
		n := min(len(names), 128) // operations in a transaction
		var puts []clientv3.Op
		for _, name := range names[:n] {
			puts = append(puts, clientv3.OpPut(name, "bench", clientv3.WithLease(lease.ID)))
		}
		if _, err := c.Txn(ctx).Then(puts...).Commit(); err != nil {
			return nil, err
		}
		names = names[n:]
	}
	return etcdLease{c.Client, lease.ID}, nil
}

// Fill has 16 requests under way at a time, so that they share syncs.
func (c *etcdClient) Fill(ctx context.Context, prefix string, from, to int, until time.Time) error {
	var next atomic.Int64
	next.Store(int64(from))
	errs := make([]error, 16)
	var all sync.WaitGroup
	for w := range errs {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(to) && errs[w] == nil; i = next.Add(1) - 1 {
				r := Request{Name: fmt.Sprint(prefix, i), TTL: max(time.Second, time.Until(until))}
				_, errs[w] = c.acquireRaw(ctx, r)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (c *etcdClient) Keep(ctx context.Context, n int, ttl time.Duration) (func() int, error) {
	var lost atomic.Int64
	for range n {
		lease, err := c.Grant(ctx, int64(seconds(ttl)))
		if err != nil {
			return nil, err
		}
		kept, err := c.KeepAlive(ctx, lease.ID)
		if err != nil {
			return nil, err
		}
		go func() {
			for range kept {
			}
			if ctx.Err() == nil {
				lost.Add(1)
			}
		}()
	}
	return func() int { return int(lost.Load()) }, nil
}

func (c *etcdClient) Watch(ctx context.Context, name string, began, seen func()) error {
	for r := range c.Client.Watch(ctx, name, clientv3.WithCreatedNotify()) {
		if r.Created {
			began()
		}
		for range r.Events {
			seen()
		}
	}
	return nil
}

func (c *etcdClient) Publish(ctx context.Context, name string) error {
	_, err := c.Put(ctx, name, "x")
	return err
}
