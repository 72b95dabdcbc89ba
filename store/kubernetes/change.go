package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold"
)

// tries is how often a Lease may change between a look and the write that relies on it.
const tries = 20

// What decide can say instead of an answer.
var (
	errLook  = errors.New("what was seen before is not enough: ask the API server")
	errAgain = errors.New("decide again after the write")
)

// change reads the Lease of a resource and writes what decide returns for it. If somebody else writes in
// between, it starts again. decide returns nil if nothing is to be written. It gets what was seen last at first, which
// saves a request: a write that relies on it fails if it is no longer so.
func (s *Store) change(ctx context.Context, resource string, decide func(view) (*object, error)) (view, error) {
	if err := s.ready(); err != nil {
		return view{}, err
	}
	name := objectName(s.namespace, resource)
	v, known := s.watch.known(name)
	if !known && s.creates.Load() {
		v, known = view{cached: true}, true // as if there were none; if there is one, it cannot be created
	}
	for n := range tries {
		if !known {
			var err error
			if v, err = s.get(ctx, name); err != nil {
				return v, err
			}
			if v.object != nil {
				s.creates.Store(false)
			}
		}
		next, err := decide(v)
		if known = false; errors.Is(err, errLook) {
			continue
		}
		if again := errors.Is(err, errAgain); !again && (err != nil || next == nil) {
			return v, err
		}
		after, conflict, writeErr := s.write(ctx, next)
		switch {
		case writeErr != nil:
			return v, writeErr
		case conflict && next.Meta.UID == "": // it exists
		case conflict:
			if err := backOff(ctx, n); err != nil {
				return v, err
			}
		case err == nil:
			return after, nil
		default:
			v, known = after, true
		}
	}
	return v, &leasehold.Error{Code: leasehold.Unavailable,
		Message: fmt.Sprintf("the Lease of %s changed %d times during the request: try again", resource, tries)}
}

// backOff sleeps before the next look, so that many who want the same Lease do not meet again.
func backOff(ctx context.Context, n int) error {
	timer := time.NewTimer(rand.N(min(5*time.Millisecond<<n, 300*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// path returns the path of a Lease; of all of them if it has no name.
func (s *Store) path(name string) string {
	path := "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(s.space) + "/leases"
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

// get asks for a Lease. If there is none, the view has no object.
func (s *Store) get(ctx context.Context, name string) (view, error) {
	o := new(object)
	status, err := s.send(ctx, http.MethodGet, s.path(name), nil, o)
	if err != nil {
		return view{}, err
	}
	if status == http.StatusNotFound {
		s.watch.gone(name)
		return view{}, nil
	}
	return s.watch.saw(o), nil
}

// write creates or replaces a Lease. conflict says that it is not as it was when it was read. A Lease that
// was deleted meanwhile is a conflict too, because the uid is part of the condition.
func (s *Store) write(ctx context.Context, o *object) (v view, conflict bool, err error) {
	method, path := http.MethodPost, s.path("")
	if o.Meta.UID != "" {
		method, path = http.MethodPut, s.path(o.Meta.Name)
	}
	s.watch.trying(o)
	after := new(object)
	status, err := s.send(ctx, method, path, o, after)
	if method == http.MethodPost {
		s.creates.Store(err == nil && status == http.StatusCreated)
	}
	switch {
	case err != nil:
		s.watch.doubt(o.Meta.Name)
		return v, false, err
	case status == http.StatusNotFound && method == http.MethodPost:
		return v, false, refused("there is no Kubernetes namespace %s: kubectl create namespace %s", s.space, s.space)
	case status != http.StatusOK && status != http.StatusCreated:
		s.watch.doubt(o.Meta.Name)
		return v, true, nil
	}
	return s.watch.saw(after), false, nil
}
