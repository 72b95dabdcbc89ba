package v1

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
)

// A Caller sends requests to a server, or to one of several. Each method is one request:
// nothing is tried twice at a server, for only the caller knows whether it still wants it.
// The next server is asked when one can't be reached or can do nothing; what may have
// happened already is only sent to another one if that can't make it happen twice, such as
// an acquire with an id.
//
// An error is always a *leasehold.Error, possibly wrapped. Unavailable means that
// nothing happened; Undecided that the request was sent and the answer never came.
//
// Methods may be called from any goroutine.
type Caller struct {
	servers   []string     // without slashes at their ends
	current   atomic.Int64 // which of them is asked, counted on and on
	namespace string
	client    *http.Client
	timeout   time.Duration
	level     atomic.Int64 // as the last answer had it
}

// CallerConfig is what a Caller can be told. The zero value is the server on this
// machine and the default namespace.
type CallerConfig struct {
	Server    string        // its URL; empty: DefaultServer
	Servers   []string      // several, instead of Server
	Namespace string        // empty: the server's default
	Timeout   time.Duration // of one request to one server, besides what it waits; 0: 30s
	TLS       *tls.Config   // for servers with https; nil: what this machine trusts
	Client    *http.Client  // nil: one of its own. It must see to TLS itself
}

// NewCaller returns a caller. It does not connect.
func NewCaller(config CallerConfig) (*Caller, error) {
	servers := config.Servers
	if len(servers) == 0 {
		servers = []string{cmp.Or(config.Server, DefaultServer)}
	}
	c := &Caller{namespace: config.Namespace, client: config.Client, timeout: cmp.Or(config.Timeout, 30*time.Second)}
	for _, server := range servers {
		if err := checkAddress(server); err != nil {
			return nil, err
		}
		c.servers = append(c.servers, strings.TrimRight(server, "/"))
	}
	if c.client == nil {
		c.client = NewClient(config.TLS)
	}
	return c, nil
}

func checkAddress(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("server %q is not an address: write it as %s", server, DefaultServer)}
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("server %q has more than scheme, host and path: write it as %s", u.Redacted(), DefaultServer)}
	}
	return nil
}

// NewClient returns a client without a limit on the whole of a request: some wait, and
// watches never end. It shows and trusts what config says, where that is not nil.
func NewClient(config *tls.Config) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second, TLSClientConfig: config,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		// To follow a redirect would be to send a command to a server that nobody named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Level is the feature level that the last answer named; 0 if none did.
func (c *Caller) Level() int { return int(c.level.Load()) }

// noteLevel notes the level that an answer names.
func (c *Caller) noteLevel(response *http.Response) {
	if level, err := strconv.Atoi(response.Header.Get(LevelHeader)); err == nil {
		c.level.Store(int64(level))
	}
}

// CloseIdle closes connections that are not in use.
func (c *Caller) CloseIdle() { c.client.CloseIdleConnections() }

// An Option is something that few requests need.
type Option func(http.Header)

// WithKey names a request, so that sending it again does it once.
func WithKey(key string) Option {
	return func(h http.Header) { h.Set(KeyHeader, key) }
}

// WithSequence numbers a request within a session, so that sending it again does
// it once. Numbers count up from 1.
func WithSequence(session string, number uint64) Option {
	return func(h http.Header) {
		h.Set(SessionHeader, session)
		h.Set(KeyHeader, strconv.FormatUint(number, 10))
	}
}

// Acquire asks for a resource and stays as long as the request says to wait.
func (c *Caller) Acquire(ctx context.Context, r AcquireRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/acquire", body: r, wait: time.Duration(max(0, r.Wait)), options: options, again: r.ID != ""})
}

// Renew makes a lease last for its TTL from now.
func (c *Caller) Renew(ctx context.Context, r RenewRequest) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/renew", body: r, again: true})
}

// Release gives a lease back, or leaves the queue.
func (c *Caller) Release(ctx context.Context, r ReleaseRequest, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "POST", path: "/v1/release", body: r, options: options, again: true})
	return err
}

