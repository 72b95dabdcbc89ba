package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A panic while stepping the node or writing the log ends the process, and nothing steps the node before that.
func TestAPanicInTheLoopIsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := behindValve(t, t.TempDir())
		defer closed(t, e)
		said := crashes(t, func() {
			if e.turn.TryLock() {
				e.turn.Unlock()
				t.Error("others may step a node that is in the middle of a step")
			}
		})
		e.looks <- func(*replica.Node) { panic("the state is inconsistent") }
		if text := <-said; !strings.Contains(text, "inconsistent") {
			t.Errorf("it says %q", text)
		}
	})
}

func TestAPanicInACallersWriteIsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &valve{}
		broken := false
		e := startAt(t, t.TempDir(), Config{beforeWrite: func() error {
			if broken {
				panic("the log is inconsistent")
			}
			return v.pass()
		}})
		synctest.Wait()
		said := crashes(t, func() {})
		broken = true
		func() {
			defer func() {
				if recover() != nil {
					t.Error("those who serve requests would recover from it")
				}
			}()
			submit(e, lease("a", time.Minute))
		}()
		select {
		case text := <-said:
			if !strings.Contains(text, "inconsistent") {
				t.Errorf("it says %q", text)
			}
		default:
			t.Error("the server goes on")
		}
		<-e.Failed() // it is the write that does not return, since this process goes on
		fallen(t, e)
	})
}

// crashes has crashes of the process call a function instead, and returns what they say.
func crashes(t *testing.T, do func()) <-chan string {
	said, was := make(chan string, 1), crash
	t.Cleanup(func() { crash = was })
	crash = func(text string) { do(); said <- text }
	return said
}
