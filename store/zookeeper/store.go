package zookeeper

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// DefaultPrefix is the prefix of all paths if the configuration names none.
const DefaultPrefix = "/leasehold"

// Config says how to reach a ZooKeeper.
type Config struct {
	Servers  []string // such as host:2181
	User     string   // of the scheme "digest"; empty: nobody
	Password string
	Open     bool // also with a User, everybody may use what is created

	Prefix    string // of all paths; empty: DefaultPrefix
	Namespace string // empty: leasehold.DefaultNamespace
	Log       *slog.Logger
	Clock     store.Clock // nil: store.SystemClock; for tests
}

// A Store keeps leases in ZooKeeper.
type Store struct {
	servers        []string
	user, password string
	acl            []zk.ACL
	paths          paths
	namespace      string
	log            *slog.Logger
	clock          store.Clock
	minTTL, maxTTL time.Duration
	ids            keyed

	mu       sync.Mutex // guards what follows
	closed   bool
	sessions map[time.Duration]*session // for new leases
	all      map[*session]bool
	leases   map[string]*lease // and waiters, by id
	ended    map[string]*ending
	pruned   int // size of ended when the old ones were last dropped
	timer    *time.Timer
	wakes    time.Duration // when timer fires; 0: it does not
}

func init() { store.Register("zookeeper", open) }

