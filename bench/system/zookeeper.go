//go:build linux

package system

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/internal/peer"
)

func startZooKeeper(on *stage.Stage, config Config) *Server {
	z := peer.StartZooKeeper(on, peer.ZooKeeperConfig{Members: config.Nodes, Measured: true})
	s := &Server{
		Version: z.Version(), Setup: "as it comes; ticks of 2 s", Addresses: z.Addresses(),
		Leader: func() *peer.Server { return &z.Leader().Server },
	}
	for _, m := range z.Members {
		s.Nodes = append(s.Nodes, &m.Server)
	}
	s.Count = func(context.Context) (n int, err error) {
		err = on.Try(func() { n = z.Members[0].Ephemerals() })
		return n, err
	}
	return s
}

// A zooKeeperClient is one session, which is one connection. All its locks end with it.
type zooKeeperClient struct{ *zk.Conn }

func dialZooKeeper(ctx context.Context, s *Server, d Dialing) (Client, error) {
	c, events, err := zk.Connect(s.first(d), d.TTL, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return zooKeeperClient{c}, nil
			}
		case <-ctx.Done():
			c.Close()
			return nil, ctx.Err()
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (c zooKeeperClient) Close() { c.Conn.Close() }

var anybody = zk.WorldACL(zk.PermAll)

func zooKeeperPath(name string) string { return "/" + strings.ReplaceAll(name, "/", "-") }

type zooKeeperLock struct {
	conn *zk.Conn
	lock *zk.Lock
	path string
}

// Acquire waits in any case: the library's lock has no other way. Nothing ends its wait, not even the end
// of the connection; so a goroutine waits.
func (c zooKeeperClient) Acquire(ctx context.Context, r Request) (Hold, error) {
	h := zooKeeperLock{conn: c.Conn, path: zooKeeperPath(r.Name)}
	h.lock = zk.NewLock(c.Conn, h.path, anybody)
	done := make(chan error, 1)
	go func() { done <- h.lock.Lock() }()
	select {
	case err := <-done:
		return h, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Renew is any request: each keeps the session alive, and with it the locks.
func (h zooKeeperLock) Renew(context.Context) error {
	there, _, err := h.conn.Exists(h.path)
	return lostUnless(there, err)
}

func (h zooKeeperLock) Release(context.Context) error { return h.lock.Unlock() }

// Group makes nodes of the one session that a client has.
func (c zooKeeperClient) Group(ctx context.Context, _ time.Duration, names []string) (Group, error) {
	var paths []string
	for _, name := range names {
		paths = append(paths, zooKeeperPath(name))
	}
	return zooKeeperGroup{c.Conn, paths}, c.create(ctx, paths)
}

type zooKeeperGroup struct {
	conn  *zk.Conn
	paths []string
}

func (g zooKeeperGroup) Renew(context.Context) error {
	there, _, err := g.conn.Exists(g.paths[0])
	return lostUnless(there, err)
}

func (g zooKeeperGroup) Close(context.Context) error {
	for i := 0; i < len(g.paths); i += zooKeeperBatch {
		var ops []any
		for _, path := range g.paths[i:min(len(g.paths), i+zooKeeperBatch)] {
			ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
		}
		if _, err := g.conn.Multi(ops...); err != nil {
			return err
		}
	}
	return nil
}

// zooKeeperBatch is how many nodes are made by one request.
const zooKeeperBatch = 200

// create makes nodes that end with the session.
func (c zooKeeperClient) create(ctx context.Context, paths []string) error {
	for i := 0; i < len(paths) && ctx.Err() == nil; i += zooKeeperBatch {
		var ops []any
		for _, path := range paths[i:min(len(paths), i+zooKeeperBatch)] {
			node := zk.CreateRequest{Path: path, Data: []byte("bench"), Acl: anybody, Flags: zk.FlagEphemeral}
			ops = append(ops, &node)
		}
		if _, err := c.Multi(ops...); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Fill makes nodes that end when the client's session does, not at a time.
func (c zooKeeperClient) Fill(ctx context.Context, prefix string, from, to int, _ time.Time) error {
	parent := zooKeeperPath(strings.TrimSuffix(prefix, "/"))
	if _, err := c.Create(parent, nil, 0, anybody); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	var paths []string
	for i := from; i < to; i++ {
		paths = append(paths, fmt.Sprint(parent, "/", i))
	}
	return c.create(ctx, paths)
}
