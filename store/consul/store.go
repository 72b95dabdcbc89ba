package consul

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// DefaultPrefix is the prefix of all keys if the configuration names none.
const DefaultPrefix = "leasehold"

// DefaultMinTTL is the shortest TTL that Consul allows unless session_ttl_min says otherwise.
const DefaultMinTTL = 10 * time.Second

const (
	maxTTL  = 12 * time.Hour // marks live longer, and have to be locked by sessions, too
	longest = 24 * time.Hour // that Consul allows for a session
)

// Config says how to reach a Consul.
type Config struct {
	Client *api.Client // nil: one by the environment, that is, CONSUL_HTTP_ADDR and so on

	Prefix    string        // of all keys; empty: DefaultPrefix
	Namespace string        // empty: leasehold.DefaultNamespace
	MinTTL    time.Duration // Consul's session_ttl_min; 0: DefaultMinTTL
	Log       *slog.Logger
	Clock     store.Clock // nil: store.SystemClock; for tests
}

// A Store keeps leases in Consul.
type Store struct {
	client    *api.Client
	keys      keys
	sessions  *sessions
	namespace string
	minTTL    time.Duration
	log       *slog.Logger

	hangUp  func() // closes the connections of a client that was made here; nil: it is the caller's
	closing sync.Once
	closed  atomic.Bool

	mu    sync.Mutex         // guards what follows
	bound map[string]session // by the id that holds with it
	many  int                // how many may be bound before the old ones are dropped
}

func init() {
	store.Register("consul", open)
	store.Register("consuls", open)
}

// Open returns a store once Consul has answered.
func Open(ctx context.Context, c Config) (*Store, error) {
	s := &Store{client: c.Client, namespace: c.Namespace, minTTL: c.MinTTL, log: c.Log,
		bound: map[string]session{}, many: idleMany}
	if s.client == nil {
		config := api.DefaultConfig()
		client, err := newClient(config)
		if err != nil {
			return nil, err
		}
		s.client, s.hangUp = client, config.Transport.CloseIdleConnections
	}
	if s.namespace == "" {
		s.namespace = leasehold.DefaultNamespace
	}
	if s.minTTL == 0 {
		s.minTTL = DefaultMinTTL
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = store.SystemClock()
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	s.keys, s.sessions = newKeys(c.Prefix, s.namespace), newSessions(s.client, c.Clock)
	// A denial is an answer, too: each request says what is missing.
	if _, err := s.get(ctx, s.keys.leases()); err != nil {
		if err = s.failure(err); !errors.Is(err, leasehold.ErrDenied) {
			return nil, err
		}
	}
	return s, nil
}

// parameters are what the query of a URL may have.
var parameters = []string{"ca", "cert", "key", "min_ttl", "dc"}

// open opens the store that a URL names:
//
//	consul[s]://[host:port][/prefix][?dc=NAME&min_ttl=10s&ca=FILE&cert=FILE&key=FILE]
//
// The ACL token comes from the environment, as for Consul's own programs.
func open(ctx context.Context, u *url.URL, settings store.Settings) (store.Store, error) {
	c := Config{Namespace: settings.Namespace, Log: settings.Log, Clock: settings.Clock,
		Prefix: strings.Trim(u.Path, "/")}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, invalid("the query of Consul's address cannot be read")
	}
	for name := range query {
		if !slices.Contains(parameters, name) {
			return nil, invalid("the address of Consul has the unknown parameter %q; known parameters: %s",
				name, strings.Join(parameters, ", "))
		}
	}
	if u.User != nil {
		return nil, invalid("the address of Consul has a user: put the ACL token in CONSUL_HTTP_TOKEN")
	}
	if text := query.Get("min_ttl"); text != "" {
		if c.MinTTL, err = time.ParseDuration(text); err != nil || c.MinTTL < time.Second {
			return nil, invalid("min_ttl is %q: it is a duration such as 10s, and at least 1s", text)
		}
	}
	config := api.DefaultConfig()
	config.Datacenter = query.Get("dc")
	if u.Host != "" {
		config.Address = u.Host
		if !strings.Contains(u.Host, ":") {
			config.Address += ":8500"
		}
	}
	if u.Scheme == "consuls" {
		config.Scheme = "https"
	} else if query.Has("ca") || query.Has("cert") || query.Has("key") {
		return nil, invalid("certificates in the address of Consul need TLS: write consuls://")
	}
	for parameter, field := range map[string]*string{
		"ca": &config.TLSConfig.CAFile, "cert": &config.TLSConfig.CertFile, "key": &config.TLSConfig.KeyFile,
	} {
		if file := query.Get(parameter); file != "" {
			if _, err := os.Stat(file); err != nil {
				return nil, invalid("the %s of Consul's address cannot be read: %v", parameter, err)
			}
			*field = file
		}
	}
	if c.Client, err = newClient(config); err != nil {
		return nil, err
	}
	s, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	s.hangUp = config.Transport.CloseIdleConnections
	return s, nil
}

