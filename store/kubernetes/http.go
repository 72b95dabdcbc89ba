package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

const (
	maxAnswer = 64 << 20 // bytes; enough for a chunk of a list of the largest Leases
	busyTries = 5        // requests that the API server puts off before the caller is told
)

// send carries out a request. Of the refusals, 404, 409 and 410 are for the caller to judge, and the
// others are errors. A request that the API server puts off (429) is sent again when it says.
func (s *Store) send(ctx context.Context, method, path string, body, into any) (status int, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	for n := 1; ; n++ {
		answer, err := s.once(ctx, method, path, text)
		if err != nil {
			return 0, err
		}
		if answer.status == http.StatusTooManyRequests {
			if err := s.putOff(ctx, answer.retryAfter, n); err != nil {
				return 0, err
			}
			continue
		}
		return answer.status, s.judge(s.verb(method, path), answer, into)
	}
}

// putOff waits for as long as the API server says, or returns why that is no use.
func (s *Store) putOff(ctx context.Context, d time.Duration, n int) error {
	busy := &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf(
		"the API server has too many requests, and asks to wait for %v", d)}
	if deadline, ok := ctx.Deadline(); n >= busyTries || ok && time.Until(deadline) < d {
		return busy
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return busy
	}
}

// An answer of the API server.
type answer struct {
	status     int
	body       []byte
	retryAfter time.Duration
}

// once sends a request once, or twice if the token has just been replaced.
func (s *Store) once(ctx context.Context, method, path string, body []byte) (*answer, error) {
	for fresh := false; ; fresh = true {
		response, err := s.start(ctx, method, path, body, fresh)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		_ = response.Body.Close()
		if err != nil {
			return nil, s.failure(ctx, err)
		}
		if response.StatusCode == http.StatusUnauthorized && !fresh && s.token.replaceable() {
			continue
		}
		a := &answer{status: response.StatusCode, body: text, retryAfter: time.Second}
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
			a.retryAfter = time.Duration(seconds) * time.Second
		}
		return a, nil
	}
}

// start sends a request and returns the answer before its body is read.
func (s *Store) start(ctx context.Context, method, path string, body []byte, fresh bool) (*http.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, invalid("the address of the API server cannot be used: %v", err)
	}
	token, err := s.token.get(fresh)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "leasehold")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		s.ahead.Store(at.UnixNano() - int64(s.watch.clock.Now()))
	}
	return response, nil
}

// failure returns what it means that there is no answer. Only if no connection came about, nothing has
// happened.
func (s *Store) failure(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, store.ErrLimit) && s.own != nil {
			s.own.replace()
		}
		return fmt.Errorf("the API server did not answer in time: %w", cause)
	}
	if e := (*url.Error)(nil); errors.As(err, &e) {
		err = e.Err // without the address
	}
	code, message := leasehold.Undecided, "the API server did not answer: "+err.Error()
	var dial *net.OpError
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &untrusted), errors.As(err, &unknown):
		code, message = leasehold.Unavailable,
			"the certificate of the API server is not trusted: give its CA, as in ?ca=FILE: "+err.Error()
	case errors.As(err, &dial) && dial.Op == "dial":
		code, message = leasehold.Unavailable, "the API server cannot be reached: "+err.Error()
	}
	return &leasehold.Error{Code: code, Message: message}
}

// judge reads an answer.
func (s *Store) judge(verb string, a *answer, into any) error {
	var status struct {
		Message string `json:"message"`
		Reason  string `json:"reason"`
	}
	if a.status >= 400 && json.Unmarshal(a.body, &status) != nil || status.Message == "" {
		status.Message = http.StatusText(a.status)
	}
	switch {
	case a.status == http.StatusOK, a.status == http.StatusCreated:
		if into == nil {
			return nil
		}
		if err := json.Unmarshal(a.body, into); err != nil {
			return &leasehold.Error{Code: leasehold.Undecided,
				Message: "the answer of the API server cannot be read: " + err.Error()}
		}
		return nil
	case a.status == http.StatusNotFound && status.Reason != "NotFound":
		return &leasehold.Error{Code: leasehold.Undecided, Message: "the answer (404) is not one of a Kubernetes API " +
			"server: check the address, and the proxies on the way to it"}
	case a.status == http.StatusNotFound, a.status == http.StatusConflict, a.status == http.StatusGone:
		return nil
	case a.status == http.StatusUnauthorized:
		return &leasehold.Error{Code: leasehold.Denied,
			Message: "the API server does not know the user (401): check the token or certificate"}
	case a.status == http.StatusForbidden:
		return s.denied(verb, status.Message)
	case a.status == http.StatusUnprocessableEntity, a.status == http.StatusBadRequest,
		a.status == http.StatusRequestEntityTooLarge:
		return invalid("the API server refused it: %s", status.Message)
	}
	// The API server may have given up on an etcd that goes on with it.
	return &leasehold.Error{Code: leasehold.Undecided,
		Message: fmt.Sprintf("the API server failed (%d): %s", a.status, status.Message)}
}

// verb returns what a role calls a request.
func (s *Store) verb(method, path string) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case strings.HasPrefix(path, s.path("")+"?"):
		return "list"
	}
	return "get"
}

// denied says which permission is missing.
func (s *Store) denied(verb, message string) error {
	return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(
		"the API server denied it: the role needs the verb %s on leases.coordination.k8s.io in the namespace %s; "+
			"kubectl -n %s create role leasehold --resource=leases.coordination.k8s.io "+
			"--verb=get,list,watch,create,update (%s)", verb, s.space, s.space, message)}
}
