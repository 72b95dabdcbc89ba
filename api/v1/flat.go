package v1

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/leasehold/leasehold/internal/flatjson"
)

var answers = sync.Pool{New: func() any { return new(flatjson.Object) }}

const (
	maxAnswer     = 64 << 20 // more than the largest page can have
	maxKeptAnswer = 16 << 10 // a larger buffer is not used again
)

// readAnswer reads the body of an answer. One that is cut short counts as none: the status alone does not say what was
// granted.
func readAnswer(response *http.Response, answer any) error {
	o := answers.Get().(*flatjson.Object)
	defer func() {
		if o.Text.Cap() <= maxKeptAnswer {
			answers.Put(o)
		}
	}()
	o.Text.Reset()
	_, err := o.Text.ReadFrom(io.LimitReader(response.Body, maxAnswer))
	if err == nil && !readFlat(o, answer) {
		err = json.Unmarshal(o.Text.Bytes(), answer)
	}
	return err
}

// readFlat reads an answer about a lease or a session as the same answer over RESP is read. encoding/json takes
// more time for one than all else that a client does.
func readFlat(o *flatjson.Object, answer any) bool {
	var d decoder
	switch answer := answer.(type) {
	case *Lease:
		v, ok := o.Value()
		if ok {
			d.lease(&v, answer)
		}
		if ok = ok && d.Err == nil; !ok {
			*answer = Lease{}
		}
		return ok
	case *Session:
		v, ok := o.Value()
		if ok {
			d.session(&v, answer)
		}
		if ok = ok && d.Err == nil; !ok {
			*answer = Session{}
		}
		return ok
	}
	return false
}

// flatBody writes a request that says no more than which lease it is about. It reports false if encoding/json has to.
func flatBody(body any) ([]byte, bool) {
	var w flatjson.Writer
	switch r := body.(type) {
	case AcquireRequest:
		if r.Shared || r.Slots != 0 || r.Capacity != 0 || r.Where != "" || r.Spread || r.Units != nil ||
			r.Also != nil || r.Party != "" || r.TTL != (TTL{}) || r.Wait != 0 || r.Grace != 0 ||
			r.HoldLimit != 0 || r.Priority != 0 || r.Labels != nil || r.Reason != "" || r.Reservation != "" {
			return nil, false
		}
		w.Text(`{"resource":`, r.Resource)
		w.Text(`,"holder":`, r.Holder)
		w.Optional(`,"id":`, r.ID)
		w.Optional(`,"session":`, r.Session)
	case ReleaseRequest:
		if r.ID == "" || r.IDs != nil || r.Withdraw {
			return nil, false
		}
		w.Text(`{"id":`, r.ID)
		w.Optional(`,"session":`, r.Session)
	case RenewRequest:
		if r.Note != nil {
			return nil, false
		}
		w.Text(`{"id":`, r.ID)
	default:
		return nil, false
	}
	return w.End()
}