// newClient returns a client that keeps as many connections as renewals need at the same time. The
// driver's default keeps one for each processor, and opens and closes the others for each request.
func newClient(config *api.Config) (*api.Client, error) {
	config.Transport.MaxIdleConnsPerHost = 2 * renewMany
	client, err := api.NewClient(config)
	if err != nil {
		return nil, invalid("the address or the environment of Consul cannot be used: %v", err)
	}
	return client, nil
}

// Features says what Consul promises.
func (s *Store) Features() store.Features {
	return store.Features{
		Store:  "consul",
		MinTTL: s.minTTL, MaxTTL: maxTTL,
		Clock: "Consul's leader, which frees a lease 2 × TTL after its last renewal; " +
			"a failover or restart of Consul starts that time again",
		Durability: "an answered request survives as long as a majority of Consul's servers keep their disks",
		Tokens: store.Tokens{
			Scope:   store.PerNamespace,
			Flush:   "no: a new cluster starts at index 1",
			Restore: "only in place, in the cluster that granted them",
		},
		Powers: []store.Power{store.ValueInLease, store.Detached},
	}
}

// How many idle sessions Close ends, and for how long it tries: the others end by themselves.
const (
	closeMany = 16
	closeTime = time.Second
)

// Close ends the sessions that are not used, and the connections.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		idle := s.sessions.drain()
		var all sync.WaitGroup
		for _, one := range idle[:min(closeMany, len(idle))] {
			all.Go(func() { s.sessions.destroy(ctx, one.id) })
		}
		all.Wait()
		if s.hangUp != nil {
			s.hangUp()
		}
	})
	return nil
}

func (s *Store) ready() error {
	if s.closed.Load() {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "the store is closed"}
	}
	return nil
}

// boundTo returns the session that an id holds with, if this process made or renewed it.
func (s *Store) boundTo(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.bound[id]
	return one, ok
}

// bind remembers the session of an id, for as long as it may live.
func (s *Store) bind(id string, one session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound[id] = one; len(s.bound) < s.many {
		return
	}
	for id, one := range s.bound {
		if s.sessions.age(one) > 2*one.ttl {
			delete(s.bound, id)
		}
	}
	s.many = max(idleMany, 2*len(s.bound))
}

// unbind forgets the session of an id. It becomes idle if it is the one whose key was deleted by this process.
func (s *Store) unbind(id, freed string) {
	s.mu.Lock()
	one, ok := s.bound[id]
	delete(s.bound, id)
	s.mu.Unlock()
	if ok && one.id == freed {
		s.sessions.put(one)
	}
}

// get reads keys at one moment, from the leader, which asks the others whether it still is. A key that
// does not exist is nil.
func (s *Store) get(ctx context.Context, names ...string) ([]*api.KVPair, error) {
	var ops api.KVTxnOps
	for _, name := range names {
		ops = append(ops, &api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: name})
	}
	q := (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
	ok, answer, _, err := s.client.KV().Txn(ops, q)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, refusal(answer)
	}
	if len(answer.Results) != len(names) { // Consul leaves out what the token may not read
		return nil, api.StatusError{Code: http.StatusForbidden, Body: "Permission denied"}
	}
	for i, kv := range answer.Results {
		if kv.CreateIndex == 0 {
			answer.Results[i] = nil
		}
	}
	return answer.Results, nil
}

// do carries out a transaction. It returns the keys that were written, and ok is false if a condition
// was not met.
func (s *Store) do(ctx context.Context, ops api.KVTxnOps) (written map[string]*api.KVPair, ok bool, err error) {
	ok, answer, _, err := s.client.KV().Txn(ops, new(api.QueryOptions).WithContext(ctx))
	if err != nil {
		return nil, false, err
	}
	if !ok {
		if err := refusal(answer); gone(err) || strings.Contains(err.Error(), "Permission denied") {
			return nil, false, err
		}
		return nil, false, nil
	}
	written = map[string]*api.KVPair{}
	for _, kv := range answer.Results {
		written[kv.Key] = kv
	}
	return written, true, nil
}

// refusal returns why a transaction was not carried out.
func refusal(answer *api.KVTxnResponse) error {
	var why []string
	for _, e := range answer.Errors {
		why = append(why, e.What)
	}
	text := strings.Join(why, "; ")
	if strings.Contains(text, "Permission denied") {
		return api.StatusError{Code: http.StatusForbidden, Body: text}
	}
	return fmt.Errorf("consul refused the transaction: %s", text)
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}