// Change hands a lease to another holder or id.
func (c *Caller) Change(ctx context.Context, r ChangeRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/change", body: r, options: options})
}

// Break ends a lease in the name of an operator.
func (c *Caller) Break(ctx context.Context, r BreakRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/break", body: r, options: options})
}

// Move gives a waiter another priority.
func (c *Caller) Move(ctx context.Context, r MoveRequest, options ...Option) (Waiter, error) {
	return send[Waiter](ctx, c, request{method: "POST", path: "/v1/move", body: r, options: options})
}

// Ask sends whoever holds a resource a message, and returns the lease of the one asked.
func (c *Caller) Ask(ctx context.Context, r AskRequest, options ...Option) (Lease, error) {
	return send[Lease](ctx, c, request{method: "POST", path: "/v1/ask", body: r, options: options})
}

// Acknowledge says that unclean ends on a resource have been looked at.
func (c *Caller) Acknowledge(ctx context.Context, r AcknowledgeRequest, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "POST", path: "/v1/acknowledge", body: r, options: options})
	return err
}

// Define sets what holds for a resource, or for all under a prefix, which ends with a
// slash.
func (c *Caller) Define(ctx context.Context, path string, r DefinitionRequest, options ...Option) (Definition, error) {
	return send[Definition](ctx, c, request{method: "PUT", path: definitionPath(path), body: r, options: options})
}

// Undefine takes a definition away.
func (c *Caller) Undefine(ctx context.Context, path string, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "DELETE", path: definitionPath(path), options: options})
	return err
}

// Definition shows what applies to a resource; its path tells where that was set.
func (c *Caller) Definition(ctx context.Context, path string) (Definition, error) {
	return send[Definition](ctx, c, request{method: "GET", path: definitionPath(path)})
}

// Definitions lists one page of definitions.
func (c *Caller) Definitions(ctx context.Context, q DefinitionQuery) (List[Definition], error) {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	return send[List[Definition]](ctx, c, request{method: "GET", path: "/v1/definitions", query: query})
}

// A DefinitionQuery says which definitions to list.
type DefinitionQuery struct {
	Prefix string
	After  string // Next of the page before
	Limit  int    // of one page; 0: what the server likes
}

// definitionPath writes a path as one segment: that of a prefix ends with a slash,
// which would not survive everywhere.
func definitionPath(path string) string { return "/v1/definitions/" + escape(path) }

// OpenSession begins a session.
func (c *Caller) OpenSession(ctx context.Context, r SessionRequest, options ...Option) (Session, error) {
	return send[Session](ctx, c, request{method: "POST", path: "/v1/sessions", body: r, options: options, again: r.ID != ""})
}

// RenewSession makes a session, and all that is bound to it, last for its TTL
// from now.
func (c *Caller) RenewSession(ctx context.Context, id string) (Session, error) {
	return send[Session](ctx, c, request{method: "POST", path: "/v1/sessions/" + escape(id) + "/renew", again: true})
}

// RenewSessionSince is RenewSession for who knows of some interventions already, so that only
// later ones are named. Servers below level 4 refuse it.
func (c *Caller) RenewSessionSince(ctx context.Context, id string, interventions uint64) (Session, error) {
	query := url.Values{"seen": {strconv.FormatUint(interventions, 10)}}
	return send[Session](ctx, c, request{method: "POST", path: "/v1/sessions/" + escape(id) + "/renew", query: query, again: true})
}

// Session shows a session.
func (c *Caller) Session(ctx context.Context, id string) (Session, error) {
	return send[Session](ctx, c, request{method: "GET", path: "/v1/sessions/" + escape(id)})
}

// CloseSession ends a session and releases all that is bound to it.
func (c *Caller) CloseSession(ctx context.Context, id string, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "DELETE", path: "/v1/sessions/" + escape(id), options: options, again: true})
	return err
}

// Resource shows one resource with up to so many of its waiters; 0 for as many as
// the server likes.
func (c *Caller) Resource(ctx context.Context, path string, waiters int) (Resource, error) {
	query := url.Values{}
	setNumber(query, "queue", waiters)
	return send[Resource](ctx, c, request{method: "GET", path: "/v1/resources/" + escapePath(path), query: query})
}

