package jsonbody

import (
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/flatjson"
	"github.com/leasehold/leasehold/internal/resp"
)

// flat reads the requests that come most often, in the form that they usually have. Where it reports false, nothing
// that it read counts.
func flat(body []byte, into any) bool {
	var ok bool
	switch r := into.(type) {
	case *v1.AcquireRequest:
		if ok = flatjson.Read(body, (*acquire)(r).member); !ok {
			*r = v1.AcquireRequest{}
		}
	case *v1.ReleaseRequest:
		if ok = flatjson.Read(body, (*release)(r).member); !ok {
			*r = v1.ReleaseRequest{}
		}
	case *v1.RenewRequest:
		if ok = flatjson.Read(body, (*renew)(r).member); !ok {
			*r = v1.RenewRequest{}
		}
	}
	return ok
}

type (
	acquire v1.AcquireRequest
	release v1.ReleaseRequest
	renew   v1.RenewRequest
)

func (r *acquire) member(name []byte, v resp.Value) bool {
	switch string(name) {
	case "resource":
		return text(&r.Resource, v)
	case "holder":
		return text(&r.Holder, v)
	case "id":
		return text(&r.ID, v)
	case "session":
		return text(&r.Session, v)
	case "ttl":
		d, err := v1.ParseDuration(string(v.Text))
		r.TTL = v1.TTL{Duration: v1.Duration(d)}
		return v.Kind == resp.Bulk && err == nil && d > 0
	}
	return false
}

func (r *release) member(name []byte, v resp.Value) bool {
	switch string(name) {
	case "id":
		return text(&r.ID, v)
	case "session":
		return text(&r.Session, v)
	}
	return false
}

func (r *renew) member(name []byte, v resp.Value) bool { return string(name) == "id" && text(&r.ID, v) }

func text(into *string, v resp.Value) bool {
	*into = string(v.Text)
	return v.Kind == resp.Bulk
}
