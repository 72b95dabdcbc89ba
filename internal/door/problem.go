package door

import (
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
)

// ProblemType is the content type of an error, as RFC 9457 has it.
const ProblemType = "application/problem+json"

// A Standing is how HTTP tells one code.
type Standing struct {
	Status int
	Title  string
	Later  bool // try again: Retry-After goes with it
}

// StandingOf returns how HTTP tells a code, unless a door's clients need it otherwise.
//
// Undecided is a 504 and not a 503: proxies and clients take a 503 for "nothing was done" and
// send again on their own. Refused is a 422 and not a 409, so that a client that looks at the
// status alone never takes it for held, and waits.
func StandingOf(code leasehold.Code) Standing {
	switch code {
	case leasehold.Held:
		return Standing{Status: http.StatusConflict, Title: "somebody else has it"}
	case leasehold.Lost:
		return Standing{Status: http.StatusGone, Title: "it has ended"}
	case leasehold.NotFound:
		return Standing{Status: http.StatusNotFound, Title: "there is no such thing"}
	case leasehold.Invalid:
		return Standing{Status: http.StatusBadRequest, Title: "the request is wrong"}
	case leasehold.Denied:
		return Standing{Status: http.StatusForbidden, Title: "not allowed"}
	case leasehold.Limited:
		return Standing{Status: http.StatusTooManyRequests, Title: "too much, or too many", Later: true}
	case leasehold.Unavailable:
		return Standing{Status: http.StatusServiceUnavailable, Title: "nothing happened, try again", Later: true}
	case leasehold.Undecided:
		return Standing{Status: http.StatusGatewayTimeout, Title: "it may have happened, ask again with the same id"}
	case leasehold.Refused:
		return Standing{Status: http.StatusUnprocessableEntity, Title: "what is there contradicts it"}
	}
	return Standing{}
}

// Told returns an error with its code and how a door tells it, and sets Retry-After where it
// belongs. standings is the door's own StandingOf.
func Told(h http.Header, err error, standings func(leasehold.Code) Standing) (*leasehold.Error, Standing) {
	e := Coded(err)
	s := standings(e.Code)
	s.Status = StatusOf(err, s.Status)
	if s.Status == http.StatusUnauthorized {
		s.Title = "no valid credential"
		challenge(h, err)
	}
	if s.Later {
		h["Retry-After"] = retryAfter
		if seconds := (e.Forecast + time.Second - 1) / time.Second; seconds > 1 {
			h["Retry-After"] = []string{strconv.FormatInt(int64(seconds), 10)}
		}
	}
	return e, s
}

// retryAfter is in seconds: long enough for an election or a restart, short against any lease.
var retryAfter = []string{"1"}
