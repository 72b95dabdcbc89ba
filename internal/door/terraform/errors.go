package terraform

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A standing is how the http backend tells one code.
type standing struct {
	status int
	title  string
	later  bool // try again: Retry-After goes with it
}

// standingOf is the one place where codes become HTTP, as Terraform understands it.
//
// 423 is the only answer after which it tries to lock again, and 5xx and 429 after which it
// sends the same again; all others end the run. Undecided is therefore a 503: every request
// of this door may be sent twice, and Terraform has no other way to ask what became of it.
// Lost and Refused are a 409, which a write takes for the end: its state goes to
// errored.tfstate.
func standingOf(code leasehold.Code) standing {
	switch code {
	case leasehold.Held:
		return standing{status: http.StatusLocked, title: "somebody else has the lock"}
	case leasehold.Lost:
		return standing{status: http.StatusConflict, title: "the lock has ended"}
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
		return standing{status: http.StatusServiceUnavailable, title: "it may have happened, send it again", later: true}
	case leasehold.Refused:
		return standing{status: http.StatusConflict, title: "what is there contradicts it"}
	}
	return standing{}
}

// A httpFault is an error that HTTP has a status of its own for.
type httpFault struct {
	error
	status int
}

func (f *httpFault) Unwrap() error { return f.error }

func fault(status int, format string, args ...any) error {
	return &httpFault{invalid(format, args...), status}
}

const problemType = "application/problem+json"

// refuse tells why not. Who finds a lock in the way gets its LockInfo, which Terraform reads;
// everything else is a problem, of which Terraform shows the status alone.
func (c *call) refuse(err error) {
	var e *leasehold.Error
	if !errors.As(err, &e) || standingOf(e.Code).status == 0 {
		// What nobody foresaw: the log has it, and the caller can only ask again.
		e = &leasehold.Error{Code: leasehold.Undecided, Message: "the server can not tell whether this happened: send it again"}
	}
	s := standingOf(e.Code)
	var f *httpFault
	if errors.As(err, &f) {
		s.status = f.status
	}
	if s.later {
		c.w.Header().Set("Retry-After", "1")
	}
	var body any = v1.NewProblem(e, s.status, s.title)
	kind := problemType
	if e.Code == leasehold.Held && !c.readsProblems() {
		told := tell(e, c.version, time.Now())
		c.w.Header().Set(lockHeader, told.Lock)
		body, kind = told, "application/json"
	}
	c.send(s.status, kind, body)
}

// readsProblems tells callers who can read more than Terraform does.
func (c *call) readsProblems() bool {
	return strings.Contains(c.r.Header.Get("Accept"), problemType)
}

// lockHeader has the ID of the lock that is in the way, and nothing but it.
const lockHeader = "Leasehold-Lock-Id"

// send writes an answer that is JSON.
func (c *call) send(status int, kind string, body any) {
	text, _ := json.Marshal(body)
	c.late()
	h := c.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(status)
	// Whether it arrives is not for us to know; the caller has an ID to ask again by.
	_, _ = c.w.Write(append(text, '\n'))
}
