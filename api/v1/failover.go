package v1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/redial"
)

// Servers decides which of several servers is asked. All requests go to one of them for as long as
// it answers; a failed attempt makes the next one the server of all requests that follow. A Caller
// uses it, and so does package client, which has to know when each attempt was sent.
type Servers struct {
	all     []*Caller    // one for each server
	current atomic.Int64 // counts failovers; the remainder is the index in all
}

// NewServers returns the servers of a configuration. It does not connect.
func NewServers(config CallerConfig) (*Servers, error) {
	addresses := config.Servers
	if len(addresses) == 0 {
		addresses = []string{cmp.Or(config.Server, DefaultServer)}
	}
	client := config.Client
	if client == nil {
		client = redial.NewClient(config.TLS, config.Dial)
	}
	if err := config.Wire.check(); err != nil {
		return nil, err
	}
	s := &Servers{}
	for _, address := range addresses {
		complete, err := ServerURL(address, config.TLS != nil)
		if err != nil {
			return nil, &leasehold.Error{Code: leasehold.Invalid,
				Message: fmt.Sprintf("server %q is not an address: %v", withoutPassword(address), err)}
		}
		c := newCaller(config)
		c.endpoint = newEndpoint(complete, client, config.PingWithin)
		if c.endpoint.wire, err = newWire(c.endpoint, config); err != nil {
			return nil, err
		}
		if config.Token != nil {
			c.endpoint.client.CheckRedirect = redial.StayHere
		}
		s.all = append(s.all, c)
	}
	return s, nil
}

// withoutPassword returns an address for an error message, which ends up in logs.
func withoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}

// An endpoint is one server: where it is, the connections to it, and its feature level.
type endpoint struct {
	address     string // without a slash at its end
	client      http.Client
	connections *redial.Transport
	wire        *wire        // nil: it is asked by HTTP alone
	level       atomic.Int64 // as its last answer said
}

func newEndpoint(address string, client *http.Client, ttl time.Duration) *endpoint {
	e := &endpoint{address: address, client: *client, connections: redial.New(client.Transport, ttl)}
	e.client.Transport = e.connections
	return e
}

func (e *endpoint) closeIdle() {
	e.connections.CloseIdleConnections()
	if e.wire != nil {
		e.wire.pool.Retire()
	}
}

// A Choice is the server to ask now, as a Caller that asks no other.
type Choice struct {
	*Caller
	turn       int64
	at         time.Time // when it was chosen
	generation int       // of its connections then
}

// Choose returns the server to ask now. If it fails, Leave it.
func (s *Servers) Choose() Choice {
	turn := s.current.Load()
	c := s.all[int(turn%int64(len(s.all)))]
	return Choice{c, turn, time.Now(), c.endpoint.connections.Dialled()}
}

// Leave makes the next server the one to ask, unless somebody left this one already:
// a hundred requests that fail together skip one server, not a hundred.
func (s *Servers) Leave(c Choice) { s.current.CompareAndSwap(c.turn, c.turn+1) }

// LeaveSilent leaves a server that did not answer in time. Its connections may be dead: the next
// attempt at it uses new ones. Whether a connection is dead cannot be known from here; a new one
// costs little, and waiting for the old one would cost the next attempt too. If another request has
// redialled since the server was chosen, the fresh connections are left alone. So is a RESP connection on which
// anything came meanwhile: then the server or this process is too busy, and dialling would add to it.
func (s *Servers) LeaveSilent(c Choice) {
	s.Leave(c)
	c.endpoint.connections.Redial(c.generation)
	if c.endpoint.wire != nil {
		c.endpoint.wire.pool.RetireSilent(c.at)
	}
}

// Count returns the number of servers.
func (s *Servers) Count() int { return len(s.all) }

// Level returns the feature level that the server to ask now told last; 0 if it told none.
func (s *Servers) Level() int { return s.Choose().Level() }

// PingWithin makes connections be checked often enough for leases of a TTL: a dead one is
// closed in time to renew over another.
func (s *Servers) PingWithin(ttl time.Duration) {
	for _, c := range s.all {
		c.endpoint.connections.PingWithin(ttl)
		if c.endpoint.wire != nil {
			c.endpoint.wire.pingWithin(ttl)
		}
	}
}