// A ResourceQuery says which resources to list.
type ResourceQuery struct {
	Prefix string
	All    bool   // also those that are merely available
	After  string // Next of the page before
	Limit  int    // of one page; 0: what the server likes
}

// A ResourcePage is one page of resources, as of a revision. To follow what
// happens to them, watch since the revision of the first page.
type ResourcePage struct {
	List[Resource]
	Revision uint64 `json:"-"`
}

// ResourcePage lists one page.
func (c *Caller) ResourcePage(ctx context.Context, q ResourceQuery) (page ResourcePage, err error) {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	if q.All {
		query.Set("all", "true")
	}
	header, err := c.do(ctx, request{method: "GET", path: "/v1/resources", query: query}, &page.List)
	if err == nil {
		page.Revision, _ = strconv.ParseUint(header.Get(RevisionHeader), 10, 64)
	}
	return page, err
}

// Resources goes through all pages. It ends after the first error.
func (c *Caller) Resources(ctx context.Context, q ResourceQuery) iter.Seq2[Resource, error] {
	return func(yield func(Resource, error) bool) {
		for {
			page, err := c.ResourcePage(ctx, q)
			if err != nil {
				yield(Resource{}, err)
				return
			}
			for _, r := range page.Items {
				if !yield(r, nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}

// Advice suggests a TTL for a resource.
func (c *Caller) Advice(ctx context.Context, path string) (Advice, error) {
	return send[Advice](ctx, c, request{method: "GET", path: "/v1/advice/" + escapePath(path)})
}

// An AlarmQuery says which alarms to show.
type AlarmQuery struct {
	Prefix string // of the resource
	Kind   string // empty: any
	After  string // Next of the page before
	Limit  int    // of one page; 0: what the server likes
}

// AlarmPage shows one page of the alarms that stand, those that happened last first.
func (c *Caller) AlarmPage(ctx context.Context, q AlarmQuery) (List[Alarm], error) {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "kind", q.Kind)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	return send[List[Alarm]](ctx, c, request{method: "GET", path: "/v1/alarms", query: query})
}

// Alarms goes through all pages. It ends after the first error.
func (c *Caller) Alarms(ctx context.Context, q AlarmQuery) iter.Seq2[Alarm, error] {
	return func(yield func(Alarm, error) bool) {
		for {
			page, err := c.AlarmPage(ctx, q)
			if err != nil {
				yield(Alarm{}, err)
				return
			}
			for _, a := range page.Items {
				if !yield(a, nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}

// A HistoryQuery says which events to show.
type HistoryQuery struct {
	Resource string // empty: everything that happened in the namespace
	Before   string // Next of the page before
	Limit    int    // 0: what the server likes
}

// History shows what happened, newest last.
func (c *Caller) History(ctx context.Context, q HistoryQuery) (EventPage, error) {
	query := url.Values{}
	setText(query, "resource", q.Resource)
	setText(query, "before", q.Before)
	setNumber(query, "limit", q.Limit)
	return send[EventPage](ctx, c, request{method: "GET", path: "/v1/history", query: query})
}

// Version tells what the server is.
func (c *Caller) Version(ctx context.Context) (Version, error) {
	return send[Version](ctx, c, request{method: "GET", path: "/version", global: true})
}

// A request is one HTTP request to be.
type request struct {
	method  string
	path    string // escaped
	query   url.Values
	body    any
	value   *[]byte // instead of a body: bytes as they are; or
	stream  io.Reader
	header  http.Header
	wait    time.Duration
	options []Option
	global  bool // it is about no namespace
	again   bool // to do it twice is to do it once
}

func send[T any](ctx context.Context, c *Caller, r request) (answer T, err error) {
	_, err = c.do(ctx, r, &answer)
	return answer, err
}

// do sends a request and reads its answer.
func (c *Caller) do(ctx context.Context, r request, answer any) (header http.Header, err error) {
	err = c.somewhere(ctx, r, func(server string) error {
		ctx := ctx
		if r.stream == nil { // how long a stream takes is for its reader to say
			limited, cancel := context.WithTimeout(ctx, c.within(r))
			defer cancel()
			ctx = limited
		}
		header, err = c.doAt(ctx, server, r, answer)
		return err
	})
	return header, err
}

// enough is how long one of several servers may take for what any of them could say.
const enough = 5 * time.Second

// within is how long one server may take for a request.
func (c *Caller) within(r request) time.Duration {
	if len(c.servers) > 1 && r.method == http.MethodGet && r.wait == 0 {
		return min(c.timeout, enough)
	}
	return c.timeout + r.wait
}

func (c *Caller) doAt(ctx context.Context, server string, r request, answer any) (http.Header, error) {
	response, err := c.openAt(ctx, server, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		return nil, unanswered(server, r.method, err)
	}
	return response.Header, nil
}

// maxAnswer is more than the largest page can have.
const maxAnswer = 64 << 20

// open sends a request and returns the answer if it is a yes.
func (c *Caller) open(ctx context.Context, r request) (response *http.Response, err error) {
	err = c.somewhere(ctx, r, func(server string) error {
		response, err = c.openAt(ctx, server, r)
		return err
	})
	return response, err
}

// Asked is the server that requests go to now: the first, or the next one that could be
// asked when others could not.
func (c *Caller) Asked() string {
	server, _ := c.server()
	return server
}

// server is the one that is asked now, and the number by which to leave it.
func (c *Caller) server() (string, int64) {
	n := c.current.Load()
	return c.servers[int(n%int64(len(c.servers)))], n
}

// somewhere tries one server after another, each once, until one gives an answer that
// another could not better.
func (c *Caller) somewhere(ctx context.Context, r request, try func(server string) error) error {
	var failures []answered
	for range c.servers {
		server, n := c.server()
		err := try(server)
		if !r.elsewhere(err) {
			return err
		}
		// Unless somebody else left it already.
		c.current.CompareAndSwap(n, n+1)
		failures = append(failures, answered{server, err})
		if ctx.Err() != nil {
			break
		}
	}
	return allOf(failures)
}

// elsewhere tells whether another server should be asked.
func (r *request) elsewhere(err error) bool {
	switch {
	case r.stream != nil:
		return false // some of it may have been read
	case errors.Is(err, leasehold.ErrUnavailable):
		return true
	case errors.Is(err, leasehold.ErrUndecided):
		return r.again || len(r.options) > 0
	}
	return false
}

// answered is what became of a request at one server of several.
type answered struct {
	server string
	err    error
}

// allOf is what several servers said. If any of them may have done it, so it is.
func allOf(failures []answered) error {
	if len(failures) == 1 {
		return failures[0].err
	}
	code, texts := leasehold.Unavailable, []string(nil)
	for _, f := range failures {
		if errors.Is(f.err, leasehold.ErrUndecided) {
			code = leasehold.Undecided
		}
		text, _, _ := strings.Cut(f.err.Error(), askWhether)
		if !strings.Contains(text, f.server) {
			text = f.server + " says: " + text // what a server says itself does not tell which one it is
		}
		texts = append(texts, text)
	}
	message := fmt.Sprintf("%d servers were asked, in vain:\n  %s", len(failures), strings.Join(texts, "\n  "))
	return &failure{&leasehold.Error{Code: code, Message: message}, failures[len(failures)-1].err}
}

// openAt asks one server.
func (c *Caller) openAt(ctx context.Context, server string, r request) (*http.Response, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, noteSent(&sent, r))
	hr, err := c.build(ctx, server, r)
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	response, err := c.client.Do(hr)
	if err == nil {
		c.noteLevel(response)
	}
	switch {
	case err != nil && sent.Load():
		return nil, unanswered(server, r.method, err)
	case err != nil:
		return nil, unreached(server, err)
	case response.StatusCode == http.StatusOK:
		response.Request = hr
		return response, nil
	}
	defer response.Body.Close()
	return nil, c.refusal(server, r.method, response)
}

// noteSent notes whether any of a request may have left. The transport may begin
// anew on another connection when nothing of it had, or when it has a name.
func noteSent(sent *atomic.Bool, r request) *httptrace.ClientTrace {
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	if len(r.options) == 0 {
		trace.GetConn = func(string) { sent.Store(false) }
	}
	return trace
}

func (c *Caller) build(ctx context.Context, server string, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		b, err := encode(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	if r.value != nil {
		body = bytes.NewReader(*r.value)
	}
	if r.stream != nil {
		body = r.stream
	}
	address := server + r.path
	query := url.Values{}
	if r.query != nil {
		query = r.query
	}
	if c.namespace != "" && !r.global {
		query.Set("namespace", c.namespace)
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	hr, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, err
	}
	switch {
	case r.value != nil || r.stream != nil:
		hr.Header.Set("Content-Type", "application/octet-stream")
	case body != nil:
		hr.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.header {
		hr.Header[name] = values
	}
	for _, option := range r.options {
		option(hr.Header)
	}
	return hr, nil
}

// encode writes the body of a request. JSON has no words for bytes that are not
// UTF-8: encoding/json would send another name than the one it was given.
func encode(body any) ([]byte, error) {
	if err := checkTexts(reflect.ValueOf(body)); err != nil {
		return nil, err
	}
	return json.Marshal(body)
}

func checkTexts(v reflect.Value) error {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch field := v.Field(i).Interface().(type) {
		case string:
			if !utf8.ValidString(field) {
				return fmt.Errorf("%s %q is not valid UTF-8", name, field)
			}
		case map[string]string:
			for key, value := range field {
				if !utf8.ValidString(key + value) {
					return fmt.Errorf("%s: %q is not valid UTF-8", name, key+"="+value)
				}
			}
		case []string:
			for _, s := range field {
				if !utf8.ValidString(s) {
					return fmt.Errorf("%s: %q is not valid UTF-8", name, s)
				}
			}
		case *AcquireRequest:
			if field != nil {
				if err := checkTexts(v.Field(i).Elem()); err != nil {
					return err
				}
			}
		case []Compare, []Op, []AcquireItem:
			for n := range v.Field(i).Len() {
				if err := checkTexts(v.Field(i).Index(n)); err != nil {
					return fmt.Errorf("%s %d: %w", name, n+1, err)
				}
			}
		}
	}
	return nil
}

// A failure is an error of the network in our own words, with what lies behind it.
type failure struct {
	err   *leasehold.Error
	cause error
}

func (f *failure) Error() string   { return f.err.Error() }
func (f *failure) Unwrap() []error { return []error{f.err, f.cause} }

// askWhether begins the part of a message that is said once, however many servers there are.
const askWhether = ": is it running?"

// unreached is the error of a request that nobody got.
func unreached(server string, cause error) error {
	if err := badPapers(server, cause); err != nil {
		return err
	}
	message := fmt.Sprintf("cannot reach the server at %s: %v%s start one with `leasehold serve`, or set LEASEHOLD_SERVER", server, bare(cause), askWhether)
	return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
}

// unanswered is the error of a request that was sent. What only reads did nothing,
// whatever became of it.
func unanswered(server, method string, cause error) error {
	if err := badPapers(server, cause); err != nil {
		return err
	}
	if method == http.MethodGet {
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf("the server at %s gave no answer: %v: try again", server, bare(cause))}, cause}
	}
	message := fmt.Sprintf("the server at %s gave no answer: %v: it may have done what was asked; ask again with the same id", server, bare(cause))
	return &failure{&leasehold.Error{Code: leasehold.Undecided, Message: message}, cause}
}

// badPapers is the error of a connection that failed for its certificates, on which nothing
// was asked; nil if it is another one.
func badPapers(server string, cause error) error {
	var theirs *tls.CertificateVerificationError
	if errors.As(cause, &theirs) {
		message := fmt.Sprintf("the server at %s has a certificate that is not trusted: %v: %s", server, theirs.Err, trustAdvice(theirs.Err))
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
	}
	var ours *net.OpError
	if errors.As(cause, &ours) && ours.Op == "remote error" && strings.Contains(ours.Err.Error(), "certificate") {
		message := fmt.Sprintf("the server at %s did not accept the certificate of this client, or there was none: %v: give one that it trusts with --cert and --key", server, ours.Err)
		return &failure{&leasehold.Error{Code: leasehold.Denied, Message: message}, cause}
	}
	if strings.Contains(cause.Error(), "http2: client conn could not be established") {
		// Which is all that HTTP/2 tells of the same.
		message := fmt.Sprintf("the server at %s ended the connection as it began: it stops, or it wants a certificate of this client: give one with --cert and --key", server)
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
	}
	return nil
}

// trustAdvice says what to do about a server's certificate.
func trustAdvice(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew it where the server runs (leasehold cert server), or set this machine's clock right"
	case errors.As(err, &host):
		return "ask it by a name that the certificate has, or make one that has this name (leasehold cert server)"
	}
	return "name the authority that made it with --ca or LEASEHOLD_CA"
}

// bare drops the words that net/http puts around an error.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// refusal reads why the answer is not a yes.
func (c *Caller) refusal(server, method string, response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	var p Problem
	if err == nil && kind == "application/problem+json" && json.Unmarshal(body, &p) == nil {
		if code := leasehold.CodeOf(p.Code); code != 0 {
			return p.err(code, cmp.Or(c.namespace, leasehold.DefaultNamespace))
		}
	}
	if strings.Contains(string(body), "HTTP request to an HTTPS server") {
		return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf("the server at %s speaks TLS: write it as https://%s", server, strings.TrimPrefix(server, "http://"))}
	}
	return strange(server, method, response.StatusCode)
}

// strange is the error of an answer that no Leasehold server gives.
func strange(server, method string, status int) error {
	code := leasehold.Refused
	switch {
	case status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		code = leasehold.Unavailable
	case status >= 500 && method == http.MethodGet:
		code = leasehold.Unavailable
	case status >= 500:
		code = leasehold.Undecided
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		code = leasehold.Denied
	}
	return &leasehold.Error{Code: code, Message: fmt.Sprintf(
		"what answers at %s is not a Leasehold server, or stands before one: it said %d %s; check the address", server, status, http.StatusText(status))}
}

// err is the error that a problem tells of.
func (p *Problem) err(code leasehold.Code, namespace string) *leasehold.Error {
	e := &leasehold.Error{Code: code, Message: p.Detail, Position: p.Position, Forecast: time.Duration(p.Forecast)}
	for _, w := range p.Cycle {
		e.Cycle = append(e.Cycle, leasehold.Wait{Holder: w.Holder, Resource: w.Resource})
	}
	if p.Waiting != nil {
		e.Waiting = *p.Waiting
	}
	if code != leasehold.Held || p.Holder == "" {
		return e
	}
	e.Lease = &leasehold.Lease{
		Namespace: namespace, Resource: p.Resource, ID: p.ID, Holder: p.Holder, Reason: p.Reason, State: stateOf(p.State),
		Token: leasehold.Token(p.Token), Floor: leasehold.Token(p.Token),
		Acquired: p.Since.value(), Expires: p.Expires.value(), AvailableAt: p.AvailableAt.value(),
	}
	if p.RemainingMS != nil {
		e.Lease.Remaining = time.Duration(*p.RemainingMS) * time.Millisecond
	}
	return e
}

func (t *Time) value() time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func stateOf(name string) leasehold.State {
	for s := leasehold.Available; s <= leasehold.Expired; s++ {
		if s.String() == name {
			return s
		}
	}
	return 0
}

// escape writes a name as one segment of a path. Dots are escaped where they
// would otherwise mean another path.
func escape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// escapePath writes the path of a resource. Names that a path can not hold are
// left for the server to refuse.
func escapePath(path string) string {
	if strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
		return url.PathEscape(path)
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = escape(s)
	}
	return strings.Join(segments, "/")
}

func setText(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

func setNumber(query url.Values, name string, value int) {
	if value != 0 {
		query.Set(name, strconv.Itoa(value))
	}
}
