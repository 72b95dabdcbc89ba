package credential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/leasehold/leasehold/internal/core/access"
)

// When the keys of an issuer are fetched, and how long one that cannot be asked is believed.
const (
	fetchTime   = 5 * time.Second  // for discovery and keys together
	renewEvery  = 5 * time.Minute  // in the background, while its JWTs are used
	fetchPause  = 10 * time.Second // after a success, before a JWT by an unknown key lets them be fetched again
	firstPause  = time.Second      // after a failure; twice as long after the next one
	longPause   = time.Minute
	maxStale    = 24 * time.Hour // keys that cannot be fetched again are forgotten
	maxFetched  = 512 << 10      // bytes of an answer
	maxAwaiting = 64             // requests that wait for the keys of one issuer
)

// An issuer is one that the policy trusts, with its keys.
type issuer struct {
	*access.Issuer
	keys keySource
}

// source has the keys, and fetches them if need be.
func (i *issuer) source() keySource { return i.keys }

// keysOf returns the keys of an issuer that is the same in another policy.
func (k *known) keysOf(i *access.Issuer) keySource {
	for _, old := range k.issuers[i.URL] {
		if old.Keys == i.Keys {
			return old.keys
		}
	}
	return nil
}

func (l *Login) newKeys(i *access.Issuer) keySource {
	if i.Keys == "" {
		return &remote{name: i.Name, url: i.URL, client: l.client, now: l.config.Now, log: l.config.Log}
	}
	set, err := parseKeys(i.Keys)
	if err != nil {
		l.config.Log.Warn("no JWT of this issuer can be verified", "issuer", i.Name, "err", err)
	}
	return fixed{set}
}

// remote are keys that the issuer publishes. Each issuer has its own timeout and its own pauses, and nobody waits for
// the keys of another one.
type remote struct {
	name, url string
	client    *http.Client
	now       func() time.Time
	log       *slog.Logger

	set     atomic.Pointer[keySet]
	found   atomic.Pointer[places] // with the keys
	fetched atomic.Int64           // Unix nanoseconds

	mu       sync.Mutex // guards what follows
	flight   chan struct{}
	awaiting int
	next     time.Time // before which they are not fetched again
	failures int
	err      error // of the last fetch
}

// current also lets old keys be fetched again, for which nobody has to wait.
func (r *remote) current(now time.Time) *keySet {
	if r.age(now) > renewEvery {
		r.mu.Lock()
		r.start(now)
		r.mu.Unlock()
	}
	return r.believed(now)
}

func (r *remote) age(now time.Time) time.Duration { return now.Sub(time.Unix(0, r.fetched.Load())) }

// believed returns the keys, unless they were fetched too long ago.
func (r *remote) believed(now time.Time) *keySet {
	if r.age(now) > maxStale {
		return nil
	}
	return r.set.Load()
}

// verify looks for the key among those that are known, and if it is not there, once among those that the issuer
// publishes now.
func (r *remote) verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, *keySet, error) {
	set := r.current(r.now())
	if set != nil {
		if payload, ok := set.verify(jws); ok {
			return payload, set, nil
		}
	}
	err := r.fetch(ctx)
	if newer := r.believed(r.now()); newer != nil && newer != set {
		if payload, ok := newer.verify(jws); ok {
			return payload, newer, nil
		}
	}
	if err != nil {
		return nil, nil, &Refusal{Reason: Unreachable, Wait: firstPause, Message: "the keys of issuer " + r.name +
			" cannot be fetched: try again in a moment; if it lasts, the server's log says why"}
	}
	return nil, nil, errSignature
}

// fetch fetches the keys, unless that was done a moment ago, and waits for them. The error is that of the last fetch.
func (r *remote) fetch(ctx context.Context) error {
	r.mu.Lock()
	flight := r.start(r.now())
	if flight == nil || r.awaiting >= maxAwaiting {
		defer r.mu.Unlock()
		if flight != nil {
			return errors.New("too many wait")
		}
		return r.err
	}
	r.awaiting++
	r.mu.Unlock()
	var err error
	select {
	case <-flight:
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaiting--
	if err == nil {
		err = r.err
	}
	return err
}

// start lets the keys be fetched, unless that was done a moment ago: it then returns nil. The caller has the lock.
func (r *remote) start(now time.Time) chan struct{} {
	if r.flight == nil && !now.Before(r.next) {
		r.flight = make(chan struct{})
		go r.fly(r.flight)
	}
	return r.flight
}

func (r *remote) fly(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	set, at, err := r.ask(ctx)
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(done)
	r.flight, r.err = nil, err
	if err != nil {
		r.next = now.Add(min(firstPause<<min(r.failures, 10), longPause))
		r.failures++
		r.log.Warn("the keys of an issuer cannot be fetched", "issuer", r.name, "url", r.url, "failures", r.failures,
			"err", cut(err.Error()))
		return
	}
	r.next, r.failures = now.Add(fetchPause), 0
	r.fetched.Store(now.UnixNano())
	r.found.Store(at)
	if old := r.set.Load(); old == nil || old.text != set.text {
		r.set.Store(set) // what was verified by the old ones is verified again
	}
}

// places returns where the issuer signs people in. The error is a *Refusal.
func (r *remote) places(ctx context.Context) (*places, error) {
	if r.current(r.now()) == nil {
		_ = r.fetch(ctx) // what matters is whether there is something now
	}
	if at := r.found.Load(); at != nil && r.believed(r.now()) != nil {
		return at, nil
	}
	return nil, unanswered(r.name)
}

// ask finds out where the keys are and where people sign in, and fetches the keys.
func (r *remote) ask(ctx context.Context) (*keySet, *places, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, r.client), r.url)
	if err != nil {
		return nil, nil, err
	}
	var where struct {
		places
		URL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&where); err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.URL, nil)
	if err != nil {
		return nil, nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answers %s", where.URL, response.Status)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, err
	}
	set, err := parseKeys(string(text))
	return set, &where.places, err
}

// cut keeps what somebody else wrote short enough for the log.
func cut(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// careful returns a client that asks only over TLS, or this machine itself, and takes answers of a bounded size.
func careful(c *http.Client) *http.Client {
	own := &http.Client{Timeout: fetchTime}
	below := http.DefaultTransport
	if c != nil && c.Transport != nil {
		below = c.Transport
	}
	own.Transport = carefulTransport{below}
	return own
}

type carefulTransport struct{ below http.RoundTripper }

// RoundTrip sends a request, also one that another answer redirected to.
func (t carefulTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !safe(r.URL) {
		return nil, fmt.Errorf("%s is not asked: use https", r.URL.Redacted())
	}
	response, err := t.below.RoundTrip(r)
	if err == nil {
		response.Body = bounded{io.LimitReader(response.Body, maxFetched), response.Body}
	}
	return response, err
}

type bounded struct {
	io.Reader
	io.Closer
}

// safe reports whether nobody on the way can change what is asked or answered.
func safe(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && a.IsLoopback())
}
