package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// A message is a request on its way, whatever its wire.
type message struct {
	verb string
	text string // all that it says
}

// A road is the way between a client and its server, on which things happen. It carries the wire that the suite runs
// over: over RESP, watches and what else has no command go by HTTP, on the same road.
type road struct {
	server *leasetest.Server
	plain  http.RoundTripper
	under  sync.WaitGroup // what is under way

	mu       sync.Mutex // guards what follows
	before   func(verb string)
	after    func(verb string) error // an error loses the reply
	refuse   func(m message) string  // a problem is answered instead of the server
	keep     func(m message) time.Duration
	answered func(verb string, granted bool)
	watch    http.RoundTripper // carries watches; nil: the road itself
	dead     string            // a host that is never reached
	without  []string          // fields that replies lose
	seen     []string
}

// overHTTP reports whether the suite runs over HTTP.
func overHTTP(s *leasetest.Server) bool { return s.Config().Wire == v1.WireHTTP }

// on puts a road between the clients that are dialled with it and the server.
func on(t *testing.T, s *leasetest.Server) (*road, func(*client.Config)) {
	r := &road{server: s, plain: s.HTTP().Transport}
	t.Cleanup(r.under.Wait)
	return r, func(c *client.Config) {
		c.HTTP, c.Dial, c.Wire = &http.Client{Transport: r}, r.dial, v1.WireRESP
		if overHTTP(s) {
			c.Wire = v1.WireHTTP
		}
	}
}

// verbOf names a message by HTTP.
func verbOf(r *http.Request) string {
	verb := strings.TrimPrefix(r.URL.Path, "/v1/")
	switch {
	case verb == "sessions":
		return "open"
	case verb == "renew":
		return "look"
	case strings.HasPrefix(verb, "sessions/") && strings.HasSuffix(verb, "/renew"):
		return "renew"
	case strings.HasPrefix(verb, "sessions/"):
		return "close"
	}
	return verb
}

// messageOf reads a message by HTTP, which can be sent afterwards.
func messageOf(r *http.Request) (message, error) {
	m := message{verbOf(r), r.URL.RawQuery}
	if r.Body == nil {
		return m, nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.text += string(body)
	return m, err
}

// hooks returns what happens to messages now, and counts one.
func (r *road) hooks(m message) *road {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, m.verb)
	return &road{
		before: r.before, after: r.after, refuse: r.refuse, keep: r.keep, answered: r.answered,
		watch: r.watch, dead: r.dead, without: r.without,
	}
}

func (r *road) RoundTrip(request *http.Request) (*http.Response, error) {
	m, err := messageOf(request)
	if err != nil {
		return nil, err
	}
	now := r.hooks(m)
	switch {
	case now.dead != "" && request.URL.Host == now.dead:
		<-request.Context().Done()
		return nil, request.Context().Err()
	case m.verb == "watch" && now.watch != nil:
		return now.watch.RoundTrip(request)
	}
	if now.before != nil {
		now.before(m.verb)
	}
	if now.refuse != nil {
		if problem := now.refuse(m); problem != "" {
			return refused(request, problem), nil
		}
	}
	if now.keep != nil {
		if by := now.keep(m); by > 0 {
			return r.later(request, by, func(granted bool) { now.answered(m.verb, granted) })
		}
	}
	response, err := r.plain.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	return now.arrive(m, response)
}

// arrive brings a response to the client.
func (r *road) arrive(m message, response *http.Response) (*http.Response, error) {
	if len(r.without) > 0 && response.StatusCode == http.StatusOK {
		if err := drop(response, r.without); err != nil {
			return nil, err
		}
	}
	if r.after == nil {
		return response, nil
	}
	if failure := r.after(m.verb); failure != nil {
		// The server did it, and nobody hears of it.
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return nil, failure
	}
	return response, nil
}

func refused(r *http.Request, problem string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusTooManyRequests, Header: http.Header{"Content-Type": {"application/problem+json"}},
		Body: io.NopCloser(strings.NewReader(problem)), Request: r,
	}
}

// drop takes fields out of an answer.
func drop(response *http.Response, fields []string) error {
	defer response.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	for _, f := range fields {
		delete(answer, f)
	}
	body, err := json.Marshal(answer)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return err
}

// later delivers a request after a while, also if nobody waits for the answer any more.
func (r *road) later(request *http.Request, by time.Duration, answered func(granted bool)) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(request.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	late := request.Clone(context.Background())
	late.Body = io.NopCloser(bytes.NewReader(body))
	time.AfterFunc(by, func() {
		response, err := r.plain.RoundTrip(late)
		if err == nil {
			_ = response.Body.Close()
		}
		answered(err == nil && response.StatusCode == http.StatusOK)
	})
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func (r *road) CloseIdleConnections() { r.plain.(*http.Transport).CloseIdleConnections() }

func (r *road) set(before func(string), after func(string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.after = before, after
}

// change changes what happens on the road.
func (r *road) change(how func(r *road)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how(r)
}

func (r *road) count(verb string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, seen := range r.seen {
		if seen == verb {
			n++
		}
	}
	return n
}

// A carrier carries requests by HTTP.
type carrier func(r *http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// onDeaf puts a way to the server between that carries no watch.
func onDeaf(t *testing.T, s *leasetest.Server) (*road, func(*client.Config)) {
	r, way := on(t, s)
	r.watch = carrier(func(*http.Request) (*http.Response, error) { return nil, errors.New("no streams here") })
	return r, way
}

// limited is the problem of a server that does not want to.
func limited(detail string) string {
	return fmt.Sprintf(`{"status":429,"code":"limited","detail":%q}`, detail)
}

// once does something the first time that a verb comes by.
func once(verb string, what func()) func(string) {
	done := false
	var mu sync.Mutex
	return func(seen string) {
		mu.Lock()
		now := seen == verb && !done
		done = done || now
		mu.Unlock()
		if now {
			what()
		}
	}
}

var errCut = errors.New("the cable was cut")

// losing loses the first replies to a verb.
func losing(verb string, replies int) func(string) error {
	var mu sync.Mutex
	return func(seen string) error {
		mu.Lock()
		defer mu.Unlock()
		if seen == verb && replies > 0 {
			replies--
			return errCut
		}
		return nil
	}
}
