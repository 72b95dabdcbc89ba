package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// DefaultPrefix is the prefix of all keys if the configuration names none.
const DefaultPrefix = "/leasehold"

// defaultMinTTL is what etcd makes of shorter TTLs with its own default of the election timeout.
const defaultMinTTL = 2 * time.Second

// Config says how to reach an etcd. Either Client or Endpoints is set.
type Config struct {
	Client *clientv3.Client // Close leaves it open

	Endpoints []string // such as http://host:2379
	TLS       *tls.Config
	Username  string
	Password  string

	Prefix    string // of all keys; empty: DefaultPrefix
	Namespace string // empty: leasehold.DefaultNamespace
	Log       *slog.Logger
	Clock     store.Clock // nil: store.SystemClock; for tests
}

// A Store keeps leases in etcd.
type Store struct {
	client    *clientv3.Client
	own       bool           // Close closes client
	leases    pb.LeaseClient // for what the driver hides: when a renewal was sent
	keys      keys
	pool      *pool
	marks     *marks
	ends      ends
	namespace string
	minTTL    time.Duration
	log       *slog.Logger

	closing sync.Once
	closed  atomic.Bool
}

func init() {
	store.Register("etcd", open)
	store.Register("etcds", open)
}

// Open connects to an etcd. It returns once the etcd has answered.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Clock == nil {
		c.Clock = store.SystemClock()
	}
	s := &Store{client: c.Client, namespace: c.Namespace, log: c.Log, pool: newPool(c.Clock)}
	if s.namespace == "" {
		s.namespace = leasehold.DefaultNamespace
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	s.ends.carry = s.end
	s.keys = newKeys(c.Prefix, s.namespace)
	if s.client == nil {
		client, err := dial(ctx, c)
		if err != nil {
			return nil, s.unopened(err, c.Endpoints)
		}
		s.client, s.own = client, true
	}
	s.leases = clientv3.RetryLeaseClient(s.client)
	s.marks = newMarks(s.client)
	if err := s.learn(ctx); err != nil {
		_ = s.Close()
		return nil, s.unopened(err, s.client.Endpoints())
	}
	return s, nil
}

// openTime is how long an etcd may take for its first answer. The driver would dial for ever.
const openTime = 5 * time.Second

func dial(ctx context.Context, c Config) (*clientv3.Client, error) {
	timeout := openTime
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(deadline), time.Millisecond))
	}
	return clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, TLS: c.TLS, Username: c.Username, Password: c.Password,
		DialTimeout: timeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		Logger: zap.NewNop(),
	})
}

// learn asks etcd for the shortest TTL. It raises shorter ones without a word, so a lease of one
// second is asked for; it ends by itself. A full database does not grant it, but can still be read.
func (s *Store) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	s.minTTL = defaultMinTTL
	grant, err := s.client.Grant(ctx, 1)
	if err == nil {
		s.minTTL = time.Duration(grant.TTL) * time.Second
		return nil
	}
	if _, err := s.client.Get(ctx, s.keys.leases(), clientv3.WithKeysOnly(), clientv3.WithLimit(1)); err != nil {
		return err
	}
	return nil
}

// open opens the store that a URL names:
//
//	etcd[s]://[user:password@]host:port[,host:port…][/prefix][?ca=FILE&cert=FILE&key=FILE]
func open(ctx context.Context, u *url.URL, settings store.Settings) (store.Store, error) {
	c := Config{Namespace: settings.Namespace, Log: settings.Log, Clock: settings.Clock, Username: u.User.Username()}
	c.Password, _ = u.User.Password()
	if u.Path != "" && u.Path != "/" {
		c.Prefix = u.Path
	}
	scheme := "http://"
	if u.Scheme == "etcds" {
		scheme = "https://"
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if host == "" {
			return nil, invalid(
				"the address of etcd has an empty host: write it as etcd://host:2379,host:2379/prefix")
		}
		if !strings.Contains(host, ":") || strings.HasSuffix(host, "]") {
			host += ":2379"
		}
		c.Endpoints = append(c.Endpoints, scheme+host)
	}
	var err error
	if c.TLS, err = tlsOf(u); err != nil {
		return nil, err
	}
	return Open(ctx, c)
}

// parameters are what the query of a URL may have.
var parameters = []string{"ca", "cert", "key"}

// tlsOf reads the certificates that the address names. It is nil without TLS.
func tlsOf(u *url.URL) (*tls.Config, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, invalid("the query of etcd's address cannot be read")
	}
	for name := range query {
		if !slices.Contains(parameters, name) {
			return nil, invalid(
				"the address of etcd has the unknown parameter %q; known parameters: %s",
				name, strings.Join(parameters, ", "))
		}
	}
	if u.Scheme != "etcds" {
		if len(query) > 0 {
			return nil, invalid("certificates in the address of etcd need TLS: write etcds://")
		}
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := query.Get("ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, invalid("the CA of etcd cannot be read: %v", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, invalid("%s has no certificate in PEM form", file)
		}
	}
	if query.Has("cert") || query.Has("key") {
		pair, err := tls.LoadX509KeyPair(query.Get("cert"), query.Get("key"))
		if err != nil {
			return nil, invalid("the certificate for etcd cannot be read (cert and key are files in PEM form): %v", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Features says what etcd promises.
func (s *Store) Features() store.Features {
	return store.Features{
		Store:  "etcd",
		MinTTL: s.minTTL, MaxTTL: leasehold.MaxTTL, TTLStep: time.Second,
		Clock:      "etcd's leader; a failover or restart of etcd starts each TTL again",
		Durability: "an answered request survives as long as a majority of etcd's members keep their disks",
		Tokens: store.Tokens{
			Scope:   store.PerNamespace,
			Flush:   "no: a new cluster starts at revision 1",
			Restore: "only with etcdutl snapshot restore --bump-revision --mark-compacted",
		},
		Powers: []store.Power{store.WatchPower, store.FairQueue, store.ValueInLease, store.Detached},
	}
}

// Close ends the connections, unless the configuration had a client.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
		s.revokeIdle()
		if s.own {
			_ = s.client.Close() // it says that its context was cancelled, by itself
		}
	})
	return nil
}

// ready returns an error if the store is closed. The driver would try for a while.
func (s *Store) ready() error {
	if s.closed.Load() {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "the store is closed"}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}
