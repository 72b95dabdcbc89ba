package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// An apiError is an error in the words of Kubernetes, whose clients look at the reason first.
type apiError struct {
	Code    int // the status
	Reason  string
	Message string // that of Kubernetes where it has one
	Kind    string // what the error is about; empty: leases
	Causes  []object.Cause
	Our     leasehold.Code // 0: Invalid
	again   bool           // who reads again may succeed
}

func (e *apiError) Error() string { return e.Message }

// Unwrap returns the error in our words, for the journal and the metrics.
func (e *apiError) Unwrap() error {
	code := e.Our
	if code == 0 {
		code = leasehold.Invalid
	}
	return &leasehold.Error{Code: code, Message: e.Message}
}

const qualified = object.Resource + "." + object.Group

// badRequest is the error of a request that is wrong in itself.
func badRequest(format string, args ...any) error {
	return &apiError{Code: http.StatusBadRequest, Reason: "BadRequest", Message: fmt.Sprintf(format, args...)}
}

// The errors that electors and informers know. Their texts are those of Kubernetes.

// notFound leads an elector to create the object.
func notFound(name string) error {
	return &apiError{Code: http.StatusNotFound, Reason: "NotFound", Our: leasehold.NotFound,
		Message: fmt.Sprintf("%s %q not found", qualified, name)}
}

// alreadyExists tells an elector that it lost the race to create the object.
func alreadyExists(name string) error {
	return &apiError{Code: http.StatusConflict, Reason: "AlreadyExists", Our: leasehold.Refused,
		Message: fmt.Sprintf("%s %q already exists", qualified, name)}
}

// conflict makes a client read the object again.
func conflict(name, why string, our leasehold.Code) error {
	return &apiError{Code: http.StatusConflict, Reason: "Conflict", Our: our,
		Message: fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", qualified, name, why)}
}

// heldElsewhere is the error of a write to an object that shows a holder of another door: neither can that be taken or
// released by a write, nor does it renew.
func heldElsewhere(name, holder string) error {
	return conflict(name, "it is held by "+holder+" through another door: wait for its end, break it, or delete this "+
		"Lease, which breaks it", leasehold.Held)
}

// modified is the error of a write that did not see what somebody else wrote.
func modified(name string) error {
	return &apiError{Code: http.StatusConflict, Reason: "Conflict", Our: leasehold.Refused, again: true,
		Message: fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified; please apply your "+
			"changes to the latest version and try again", qualified, name)}
}

// isModified reports whether a write did not see what somebody else wrote.
func isModified(err error) bool {
	var own *apiError
	return errors.As(err, &own) && own.again
}

// wrongUID is the error of a write to an object that was deleted, and perhaps made anew.
func wrongUID(name, wanted, found string) error {
	return conflict(name, fmt.Sprintf("StorageError: invalid object, Code: 4, Key: , ResourceVersion: 0, "+
		"AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s", wanted, found),
		leasehold.Refused)
}

// wrongVersion is the error of a delete whose precondition names another version.
func wrongVersion(name, wanted, found string) error {
	return conflict(name, fmt.Sprintf("StorageError: invalid object, Code: 4, Key: , ResourceVersion: 0, "+
		"AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object "+
		"meta: %s", wanted, found), leasehold.Refused)
}

// invalid is the error of an object that is wrong in itself.
func invalid(kind, name string, causes ...object.Cause) error {
	texts := make([]string, len(causes))
	for i := range causes {
		texts[i] = causes[i].Error()
	}
	message := texts[0]
	if len(texts) > 1 {
		message = "[" + strings.Join(texts, ", ") + "]"
	}
	return &apiError{Code: http.StatusUnprocessableEntity, Reason: "Invalid", Kind: kind, Causes: causes,
		Message: fmt.Sprintf("%s %q is invalid: %s", kind, name, message)}
}

// invalidLease is invalid for a Lease.
func invalidLease(name string, causes ...object.Cause) error {
	return invalid(object.Kind+"."+object.Group, name, causes...)
}

// expired is the error of somebody who reads from a place that history has forgotten: it reads all again.
func expired(format string, args ...any) error {
	return &apiError{Code: http.StatusGone, Reason: "Expired", Our: leasehold.Lost,
		Message: fmt.Sprintf(format, args...)}
}