// CloseIdle closes connections that are not in use.
func (s *Servers) CloseIdle() {
	for _, c := range s.all {
		c.endpoint.closeIdle()
	}
}

// A Send is one attempt at one server.
type Send func(ctx context.Context, server *Caller) error

// Transient reports whether another attempt may succeed: nothing happened, or no answer
// says whether it did.
func Transient(err error) bool {
	return errors.Is(err, leasehold.ErrUnavailable) || errors.Is(err, leasehold.ErrUndecided)
}

// Once makes a single attempt, which must be over within a time; 0 is no limit. After a
// transient failure the next attempt goes to another server.
func (s *Servers) Once(ctx context.Context, within time.Duration, send Send) error {
	chosen := s.Choose()
	limited, cancel := limit.Within(ctx, within)
	defer cancel()
	err := send(limited, chosen.Caller)
	switch {
	case !Transient(err):
	// If the caller's own context ended, nothing is known about the connection.
	case limited.Err() != nil && ctx.Err() == nil:
		s.LeaveSilent(chosen)
	default:
		s.Leave(chosen)
	}
	return err
}

// Retry sends an idempotent request until a server answers it, with yes or no, or ctx ends. It
// pauses after each round of all servers. Within a round it does not pause: another server is
// probably fine.
func (s *Servers) Retry(ctx context.Context, limit time.Duration, send Send) error {
	for n := 1; ; n++ {
		err := s.Once(ctx, limit, send)
		if !Transient(err) || ctx.Err() != nil || !s.Pause(ctx, n) {
			return err
		}
	}
}

// Pause pauses if the n-th attempt in a row was the last of a round of all servers. It
// reports whether ctx is still alive.
func (s *Servers) Pause(ctx context.Context, n int) bool {
	if n%len(s.all) != 0 {
		return ctx.Err() == nil
	}
	return Backoff{}.Sleep(ctx, n/len(s.all))
}

// Attempts says how a request may be sent to several servers.
type Attempts struct {
	Limit      time.Duration // of each attempt; 0: none
	Idempotent bool          // sent twice, it is carried out once
}

// Each sends a request to one server after another, each once, until one gives an answer that
// another could not improve. A request that may have been carried out goes to another server only
// if it is idempotent. Unlike Retry it gives up after one round, because a person waits for the
// error.
func (s *Servers) Each(ctx context.Context, a Attempts, send Send) error {
	var failures []failedAt
	for range s.all {
		var asked *Caller
		err := s.Once(ctx, a.Limit, func(ctx context.Context, server *Caller) error {
			asked = server
			return send(ctx, server)
		})
		if !Transient(err) || errors.Is(err, leasehold.ErrUndecided) && !a.Idempotent {
			return err
		}
		failures = append(failures, failedAt{asked.endpoint.address, err})
		if ctx.Err() != nil {
			break
		}
	}
	return joinFailures(failures)
}

// failedAt is how a request failed at one of several servers.
type failedAt struct {
	server string
	err    error
}

// joinFailures returns one error for all servers. It is Undecided if any of them may have
// carried out the request.
func joinFailures(failures []failedAt) error {
	if len(failures) == 1 {
		return failures[0].err
	}
	// Undecided is the weaker promise: if one server may have carried the request out, the caller
	// must not believe that nothing happened.
	code, verdict, texts := leasehold.Unavailable, "could be reached", []string(nil)
	for _, f := range failures {
		if errors.Is(f.err, leasehold.ErrUndecided) {
			code = leasehold.Undecided
		}
		// The advice at the end of a message is the same for each server.
		text, _, _ := strings.Cut(f.err.Error(), askWhether)
		if !strings.Contains(text, f.server) {
			text = f.server + " says: " + text // a server's own message does not name it
			verdict = "could do it"
		}
		texts = append(texts, text)
	}
	message := fmt.Sprintf("none of %d servers %s:\n  %s", len(failures), verdict, strings.Join(texts, "\n  "))
	return &failure{&leasehold.Error{Code: code, Message: message}, failures[len(failures)-1].err}
}