// Open connects to a ZooKeeper. It returns once that has answered.
func Open(ctx context.Context, c Config) (*Store, error) {
	s := &Store{
		servers: zk.FormatServers(c.Servers), user: c.User, password: c.Password,
		acl: zk.WorldACL(zk.PermAll), namespace: c.Namespace, log: c.Log, clock: c.Clock,
		sessions: map[time.Duration]*session{}, all: map[*session]bool{}, leases: map[string]*lease{},
		ended: map[string]*ending{},
	}
	if len(s.servers) == 0 {
		return nil, invalid("no server of ZooKeeper is named")
	}
	if s.user != "" && !c.Open {
		s.acl = zk.AuthACL(zk.PermAll)
	}
	if s.namespace == "" {
		s.namespace = leasehold.DefaultNamespace
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = store.SystemClock()
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	s.paths = newPaths(c.Prefix, s.namespace)
	return s, s.learn(ctx)
}

// learn asks for the shortest and the longest timeout of a session. ZooKeeper accepts any, and answers
// with the one that it will use.
func (s *Store) learn(ctx context.Context) (err error) {
	for _, server := range s.servers {
		if s.minTTL, err = s.probe(ctx, server, time.Millisecond); err == nil {
			s.maxTTL, err = s.probe(ctx, server, leasehold.MaxTTL/2)
		}
		if err == nil {
			return nil
		}
	}
	return &leasehold.Error{Code: leasehold.Unavailable, Message: "ZooKeeper cannot be reached: " + err.Error()}
}

// patience is how long one of several members may take to make a session.
const patience = 3 * time.Second

// probe asks one server for a session. If there are others, it does not wait for long.
func (s *Store) probe(ctx context.Context, server string, timeout time.Duration) (time.Duration, error) {
	limit := 10 * time.Second
	if len(s.servers) > 1 {
		limit = patience
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return handshakeOf(ctx, server, timeout)
}

func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// handshakeOf makes a session and ends it. It returns the timeout that it had.
func handshakeOf(ctx context.Context, server string, timeout time.Duration) (time.Duration, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	// Length, version, last zxid, timeout, session, length of the password, password.
	hello := make([]byte, 4+44)
	binary.BigEndian.PutUint32(hello, 44)
	binary.BigEndian.PutUint32(hello[16:], uint32(timeout.Milliseconds()))
	binary.BigEndian.PutUint32(hello[28:], 16)
	if _, err := conn.Write(hello); err != nil {
		return 0, err
	}
	answer := make([]byte, 12) // length, version, timeout
	for n := 0; n < len(answer); {
		m, err := conn.Read(answer[n:])
		if err != nil {
			return 0, fmt.Errorf("%s does not serve as a member of a ZooKeeper: %w", server, err)
		}
		n += m
	}
	bye := []byte{0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5} // length, number, closeSession
	_, _ = conn.Write(bye)
	d := time.Duration(int32(be32(answer[8:]))) * time.Millisecond
	if d <= 0 {
		return 0, fmt.Errorf("%s gave a session of %v", server, d)
	}
	return d, nil
}

// open opens the store that a URL names:
//
//	zookeeper://[user:password@]host:port[,host:port…][/prefix][?acl=open]
func open(ctx context.Context, u *url.URL, settings store.Settings) (store.Store, error) {
	c := Config{Namespace: settings.Namespace, Log: settings.Log, Clock: settings.Clock, User: u.User.Username()}
	c.Password, _ = u.User.Password()
	if u.Path != "" && u.Path != "/" {
		c.Prefix = u.Path
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if host == "" {
			return nil, invalid("the address of ZooKeeper has an empty host: " +
				"write it as zookeeper://host:2181,host:2181/prefix")
		}
		c.Servers = append(c.Servers, host)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, invalid("the query of ZooKeeper's address cannot be read")
	}
	for name, values := range query {
		if name != "acl" {
			return nil, invalid("the address of ZooKeeper has the unknown parameter %q; known parameters: acl", name)
		}
		switch values[0] {
		case "open":
			c.Open = true
		case "creator":
		default:
			return nil, invalid("acl=%s in the address of ZooKeeper: allowed are open and creator", values[0])
		}
	}
	s, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Features says what ZooKeeper promises.
func (s *Store) Features() store.Features {
	return store.Features{
		Store:  "zookeeper",
		MinTTL: s.minTTL, MaxTTL: s.maxTTL, TTLStep: time.Millisecond,
		Clock:      "ZooKeeper's leader; a failover or restart of ZooKeeper starts each TTL again",
		Durability: "an answered request survives as long as a majority of ZooKeeper's members keep their disks",
		Tokens: store.Tokens{
			Scope:   store.PerNamespace,
			Flush:   "no: a new ensemble starts again",
			Restore: "no: an older copy starts again where it was",
		},
		Powers: []store.Power{store.FairQueue, store.ValueInLease},
	}
}

// Close ends the connections. Sessions that have leases are left alone: ZooKeeper ends them when
// their TTL is over.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	var all []*session
	for c := range s.all {
		all = append(all, c)
	}
	s.mu.Unlock()
	var ends sync.WaitGroup
	for _, c := range all {
		c.counting.Lock()
		used := c.leases > 0
		c.counting.Unlock()
		if used {
			c.giveUp()
		} else {
			ends.Go(c.giveUpUnlessReady)
		}
	}
	ends.Wait()
	return nil
}

// forget drops a session that is over.
func (s *Store) forget(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
	if s.sessions[c.ttl] == c {
		delete(s.sessions, c.ttl)
	}
}

var errClosed = &leasehold.Error{Code: leasehold.Unavailable, Message: "the store is closed"}

func (s *Store) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return context.Cause(ctx)
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

// run carries out what cannot be cancelled, because the driver has no contexts. The call ends with ctx,
// and what it does goes on until the driver answers.
func run[A any](ctx context.Context, call func(context.Context) (A, error)) (A, error) {
	type answer struct {
		a   A
		err error
	}
	done := make(chan answer, 1)
	go func() {
		a, err := call(ctx)
		done <- answer{a, err}
	}()
	select {
	case got := <-done:
		return got.a, got.err
	case <-ctx.Done():
		var none A
		return none, fmt.Errorf("ZooKeeper did not answer in time: %w", context.Cause(ctx))
	}
}

// keyed has a mutex for each key.
type keyed struct {
	mu    sync.Mutex // guards what follows
	locks map[string]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int
}

// lock returns what unlocks.
func (k *keyed) lock(key string) func() {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyLock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &keyLock{}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
}