// A status is how Kubernetes tells an error, or that something was deleted.
type status struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   struct{} `json:"metadata"`
	Status     string   `json:"status"`
	Message    string   `json:"message,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	Details    *details `json:"details,omitempty"`
	Code       int      `json:"code,omitempty"`
}

// details say what a status is about.
type details struct {
	Name              string         `json:"name,omitempty"`
	Group             string         `json:"group,omitempty"`
	Kind              string         `json:"kind,omitempty"`
	UID               string         `json:"uid,omitempty"`
	Causes            []object.Cause `json:"causes,omitempty"`
	RetryAfterSeconds int            `json:"retryAfterSeconds,omitempty"`
}

// A standing is how Kubernetes tells one of our codes.
type standing struct {
	status int
	reason string
	later  bool
}

// standingOf returns how Kubernetes tells a code. Refused and Held are a Conflict: an elector reads again, and sees
// who holds the object. Undecided is a Timeout, which says no more than that: a client reads again too.
func standingOf(code leasehold.Code) standing {
	switch code {
	case leasehold.Held, leasehold.Refused, leasehold.Lost:
		return standing{http.StatusConflict, "Conflict", false}
	case leasehold.NotFound:
		return standing{http.StatusNotFound, "NotFound", false}
	case leasehold.Invalid:
		return standing{http.StatusBadRequest, "BadRequest", false}
	case leasehold.Denied:
		return standing{http.StatusForbidden, "Forbidden", false}
	case leasehold.Limited:
		return standing{http.StatusTooManyRequests, "TooManyRequests", true}
	case leasehold.Unavailable:
		return standing{http.StatusServiceUnavailable, "ServiceUnavailable", true}
	case leasehold.Undecided:
		return standing{http.StatusGatewayTimeout, "Timeout", false}
	}
	return standing{http.StatusInternalServerError, "InternalError", false}
}

// statusOf returns an error as Kubernetes tells it.
func (c *call) statusOf(err error) *status {
	s := &status{Kind: "Status", APIVersion: "v1", Status: "Failure", Details: &details{}}
	var own *apiError
	if errors.As(err, &own) {
		s.Code, s.Reason, s.Message, s.Details.Causes = own.Code, own.Reason, own.Message, own.Causes
		s.Details.Kind, s.Details.Group, _ = strings.Cut(own.Kind, ".")
	} else {
		c.tellOurs(s, door.Coded(err), door.StatusOf(err, 0))
	}
	if isOfLeases(c.on) && s.Details.Kind == "" {
		s.Details.Group, s.Details.Kind = object.Group, object.Resource
	}
	if s.Details.Group == object.Group {
		s.Details.Name = c.name
	}
	return s
}

// tellOurs fills in one of our errors. status is what HTTP has for it in particular; 0: nothing.
func (c *call) tellOurs(s *status, e *leasehold.Error, status int) {
	is := standingOf(e.Code)
	s.Code, s.Reason, s.Message = is.status, is.reason, e.Message
	switch {
	case status == http.StatusUnauthorized:
		s.Code, s.Reason, s.Message = status, "Unauthorized", "Unauthorized: "+e.Message
	case is.status == http.StatusConflict:
		s.Message = fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", qualified, c.name, e.Message)
	case is.status == http.StatusForbidden:
		s.Message = fmt.Sprintf("%s %q is forbidden: %s", qualified, c.name, e.Message)
		if c.name == "" { // it is refused before the body, which has the name, is read
			s.Message = qualified + " is forbidden: " + e.Message
		}
	case status != 0:
		s.Code = status
	}
	if is.later {
		s.Details.RetryAfterSeconds = 1
	}
}

// tell answers with an error. client-go tries again by itself if it is told when.
func (c *call) tell(err error) {
	door.Told(c.w.Header(), err, func(code leasehold.Code) door.Standing {
		return door.Standing{Later: standingOf(code).later}
	})
	s := c.statusOf(err)
	c.form.as = "" // an error is no table
	c.send(s.Code, s)
}

// Marshal returns the status in protobuf, without an envelope.
func (s *status) Marshal() []byte {
	var w object.Writer
	w.Bytes(1, nil)
	w.Text(2, s.Status)
	w.Text(3, s.Message)
	w.Text(4, s.Reason)
	if s.Details != nil {
		w.Bytes(5, s.Details.marshal())
	}
	w.Number(6, int64(s.Code))
	return w
}

// marshal returns the details in protobuf.
func (d *details) marshal() []byte {
	var w object.Writer
	w.Text(1, d.Name)
	w.Text(2, d.Group)
	w.Text(3, d.Kind)
	for _, cause := range d.Causes {
		var one object.Writer
		one.Text(1, cause.Reason)
		one.Text(2, cause.Message)
		one.Text(3, cause.Field)
		w.Bytes(4, one)
	}
	if d.RetryAfterSeconds != 0 {
		w.Number(5, int64(d.RetryAfterSeconds))
	}
	w.Text(6, d.UID)
	return w
}

// JSON returns the status in JSON.
func (s *status) JSON() ([]byte, error) { return json.Marshal(s) }

func (s *status) kind() (apiVersion, kind string) { return s.APIVersion, s.Kind }

// revisionText writes a revision as a resourceVersion.
func revisionText(r leasehold.Revision) string { return strconv.FormatUint(uint64(r), 10) }
