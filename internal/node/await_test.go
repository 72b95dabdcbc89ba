package node

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A failing is an engine that fails when it is told to, and whose Close may hang.
type failing struct {
	failed chan struct{}
	hangs  chan struct{} // nil: Close does not
}

var errFailed = errors.New("the disk fails")

func (f *failing) Failed() <-chan struct{} { return f.failed }
func (f *failing) Failure() error          { return errFailed }
func (f *failing) Close() error {
	if f.hangs != nil {
		<-f.hangs
	}
	return nil
}

// After a failure the process ends, whatever hangs: requests that are open, or the disk.
func TestAFailureEndsTheProcessWithinTwoSeconds(t *testing.T) {
	for name, test := range map[string]struct{ requests, disk bool }{
		"nothing hangs": {}, "requests": {requests: true}, "the disk": {disk: true}, "both": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hangs, served := make(chan struct{}), make(chan error, 1)
				f := &failing{failed: make(chan struct{})}
				if test.disk {
					f.hangs = hangs
				}
				stop := func() {
					if !test.requests {
						served <- nil
					}
				}
				time.AfterFunc(time.Minute, func() { close(f.failed) })
				began := time.Now()
				if err := await(f, served, stop); !errors.Is(err, errFailed) {
					t.Errorf("it returns %v", err)
				}
				if took := time.Since(began) - time.Minute; took >= 2*time.Second {
					t.Errorf("it took %v", took)
				}
				close(hangs)
				if test.requests {
					served <- nil
				}
			})
		})
	}
}

// A failure while the server stops by order does not keep it from ending either.
func TestAFailureWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{failed: make(chan struct{}), hangs: make(chan struct{})}
		served := make(chan error, 1)
		served <- nil
		time.AfterFunc(time.Second, func() { close(f.failed) })
		began := time.Now()
		if err := await(f, served, func() {}); !errors.Is(err, errFailed) || time.Since(began) >= 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		close(f.hangs)
	})
}
