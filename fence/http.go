package fence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/leasehold/leasehold"
)

// The headers of a pass. Without FloorHeader the floor is the token; without ResourceHeader, which
// is percent-encoded, nobody checks what the lease is of.
const (
	TokenHeader    = "Leasehold-Token"
	FloorHeader    = "Leasehold-Floor"
	ResourceHeader = "Leasehold-Resource"
)

// Set puts the pass into the headers of a request, in the place of another that is there.
func (p Pass) Set(h http.Header) {
	h.Del(FloorHeader)
	h.Del(ResourceHeader)
	h.Set(TokenHeader, strconv.FormatUint(uint64(p.Token), 10))
	if p.Floor != 0 && p.Floor != p.Token {
		h.Set(FloorHeader, strconv.FormatUint(uint64(p.Floor), 10))
	}
	if p.Resource != "" {
		h.Set(ResourceHeader, url.PathEscape(p.Resource))
	}
}

// PassOf returns the pass of a request.
func PassOf(h http.Header) (Pass, error) {
	token, err := number(h, TokenHeader)
	if err != nil {
		return Pass{}, err
	}
	floor, err := number(h, FloorHeader)
	if err != nil {
		return Pass{}, err
	}
	resource, err := url.PathUnescape(h.Get(ResourceHeader))
	if err != nil || len(h.Values(ResourceHeader)) > 1 {
		return Pass{}, fmt.Errorf("%s is not the name of a resource: send one, percent-encoded", ResourceHeader)
	}
	return Pass{token, floor, resource}, nil
}

func number(h http.Header, name string) (leasehold.Token, error) {
	values := h.Values(name)
	if len(values) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil || len(values) > 1 || leasehold.Token(n) > leasehold.MaxToken {
		return 0, fmt.Errorf("%s is not a token: send one whole number below 2^53", name)
	}
	return leasehold.Token(n), nil
}

// Handler passes requests to next unless their holder is late. resource returns the resource
// that a request is about; requests for which it is empty are not guarded, such as those that
// only read. A late holder gets 412 and both tokens; a request without a token gets 428.
//
// A request counts as running until next has returned, so next should return when the request's
// context ends.
func Handler(guard Guard, resource func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := resource(r)
		if name == "" {
			next.ServeHTTP(w, r)
			return
		}
		pass, err := PassOf(r.Header)
		if err != nil {
			refuse(w, http.StatusBadRequest, problem{Code: leasehold.Invalid.String(), Detail: err.Error()})
			return
		}
		inside := false
		err = guard.Do(r.Context(), name, pass, func(ctx context.Context) error {
			inside = true
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		var late *LateError
		switch {
		case inside || err == nil: // next has answered
		case errors.Is(err, leasehold.ErrInvalid):
			refuse(w, http.StatusBadRequest, problem{
				Code: leasehold.Invalid.String(), Detail: err.Error(), Resource: name,
			})
		case errors.As(err, &late):
			status := http.StatusPreconditionFailed
			if late.Token == 0 {
				status = http.StatusPreconditionRequired
			}
			refuse(w, status, problem{
				Code: leasehold.Lost.String(), Detail: late.Error(),
				Resource: late.Resource, Token: late.Token, Floor: late.Floor,
			})
		default:
			refuse(w, http.StatusServiceUnavailable, problem{
				Code: leasehold.Unavailable.String(), Detail: "the guard could not be asked: try again",
			})
		}
	})
}

// A problem is a refusal, as application/problem+json.
type problem struct {
	Type     string          `json:"type"`
	Title    string          `json:"title"`
	Status   int             `json:"status"`
	Code     string          `json:"code"`
	Detail   string          `json:"detail"`
	Resource string          `json:"resource,omitempty"`
	Token    leasehold.Token `json:"token,omitempty"`
	Floor    leasehold.Token `json:"floor,omitempty"`
}

func refuse(w http.ResponseWriter, status int, p problem) {
	p.Type, p.Title, p.Status = "urn:leasehold:problem:"+p.Code, http.StatusText(status), status
	body, _ := json.Marshal(p)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
