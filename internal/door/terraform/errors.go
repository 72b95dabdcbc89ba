package terraform

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
)

// standingOf returns how Terraform is told a code, where that is not how HTTP usually is.
//
// 423 is the only answer after which it tries to lock again, and 5xx and 429 after which it
// sends the same again; all others end the run. Undecided is therefore a 503: every request
// of this door may be sent twice, and Terraform has no other way to ask what became of it.
// Lost and Refused are a 409, which a write takes for the end: its state goes to
// errored.tfstate.
func standingOf(code leasehold.Code) door.Standing {
	switch code {
	case leasehold.Held:
		return door.Standing{Status: http.StatusLocked, Title: "locked by somebody else"}
	case leasehold.Lost:
		return door.Standing{Status: http.StatusConflict, Title: "the lock has ended"}
	case leasehold.Undecided:
		return door.Standing{
			Status: http.StatusServiceUnavailable, Title: "it may have happened: send it again", Later: true,
		}
	case leasehold.Refused:
		return door.Standing{Status: http.StatusConflict, Title: "conflicts with the current state"}
	}
	return door.StandingOf(code)
}

// refuse answers with an error. A lock that is in the way is told by its LockInfo, which Terraform reads;
// everything else is a problem, of which Terraform shows the status alone.
func (c *call) refuse(err error) {
	if door.StatusOf(err, 0) == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", `Basic realm="leasehold", charset="UTF-8"`)
	}
	e, s := door.Told(c.w.Header(), err, standingOf)
	var body any = v1.NewProblem(e, s.Status, s.Title)
	kind := door.ProblemType
	if e.Code == leasehold.Held && !c.readsProblems() {
		told := tell(e, c.version, time.Now())
		c.w.Header().Set(lockHeader, told.Lock)
		body, kind = told, "application/json"
	}
	c.send(s.Status, kind, body)
}

// readsProblems reports whether the client reads more than Terraform does.
func (c *call) readsProblems() bool {
	return strings.Contains(c.r.Header.Get("Accept"), door.ProblemType)
}

// lockHeader has the ID of the lock that is in the way, without the details that tell adds.
const lockHeader = "Leasehold-Lock-Id"

// send writes an answer that is JSON.
func (c *call) send(status int, kind string, body any) {
	text, _ := json.Marshal(body)
	door.WriteWithin(c.w, pieceTime)
	h := c.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(status)
	// Whether it arrives is not for us to know; the caller has an ID to ask again by.
	_, _ = c.w.Write(append(text, '\n'))
}
