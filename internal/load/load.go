// Package load puts a server under load and measures what a client sees. It knows
// nothing but the public API, so that what it measures is what anybody would get.
//
// The loop is closed: each client sends its next request when it has the answer to
// the last one. When the server stalls, so do the clients, and the requests that
// would have come meanwhile are not counted as slow. The figures tell how fast a
// server can go and how long its answers take at that rate; they do not tell how
// long strangers wait who arrive at a rate of their own.
package load

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Limits of one run. Beyond them one machine measures itself.
const (
	MaxClients  = 4096
	MaxLeases   = 1000000
	MaxDuration = 24 * time.Hour
)

// The operations that can be measured.
const (
	Cycle    = "cycle"    // acquire and release, as one
	Renew    = "renew"    // one renewal
	Handover = "handover" // from the release being sent to the next holder having its grant
)

// Operations are all of them, in the order in which they are run.
var Operations = []string{Cycle, Renew, Handover}

// ttl is that of every lease. It is short, so that what a killed run leaves behind is soon gone.
const ttl = 30 * time.Second

// A Config says where the load goes and how much of it there is.
type Config struct {
	Servers   []string    // the clients are spread over them
	TLS       *tls.Config // for servers with https; nil: what this machine trusts
	Token     v1.TokenFunc
	Insecure  bool // the token is sent also without TLS
	Namespace string
	Holder    string        // who holds the leases; the number of the client is added
	Clients   int           // each with one connection
	Leases    int           // shared among the clients; 0: as many as suit the operation
	WarmUp    time.Duration // before anything is counted
	Duration  time.Duration // of the measurement
	Watchers  int           // in watch: how many there are
	EventRate int           // in watch: how many events happen in a second
	Timeout   time.Duration // of one request; 0: 15s

	// Progress, if set, is told how it goes, Every so often (0: once a second).
	Progress func(Progress)
	Every    time.Duration
}

// Check reports what is wrong with a config for an operation.
func (c Config) Check(operation string) error {
	switch {
	case c.Clients < 1 || c.Clients > MaxClients:
		return refuse("there can be 1 to %d clients, not %d", MaxClients, c.Clients)
	case c.Leases < 0 || c.Leases > MaxLeases:
		return refuse("there can be 1 to %d leases, not %d", MaxLeases, c.Leases)
	case c.Duration <= 0 || c.Duration > MaxDuration:
		return refuse("a measurement lasts more than 0s and at most %v, not %v",
			v1.Duration(MaxDuration), v1.Duration(c.Duration))
	case c.WarmUp < 0 || c.WarmUp > MaxDuration:
		return refuse("a warm-up lasts at most %v, not %v", v1.Duration(MaxDuration), v1.Duration(c.WarmUp))
	case operation == Handover && c.Clients < 2:
		return refuse("one client cannot hand over to itself: %s needs 2 clients or more", operation)
	case operation == Watch:
		return c.checkWatch()
	case operation != Handover && c.Leases > 0 && c.Leases < c.Clients:
		return refuse("%d leases are too few for %d clients: in %s each has at least one of its own",
			c.Leases, c.Clients, operation)
	}
	return nil
}

