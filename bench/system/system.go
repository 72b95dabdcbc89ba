//go:build linux

package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/internal/peer"
)

// A System is a kind of server and one of its client libraries.
type System struct {
	Name string
	Kind string // of its server; systems of one kind share a server
	Via  string // the client library, and how it is used
	dial func(context.Context, *Server, Dialing) (Client, error)
}

// All are the systems, ours first.
var All = []System{
	{"leasehold", "leasehold", "package client over RESP", dialLeasehold},
	{"leasehold-http", "leasehold", "package client over HTTP", dialLeaseholdHTTP},
	{"leasehold-etcd", "leasehold", "as etcd, at the door for its clients", dialLeaseholdEtcd},
	{"leasehold-etcd-stream", "leasehold", "as etcd-stream, at the door for etcd's clients", dialLeaseholdEtcdStream},
	{"leasehold-consul", "leasehold", "as consul, at the door for its clients", dialLeaseholdConsul},
	{"leasehold-kubernetes", "leasehold", "as kubernetes", dialLeaseholdKubernetes},
	{"redis", "redis", "redsync over go-redis", dialRedis},
	{"rueidis", "redis", "rueidis: SET NX PX, and a script that compares and deletes", dialRueidis},
	{"rueidislock", "redis", "rueidislock", dialRueidisLock},
	{"etcd", "etcd", "concurrency.Mutex, a session for each client", dialEtcd},
	{"etcd-own", "etcd", "concurrency.Mutex, a session for each lock", dialEtcdOwn},
	{"etcd-stream", "etcd", "keep-alives on a stream that stays", dialEtcdStream},
	{"etcd-raw", "etcd", "lease, transaction, revoke", dialEtcdRaw},
	{"zookeeper", "zookeeper", "go-zookeeper's Lock", dialZooKeeper},
	{"consul", "consul", "consul/api's Lock", dialConsul},
	{"kubernetes", "kubernetes", "a kubelet's writes of a Lease, by net/http", dialKubernetes},
	{"postgres", "postgres", "pgx: a row for each lease; waits by pg_advisory_lock", dialPostgres},
}

// Named returns the systems with these names, in the order of [All].
func Named(names []string) (found []System, err error) {
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("there is no system %q: choose from %s", name, strings.Join(Names(), ", "))
		}
	}
	for _, s := range All {
		if slices.Contains(names, s.Name) {
			found = append(found, s)
		}
	}
	return found, nil
}

// Names returns the names of all systems.
func Names() (names []string) {
	for _, s := range All {
		names = append(names, s.Name)
	}
	return names
}

// Dialing says what a client is for.
type Dialing struct {
	Index int           // of the client; it chooses the server that is asked first
	Users int           // goroutines that share the client; 0: one, over one connection
	TTL   time.Duration // of sessions that belong to the connection; 0: 10 s
}

// Dial connects a client.
func (s System) Dial(ctx context.Context, server *Server, d Dialing) (Client, error) {
	if d.TTL == 0 {
		d.TTL = 10 * time.Second
	}
	c, err := s.dial(ctx, server, d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return c, nil
}

// A Client acquires leases, with the client library of its system.
type Client interface {
	Acquire(ctx context.Context, r Request) (Hold, error)
	Close()
}

// A Request is for one lease.
type Request struct {
	Name   string
	TTL    time.Duration
	Wait   bool // until it is free; else an error says that it is not
	ByHand bool // it is renewed by Hold.Renew, and by nothing else
}

// A Hold is a lease that was acquired.
type Hold interface {
	Renew(ctx context.Context) error
	Release(ctx context.Context) error
}

// ErrHeld is the error if somebody else has the lease.
var ErrHeld = errors.New("somebody else has it")

// What only some systems can do is an interface of their clients.
type (
	// A Grouper has sessions, which renew many leases at once.
	Grouper interface {
		Group(ctx context.Context, ttl time.Duration, names []string) (Group, error)
	}

	// A Group is leases of one session.
	Group interface {
		Renew(ctx context.Context) error
		Close(ctx context.Context) error
	}

	// A Filler acquires many leases as fast as it can, for the sake of there being many. Their names
	// are the prefix and a number. They end by themselves at a time.
	Filler interface {
		Fill(ctx context.Context, prefix string, from, to int, until time.Time) error
	}

	// A Keeper holds sessions that the library itself keeps alive. It returns how many of them were
	// lost so far.
	Keeper interface {
		Keep(ctx context.Context, n int, ttl time.Duration) (lost func() int, err error)
	}

	// A Counter counts the leases that a [Filler] made, where the server itself counts others.
	Counter interface {
		Count(ctx context.Context) (int, error)
	}

	// A Watcher is told of each [Watcher.Publish] with that name, in their order. Watch returns when ctx
	// ends.
	Watcher interface {
		Watch(ctx context.Context, name string, began, seen func()) error
		Publish(ctx context.Context, name string) error
	}
)

// A Server is a system that runs, on one or several nodes.
type Server struct {
	Kind      string
	Version   string
	Setup     string // what matters of its configuration
	Addresses []string
	Nodes     []*peer.Server

	etcd       []string         // where Leasehold has its port for clients of etcd
	consul     []string         // and for those of Consul
	kubernetes *peer.Kubernetes // if that is what it is

	// What follows is nil where it cannot be said.
	Leader func() *peer.Server
	Count  func(ctx context.Context) (int, error)     // the leases that there are
	Allocs func(ctx context.Context) (float64, error) // objects allocated since the start
	Speaks func() string                              // which wires it speaks
}

// Config says what is to be started.
type Config struct {
	Nodes  int
	Binary string // of leasehold
}

// starters start one kind of server each.
var starters = map[string]func(*stage.Stage, Config) *Server{
	"leasehold": startLeasehold, "redis": startRedis, "etcd": startEtcd,
	"zookeeper": startZooKeeper, "consul": startConsul, "postgres": startPostgres, "kubernetes": startKubernetes,
}

// clustered are the kinds that keep their promises on several nodes.
var clustered = []string{"leasehold", "etcd", "zookeeper", "consul"}

// Start starts a server. The error wraps [stage.ErrMissing] if it is not installed here.
func Start(on *stage.Stage, kind string, config Config) (server *Server, err error) {
	if config.Nodes > 1 && !slices.Contains(clustered, kind) {
		return nil, fmt.Errorf("%w: %s has no majority", stage.ErrMissing, kind)
	}
	err = on.Try(func() { server = starters[kind](on, config) })
	if server != nil {
		server.Kind = kind
	}
	return server, err
}

// Pids returns the processes of all nodes.
func (s *Server) Pids() (pids []int) {
	for _, n := range s.Nodes {
		pids = append(pids, n.Pids()...)
	}
	return pids
}

// first returns the addresses in the order in which a client asks them: each begins with another.
func (s *Server) first(d Dialing) []string {
	n := d.Index % len(s.Addresses)
	return slices.Concat(s.Addresses[n:], s.Addresses[:n])
}
