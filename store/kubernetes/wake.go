package kubernetes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// watchAgain is how long after the end of a watch the next one is begun.
const watchAgain = time.Second

// A waker watches a Lease while somebody waits for it. If the role has no watch, nothing is received, and the
// waiter polls.
type waker struct {
	s    *Store
	name string
	free chan struct{} // receives when it is free

	cancel  context.CancelFunc // nil: it was not started
	running sync.WaitGroup
}

// start begins to watch, once.
func (w *waker) start(ctx context.Context) {
	if w.cancel != nil {
		return
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.running.Go(func() {
		for w.s.watchLease(ctx, w.name, w.free) && ctx.Err() == nil {
			select {
			case <-time.After(watchAgain):
			case <-ctx.Done():
			}
		}
	})
}

func (w *waker) stop() {
	if w.cancel != nil {
		w.cancel()
		w.running.Wait()
	}
}

// watchLease watches until the stream ends. It reports whether another one is worth it.
func (s *Store) watchLease(ctx context.Context, name string, free chan<- struct{}) bool {
	// Without a version it begins with the Lease as it is.
	query := url.Values{"watch": {"1"}, "fieldSelector": {"metadata.name=" + name}}
	response, err := s.start(ctx, http.MethodGet, s.path("")+"?"+query.Encode(), nil, false)
	if err != nil {
		return true
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusForbidden {
		s.log.WarnContext(ctx, "waiters poll, because the role has no verb watch on leases.coordination.k8s.io",
			"namespace", s.space)
		return false
	}
	events := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if events.Decode(&event) != nil {
			return true
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			var o object
			if json.Unmarshal(event.Object, &o) != nil || s.watch.saw(&o).object.Spec.HolderIdentity != "" {
				continue
			}
		case "DELETED":
			s.watch.gone(name)
		default:
			return true
		}
		select {
		case free <- struct{}{}:
		default:
		}
	}
}