func refuse(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

// leases returns how many leases an operation uses. In a hand-over that is the number of contended
// resources: with more than half as many as there are clients, nobody would wait.
func (c Config) leases(operation string) int {
	if operation == Handover {
		most := c.Clients / 2
		return min(cmp.Or(c.Leases, most), most)
	}
	return cmp.Or(c.Leases, max(1000, c.Clients))
}

// Progress is how far a run has come.
type Progress struct {
	Operation string
	Phase     Phase
	Elapsed   time.Duration // of the measurement
	Done, Of  int           // while acquiring and releasing
	Figures                 // while measuring: so far
}

// A Phase is a part of a run.
type Phase int

// The phases, in their order. Only some operations have leases to acquire before
// and to release afterwards.
const (
	Acquiring Phase = iota
	WarmingUp
	Measuring
	Releasing
)

// Figures are what was measured.
type Figures struct {
	Count                    uint64
	Rate                     float64 // a second
	P50, P90, P99, P999, Max time.Duration
	Errors                   uint64
}

// A Result is the outcome of one operation.
type Result struct {
	Operation string
	Leases    int           // that there were
	Measured  time.Duration // less than was asked for if somebody ended it early
	Figures
	First error // the first of the errors, nil if there were none
	Left  int   // leases that could not be released and end by themselves
	Lost  int64 // in watch: events that did not arrive
}

// A Runner has clients, and runs one operation after the other with them.
type Runner struct {
	config  Config
	prefix  string
	clients []*v1.Caller
}

// New returns a runner. It does not connect.
func New(config Config) (*Runner, error) {
	config.Timeout = cmp.Or(config.Timeout, 15*time.Second)
	config.Every = cmp.Or(config.Every, time.Second)
	r := &Runner{config: config, prefix: "bench/" + strings.ToLower(rand.Text()[:8]) + "/"}
	for i := range config.Clients {
		c, err := v1.NewCaller(v1.CallerConfig{
			Servers: config.serversFor(i), Namespace: config.Namespace, Timeout: config.Timeout,
			Client: oneConnection(config.TLS), Token: config.Token, Insecure: config.Insecure,
		})
		if err != nil {
			return nil, err
		}
		r.clients = append(r.clients, c)
	}
	return r, nil
}

// serversFor returns all servers in the order in which a client asks them. Each client begins with
// another one, so that the load is spread.
func (c Config) serversFor(client int) []string {
	if len(c.Servers) == 0 {
		return nil
	}
	first := client % len(c.Servers)
	return slices.Concat(c.Servers[first:], c.Servers[:first])
}

// oneConnection returns an HTTP client with a single connection, as a real client on another
// machine would have; a shared pool would multiplex them all over a few connections. It follows no
// redirects, which would send the load to a server that nobody named.
func oneConnection(config *tls.Config) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second,
			TLSClientConfig: config, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Prefix returns what the names of all its resources begin with. It differs for each runner, so
// that two runs do not disturb each other and none touches real leases.
func (r *Runner) Prefix() string { return r.prefix }

// Close closes the connections.
func (r *Runner) Close() {
	for _, c := range r.clients {
		c.CloseIdle()
	}
}

// Reach asks the server for something harmless, so that a wrong address is one error and not a
// thousand.
func (r *Runner) Reach(ctx context.Context) error {
	_, err := r.clients[0].Version(ctx)
	return err
}

// A worker is one client in one operation.
type worker interface {
	// prepare acquires what the operation needs before it begins.
	prepare(ctx context.Context) error
	// step does the operation once. It takes back what it could not finish.
	step(ctx context.Context) (sample, error)
	// clear releases what prepare acquired and returns how many it could not.
	clear(ctx context.Context) int
}

// A sample is one measured operation; the zero sample is none.
type sample struct {
	began time.Time
	took  time.Duration
}

// Run measures one operation until its time is over or the context ends, and
// leaves nothing behind. Errors are part of the result.
func (r *Runner) Run(ctx context.Context, operation string) Result {
	if operation == Watch {
		return r.watch(ctx)
	}
	run := r.begin(ctx, operation)
	stopReports := r.config.reportProgress(run.progress)
	run.prepare(ctx)
	run.measure(ctx)
	run.clear()
	stopReports()
	return run.result()
}

// begin makes the workers of an operation.
func (r *Runner) begin(ctx context.Context, operation string) *run {
	run := &run{
		config: r.config, operation: operation, leases: r.config.leases(operation),
		ctx: context.WithoutCancel(ctx), stop: make(chan struct{}),
	}
	groups := make([]group, run.leases)
	for i, caller := range r.clients {
		c := client{
			Caller: caller, run: run, holder: fmt.Sprintf("%s/%d", r.config.Holder, i),
			resource: r.prefix + operation + "/",
			name:     fmt.Sprintf("%s%s/%d", r.prefix, operation, i),
		}
		var w worker
		switch operation {
		case Cycle:
			w = &cycler{client: c, mine: share(run.leases, len(r.clients), i)}
		case Renew:
			longer := time.Duration(run.leases) * time.Millisecond // one round of renewals takes longer, too
			w = &renewer{client: c, mine: share(run.leases, len(r.clients), i), ttl: ttl + longer}
		case Handover:
			w = &taker{client: c, group: &groups[i%run.leases], contended: i % run.leases}
		default:
			panic("there is no operation " + operation)
		}
		run.workers = append(run.workers, w)
		run.tallies = append(run.tallies, &tally{})
	}
	return run
}

// share returns which of n things belong to one of the clients.
func share(n, clients, client int) (mine []int) {
	for i := client; i < n; i += clients {
		mine = append(mine, i)
	}
	return mine
}

// A client is what the workers of all operations have.
type client struct {
	*v1.Caller
	run      *run
	holder   string
	resource string // its prefix
	name     string // of the client; ids begin with it
	ids      int
}

// newID returns a new lease id. The client proposes it, so that it can release a lease even if it
// got no answer to the acquire.
func (c *client) newID() string {
	c.ids++
	return fmt.Sprintf("%s/%d", c.name, c.ids)
}

func (c *client) request(resource int, id string) v1.AcquireRequest {
	return v1.AcquireRequest{
		Resource: fmt.Sprintf("%s%d", c.resource, resource), Holder: c.holder, ID: id,
		TTL: v1.TTL{Duration: v1.Duration(ttl)},
	}
}

// drop releases a lease, or withdraws the request for one, that may be there. Errors do not matter:
// the lease ends by its TTL.
func (c *client) drop(id string) {
	ctx, cancel := context.WithTimeout(c.run.ctx, 2*time.Second)
	defer cancel()
	_ = c.Release(ctx, v1.ReleaseRequest{ID: id})
}

// isNone reports whether there was nothing to release.
func isNone(err error) bool {
	return errors.Is(err, leasehold.ErrNotFound) || errors.Is(err, leasehold.ErrLost)
}

// A tally is what one client has counted. Its lock is for the progress reports, which read it
// meanwhile.
type tally struct {
	mu     sync.Mutex
	times  Histogram
	errors uint64
}
