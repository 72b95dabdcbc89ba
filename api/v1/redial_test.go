package v1

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
)

// A limit that was reached is the only sign of a dead connection: only then is the server
// dialled again.
func TestATimedOutAttemptRedials(t *testing.T) {
	for name, c := range map[string]struct {
		takes    time.Duration
		err      error
		redialed int
	}{
		"an answer":             {0, nil, 0},
		"a quick failure":       {0, leasehold.ErrUnavailable, 0},
		"the limit was reached": {2 * time.Second, leasehold.ErrUndecided, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := NewServers(CallerConfig{})
				if err != nil {
					t.Fatal(err)
				}
				used := s.all[0].endpoint.connections
				_ = s.Once(t.Context(), time.Second, func(context.Context, *Caller) error {
					time.Sleep(c.takes)
					return c.err
				})
				if used.Dialled() != c.redialed {
					t.Errorf("generation %d", used.Dialled())
				}
			})
		})
	}
}
