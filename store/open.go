package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold/leasehold"
)

// Settings are what every store needs beside its URL.
type Settings struct {
	Namespace string       // empty: leasehold.DefaultNamespace
	Log       *slog.Logger // for what an operator should know, such as a step of the store's clock; nil: no log
	Clock     Clock        // nil: SystemClock; for tests
}

// An Opener opens a store by its URL. What it needs beside host and credentials is in the query of
// the URL, and an unknown parameter is an error. It returns once the store has answered.
type Opener func(ctx context.Context, u *url.URL, s Settings) (Store, error)

var (
	mu      sync.Mutex // guards what follows
	openers = map[string]Opener{}
)

// imports are the packages that register the known schemes.
var imports = map[string]string{
	"memory": "memory",
	"redis":  "redis", "rediss": "redis", "redis+sentinel": "redis", "redis+cluster": "redis",
	"postgres": "postgres", "postgresql": "postgres",
	"etcd": "etcd", "etcds": "etcd",
	"consul": "consul", "consuls": "consul",
	"kubernetes": "kubernetes",
	"azblob":     "azblob",
	"zookeeper":  "zookeeper",
}

// Register gives a store a URL scheme. Stores call it when they are imported. It panics if the
// scheme is taken.
func Register(scheme string, open Opener) {
	mu.Lock()
	defer mu.Unlock()
	if openers[scheme] != nil {
		panic("leasehold: two stores have the scheme " + scheme)
	}
	openers[scheme] = open
}

// Schemes returns the schemes that can be opened, sorted.
func Schemes() []string {
	mu.Lock()
	defer mu.Unlock()
	var schemes []string
	for scheme := range openers {
		schemes = append(schemes, scheme)
	}
	slices.Sort(schemes)
	return schemes
}

// ErrLimit is the cause of a context that ended because one attempt took too long: the store may be
// unreachable by its present connections, and should try others next time.
var ErrLimit = errors.New("no answer within the time of one attempt")

// Names reports whether an address names a store, by a scheme that is not that of a Leasehold server.
func Names(address string) bool {
	scheme, _, found := strings.Cut(address, ":")
	scheme = strings.ToLower(scheme)
	mu.Lock()
	defer mu.Unlock()
	return found && (openers[scheme] != nil || imports[scheme] != "")
}

// Redact returns an address without its passwords, for output and logs. They are in the user part of a
// URL, or in parameters such as sentinel-password. The address may be wrong, or several with commas.
func Redact(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		if strings.ContainsAny(address, "@?") {
			return "(not a URL)"
		}
		return address
	}
	parameters := strings.Split(u.RawQuery, "&")
	for i, parameter := range parameters {
		name, _, _ := strings.Cut(parameter, "=")
		plain, err := url.QueryUnescape(parameter)
		if err != nil || secret.MatchString(plain) {
			parameters[i] = name + "=xxxxx"
		}
	}
	u.RawQuery = strings.Join(parameters, "&")
	return furtherPassword.ReplaceAllString(u.Redacted(), "${1}xxxxx@")
}

// secret matches a parameter that has a secret: a password, Azure's signature, or another URL with a user,
// such as listen of PostgreSQL.
var secret = regexp.MustCompile(`(?i)^[^=]*password|^(sas|sig|secret)=|@`)

// furtherPassword is that of a second URL after a comma, which belongs to the path of the first.
var furtherPassword = regexp.MustCompile(`(//[^/@:]*:)[^/@]+@`)

// Open opens the store that a URL names. Its package must be imported.
func Open(ctx context.Context, address string, s Settings) (Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		// Without the address, which may have a password.
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: "the address of the store is not a URL: " +
			"percent-encode special characters in the user and the password, such as %40 for @"}
	}
	mu.Lock()
	open := openers[u.Scheme]
	mu.Unlock()
	switch {
	case open == nil:
		return nil, unknownScheme(u.Scheme)
	case u.Opaque != "":
		// Such as redis:host:6379, whose host the stores would not find and replace by a default.
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
			"the address of the store has no slashes: write it as %s://…", u.Scheme)}
	}
	if s.Namespace == "" {
		s.Namespace = leasehold.DefaultNamespace
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Clock == nil {
		s.Clock = SystemClock()
	}
	return open(ctx, u, s)
}

func unknownScheme(scheme string) error {
	message := fmt.Sprintf("there is no store for %q: known are %s", scheme, strings.Join(Schemes(), ", "))
	if path := imports[scheme]; path != "" {
		message = fmt.Sprintf("the store for %s is not part of this program: import _ %q, or run make build for the "+
			"command line with all stores", scheme, "github.com/leasehold/leasehold/store/"+path)
	}
	return &leasehold.Error{Code: leasehold.Invalid, Message: message}
}
