// Package storeapi answers the HTTP API from a store, inside the process and without a connection.
// The command line asks a v1.Caller for everything, so with this below the caller its commands work on
// Redis or PostgreSQL as they do on a server. What the store cannot do is refused as the API refuses it.
package storeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// An API is the transport of an HTTP client whose requests a store answers.
type API struct {
	namespace string
	open      func(ctx context.Context) (store.Store, error)
}

// New returns the API of the store that open opens, at the first request.
func New(namespace string, open func(ctx context.Context) (store.Store, error)) *API {
	return &API{namespace, open}
}

// RoundTrip answers one request.
func (a *API) RoundTrip(r *http.Request) (*http.Response, error) {
	// From here on the request may have been carried out, whatever happens to its answer.
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	keeper, err := a.open(r.Context())
	if err != nil {
		return problem(err), nil
	}
	if r.Method == http.MethodGet && r.URL.Path == "/v1/watch" {
		return a.watch(r, keeper), nil
	}
	answer, err := a.answer(r, keeper)
	if err != nil {
		return problem(err), nil
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return problem(err), nil
	}
	return response(http.StatusOK, "application/json", io.NopCloser(bytes.NewReader(body))), nil
}

// answer carries out a request that has one answer.
func (a *API) answer(r *http.Request, s store.Store) (any, error) {
	ctx := r.Context()
	switch route := r.Method + " " + r.URL.Path; {
	case route == "POST /v1/acquire":
		return read(r, func(body v1.AcquireRequest) (any, error) { return a.acquire(ctx, s, body) })
	case route == "POST /v1/renew":
		return read(r, func(body v1.RenewRequest) (any, error) { return a.renew(ctx, s, body) })
	case route == "POST /v1/release":
		return read(r, func(body v1.ReleaseRequest) (any, error) { return v1.Nothing{}, a.release(ctx, s, body) })
	case route == "POST /v1/break":
		return read(r, func(body v1.BreakRequest) (any, error) { return a.breakLease(ctx, s, body) })
	case route == "GET /v1/resources":
		return a.list(ctx, s, r.URL.Query())
	case strings.HasPrefix(route, "GET /v1/resources/"):
		return a.resource(ctx, s, nameIn(r.URL, "/v1/resources/"))
	case strings.HasPrefix(route, "GET /v1/definitions/"):
		return nil, &leasehold.Error{Code: leasehold.NotFound, Message: "nothing is defined: " +
			s.Features().Store + " has no definitions"}
	}
	return nil, refuse(s, r.URL.Path)
}

// nameIn returns the name at the end of a path. Its segments are escaped one by one.
func nameIn(u *url.URL, prefix string) string {
	name, err := url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), prefix))
	if err != nil {
		return strings.TrimPrefix(u.Path, prefix)
	}
	return name
}

// powers says what a part of the API needs.
var powers = map[string]store.Power{
	"sessions": store.SessionPower, "records": store.RecordPower, "versions": store.RecordPower,
	"txn": store.RecordPower, "history": store.HistoryPower, "definitions": store.DefinitionPower,
	"ask": store.MessagePower, "change": store.ChangePower, "move": store.MovePower,
}

// refuse returns the error of a request that a store cannot answer.
func refuse(s store.Store, path string) error {
	part, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1/"), "/")
	if p, ok := powers[part]; ok {
		if err := store.Require(s, p); err != nil {
			return err
		}
	}
	return &leasehold.Error{Code: leasehold.Refused,
		Message: fmt.Sprintf("%s cannot do this: it needs a Leasehold server", s.Features().Store)}
}

// read decodes the body of a request.
func read[T any](r *http.Request, carryOut func(T) (any, error)) (any, error) {
	var body T
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	return carryOut(body)
}

// statuses are those of the API.
var statuses = map[leasehold.Code]int{
	leasehold.Held: 409, leasehold.Lost: 410, leasehold.NotFound: 404, leasehold.Invalid: 400, leasehold.Denied: 403,
	leasehold.Limited: 429, leasehold.Unavailable: 503, leasehold.Undecided: 504, leasehold.Refused: 409,
}

// problem returns an error as an answer.
func problem(err error) *http.Response {
	var e *leasehold.Error
	if !errors.As(err, &e) {
		e = &leasehold.Error{Code: leasehold.Undecided, Message: err.Error()}
	}
	status := statuses[e.Code]
	body, _ := json.Marshal(v1.NewProblem(e, status, http.StatusText(status)))
	return response(status, "application/problem+json", io.NopCloser(bytes.NewReader(body)))
}

func response(status int, kind string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {kind}}, Body: body, ContentLength: -1,
	}
}
