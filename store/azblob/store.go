package azblob

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Config says which container to use. It is created if it does not exist.
type Config struct {
	// Container is a client that does not repeat requests (see ClientOptions): a repeated write would
	// find that somebody has written, which was itself.
	Container *container.Client

	Prefix    string // of all blobs
	Namespace string // empty: leasehold.DefaultNamespace
	Log       *slog.Logger
	Clock     store.Clock // nil: store.SystemClock; for tests
}

// ClientOptions are the options of a container's client for Config.
func ClientOptions() *container.ClientOptions {
	return &container.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
}

// A Store keeps leases in Azure Blob Storage.
type Store struct {
	container *container.Client
	names     names
	namespace string
	log       *slog.Logger
	clock     store.Clock
	ids       keyed

	mu     sync.Mutex // guards what follows
	closed bool
	leases map[string]*lease // that this process asked for, by id, also those that have ended
	pruned int               // size of leases when the old ones were last dropped
	marked uint              // marks that were written
}

func init() { store.Register("azblob", open) }

// Open opens a container. It returns once Azure has answered.
func Open(ctx context.Context, c Config) (*Store, error) {
	s := &Store{container: c.Container, namespace: c.Namespace, log: c.Log, clock: c.Clock,
		leases: map[string]*lease{}}
	if s.namespace == "" {
		s.namespace = leasehold.DefaultNamespace
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = store.SystemClock()
	}
	s.names = newNames(c.Prefix, s.namespace)
	// A look at a mark needs the permission that all verbs need. It usually finds none.
	_, err := s.markOf(ctx, "open")
	if bloberror.HasCode(err, bloberror.ContainerNotFound) {
		if _, err = s.container.Create(ctx, nil); bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
			err = nil
		}
	}
	if err != nil {
		return nil, s.failure(err)
	}
	return s, nil
}

// parameters are what the query of a URL may have.
var parameters = []string{"http", "path-style", "sas"}

// open opens the store that a URL names:
//
//	azblob://[account:key@]host/container[/prefix][?sas=TOKEN][&http=true][&path-style=true]
func open(ctx context.Context, u *url.URL, settings store.Settings) (store.Store, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, invalid("the query of the address of Azure cannot be read")
	}
	for name := range query {
		if !slices.Contains(parameters, name) {
			return nil, invalid("the address of Azure has the unknown parameter %q; known parameters: %s", name,
				strings.Join(parameters, ", "))
		}
	}
	name, prefix, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if u.Host == "" || name == "" {
		return nil, invalid("the address of Azure names no host or no container: " +
			"write it as azblob://account:key@account.blob.core.windows.net/container")
	}
	client, err := dial(u, query, name)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, Config{Container: client, Prefix: prefix, Namespace: settings.Namespace, Log: settings.Log,
		Clock: settings.Clock})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// dial makes a client for a container, by a key, a shared access signature, or neither.
func dial(u *url.URL, query url.Values, name string) (*container.Client, error) {
	flags := map[string]bool{}
	for _, flag := range []string{"http", "path-style"} {
		switch query.Get(flag) {
		case "true":
			flags[flag] = true
		case "", "false":
		default:
			return nil, invalid("%s in the address of Azure: allowed are true and false", flag)
		}
	}
	where := url.URL{Scheme: "https", Host: u.Host, Path: "/" + name}
	if flags["http"] {
		where.Scheme = "http"
	}
	account, key := u.User.Username(), ""
	if u.User != nil {
		key, _ = u.User.Password()
	}
	if flags["path-style"] {
		where.Path = "/" + account + where.Path
	}
	if key == "" {
		where.RawQuery = strings.TrimPrefix(query.Get("sas"), "?")
		client, err := container.NewClientWithNoCredential(where.String(), ClientOptions())
		if err != nil {
			return nil, invalid("the address of Azure is not usable")
		}
		return client, nil
	}
	credential, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, invalid("the key in the address of Azure is not base64: write + as %%2B and / as %%2F")
	}
	client, err := container.NewClientWithSharedKeyCredential(where.String(), credential, ClientOptions())
	if err != nil {
		return nil, invalid("the address of Azure is not usable")
	}
	return client, nil
}

// minTTL is that of Azure's shortest lease.
const minTTL = 15 * time.Second

// Features says what Azure promises.
func (s *Store) Features() store.Features {
	return store.Features{
		Store:  "azblob",
		MinTTL: minTTL, MaxTTL: 60 * time.Second, TTLStep: time.Second,
		Clock:      "Azure's",
		Durability: "as that of the storage account: an answered request is on three disks or more",
		Tokens: store.Tokens{
			Scope:   store.PerResource,
			Restore: "no: an older copy of a blob has an older token",
		},
		Powers: []store.Power{store.ValueInLease, store.Detached},
	}
}

// Close ends nothing: requests have no connection of their own.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *Store) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "the store is closed"}
	}
	return context.Cause(ctx)
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

// keyed has a mutex for each key. It is a channel, so that those who wait for it can give up.
type keyed struct {
	mu    sync.Mutex // guards what follows
	locks map[string]*keyLock
}

type keyLock struct {
	held  chan struct{}
	users int
}

// lock returns what unlocks.
func (k *keyed) lock(ctx context.Context, key string) (func(), error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyLock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &keyLock{held: make(chan struct{}, 1)}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
