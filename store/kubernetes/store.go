package kubernetes

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Config says how to reach an API server. Without Client, Server and Kubeconfig, the file that
// $KUBECONFIG names is used, or the service account of the pod, or ~/.kube/config.
type Config struct {
	// Client sends requests with credentials of its own, such as one made by client-go's
	// rest.HTTPClientFor. It needs Server. Close leaves its connections open.
	Client *http.Client

	Server    string // such as https://10.0.0.1:6443
	CAFile    string // of the server's certificate; empty: the system's CAs
	TokenFile string // has a bearer token; read again when it changes
	CertFile  string // has a client certificate, instead of a token
	KeyFile   string

	Kubeconfig string // the name of a file, instead of Server
	Context    string // in that file; empty: its current one

	KubernetesNamespace string // where the Leases are; empty: that of the context or the pod, or "default"

	Namespace string // of Leasehold; empty: leasehold.DefaultNamespace
	Log       *slog.Logger
	Clock     store.Clock // nil: store.SystemClock; for tests
}

// A Store keeps leases in the Lease objects of one namespace of Kubernetes.
type Store struct {
	client    *http.Client
	own       *line // its connections, if Close closes them
	server    string
	token     *token
	space     string // the namespace of Kubernetes
	namespace string // of Leasehold
	log       *slog.Logger
	watch     *observer

	// creates says that the last Lease this process knew nothing about did not exist. The next one probably does
	// not either, so it is created without a look. A process that finds Leases goes on looking.
	creates atomic.Bool

	ahead  atomic.Int64 // of the API server's clock before watch.clock, as it was shown last
	closed atomic.Bool
}

func init() { store.Register("kubernetes", open) }

// Open connects to an API server. It returns once that has answered.
func Open(ctx context.Context, c Config) (*Store, error) {
	target, err := c.target()
	if err != nil {
		return nil, err
	}
	s := &Store{
		client: c.Client, server: target.server, token: target.token, space: target.namespace,
		namespace: c.Namespace, log: c.Log,
	}
	if s.client == nil {
		s.own = newLine(target.transport)
		s.client = &http.Client{Transport: s.own}
	}
	if s.space == "" {
		s.space = "default"
	}
	if s.namespace == "" {
		s.namespace = leasehold.DefaultNamespace
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	clock := c.Clock
	if clock == nil {
		clock = store.SystemClock()
	}
	s.watch = newObserver(clock)
	s.ahead.Store(time.Now().UnixNano() - int64(clock.Now())) // until it is shown
	if _, err := s.send(ctx, http.MethodGet, "/version", nil, nil); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Features says what Kubernetes promises.
func (s *Store) Features() store.Features {
	return store.Features{
		Store:  "kubernetes",
		MinTTL: time.Second, MaxTTL: leasehold.MaxTTL, TTLStep: time.Second,
		Clock:      "that of each process which wants the lease: it watches for one TTL that nobody renews",
		Durability: "an answered request survives as long as a majority of Kubernetes' etcd members keep their disks",
		Tokens: store.Tokens{
			Scope:   store.PerResource,
			Delete:  "yes, unless a floor raised them above the resourceVersion",
			Flush:   "no: a new cluster starts at resourceVersion 1",
			Restore: "no",
		},
		Powers: []store.Power{store.ValueInLease, store.Detached},
	}
}

// Close ends the connections, unless the configuration had a client.
func (s *Store) Close() error {
	if !s.closed.Swap(true) && s.own != nil {
		s.own.CloseIdleConnections()
	}
	return nil
}

// ready returns an error if the store is closed.
func (s *Store) ready() error {
	if s.closed.Load() {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "the store is closed"}
	}
	return nil
}
