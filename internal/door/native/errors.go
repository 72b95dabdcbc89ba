package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A standing is how HTTP tells one code.
type standing struct {
	status int
	title  string
	later  bool // try again: Retry-After goes with it
}

// standingOf is the one place where codes become HTTP.
//
// Undecided is a 504 and not a 503: proxies and clients take a 503 for "nothing
// was done" and send again on their own. Refused is a 422 and not a 409, so that
// whoever looks at the status alone never takes it for held, and waits.
func standingOf(code leasehold.Code) standing {
	switch code {
	case leasehold.Held:
		return standing{status: http.StatusConflict, title: "somebody else has it"}
	case leasehold.Lost:
		return standing{status: http.StatusGone, title: "it has ended"}
	case leasehold.NotFound:
		return standing{status: http.StatusNotFound, title: "there is no such thing"}
	case leasehold.Invalid:
		return standing{status: http.StatusBadRequest, title: "the request is wrong"}
	case leasehold.Denied:
		return standing{status: http.StatusForbidden, title: "not allowed"}
	case leasehold.Limited:
		return standing{status: http.StatusTooManyRequests, title: "too much, or too many", later: true}
	case leasehold.Unavailable:
		return standing{status: http.StatusServiceUnavailable, title: "nothing happened, try again", later: true}
	case leasehold.Undecided:
		return standing{status: http.StatusGatewayTimeout, title: "it may have happened, ask again with the same id"}
	case leasehold.Refused:
		return standing{status: http.StatusUnprocessableEntity, title: "what is there contradicts it"}
	}
	return standing{}
}

// retryAfter is in seconds: long enough for an election or a restart, short
// against any lease.
var retryAfter = []string{"1"}

// A httpFault is an error that HTTP has a status of its own for.
type httpFault struct {
	error
	status int
}

func (f *httpFault) Unwrap() error { return f.error }

func fault(status int, format string, args ...any) error {
	return &httpFault{invalid(format, args...), status}
}

// problem writes an error as application/problem+json.
func problem(w http.ResponseWriter, err error) {
	var e *leasehold.Error
	if !errors.As(err, &e) || standingOf(e.Code).status == 0 {
		// What nobody foresaw: the log has it, and the caller can only ask again.
		e = &leasehold.Error{Code: leasehold.Undecided, Message: "the server can not tell whether this happened: ask again with the same id"}
	}
	s := standingOf(e.Code)
	var f *httpFault
	if errors.As(err, &f) {
		s.status = f.status
	}
	if s.later {
		w.Header()["Retry-After"] = retryAfter
	}
	body, _ := json.Marshal(v1.NewProblem(e, s.status, s.title))
	write(w, problemType, s.status, append(body, '\n'))
}

func unknownRoute(w http.ResponseWriter, r *http.Request) {
	problem(w, &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf(
		"there is nothing at %s: the API is under /v1/, and /v1/openapi.yaml describes it", brief(r.URL.Path))})
}

func wrongMethod(allowed []string) http.HandlerFunc {
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	allow := strings.Join(allowed, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		problem(w, fault(http.StatusMethodNotAllowed, "%s is not for %s: use %s", brief(r.URL.Path), r.Method, allow))
	}
}
