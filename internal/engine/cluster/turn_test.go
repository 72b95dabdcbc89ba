package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A valve is before a log: while it is shut, writes hang.
type valve struct {
	mu     sync.Mutex
	opened chan struct{} // nil: it is open
	err    error         // what writes meet
	hang   int           // how many do
}

// pass returns when the valve is open.
func (v *valve) pass() error {
	v.mu.Lock()
	opened, err := v.opened, v.err
	if opened != nil {
		v.hang++
	}
	v.mu.Unlock()
	if opened != nil {
		<-opened
	}
	return err
}

func (v *valve) shut() (open func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	opened := make(chan struct{})
	v.opened = opened
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.opened = nil
		close(opened)
	}
}

// hanging returns how many writes have met a shut valve.
func (v *valve) hanging() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.hang
}

// behindValve starts an engine whose writes have to get past a valve, and waits until it has nothing to do.
func behindValve(t *testing.T, dir string) (*Engine, *valve) {
	t.Helper()
	v := &valve{}
	e := startAt(t, dir, Config{beforeWrite: v.pass})
	synctest.Wait()
	return e, v
}

// fallen closes an engine that failed. It leaves its log as it is, and that would keep the bubble from ending.
func fallen(t *testing.T, e *Engine) {
	t.Helper()
	if err := errors.Join(e.Close(), e.disk.CloseLog()); err != nil {
		t.Error(err)
	}
}

// An outcome is what a submission came to.
type outcome struct {
	answers int
	answer  core.Answer
	err     error
}

// submit submits a command.
func submit(e *Engine, c core.Command) *outcome {
	o := &outcome{}
	e.Submit([]engine.Submission{{Ctx: context.Background(), Command: c, Done: func(a core.Answer, err error) {
		o.answers++
		o.answer, o.err = a, err
	}}})
	return o
}

// submitted submits in a goroutine of its own. The outcome may be looked at once the channel is closed.
func submitted(e *Engine, c core.Command) (*outcome, <-chan struct{}) {
	o, returned := &outcome{}, make(chan struct{})
	go func() {
		defer close(returned)
		*o = *submit(e, c)
	}()
	synctest.Wait()
	return o, returned
}

// A command that comes when nothing else does is answered before Submit returns: no other goroutine has a part in it.
func TestALoneCommandIsCarriedOutByItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := behindValve(t, t.TempDir())
		defer closed(t, e)
		for _, c := range []core.Command{lease("a", time.Minute), &core.Renew{Namespace: "default", ID: "id-a"}} {
			if o := submit(e, c); o.answers != 1 || o.err != nil {
				t.Errorf("%T: %d answers, %v", c, o.answers, o.err)
			}
			synctest.Wait() // the loop may have to set its alarm
		}
	})
}

// Its lease ends in time, although the loop slept when it was granted.
func TestTheAlarmIsSetForWhatACallerDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := behindValve(t, t.TempDir())
		defer closed(t, e)
		submit(e, lease("a", time.Hour))
		synctest.Wait()
		o, began := submit(e, lease("b", 2*time.Second)), time.Now()
		if o.err != nil {
			t.Fatal(o.err)
		}
		came, stop := e.Feed().Await("default", "id-b")
		defer stop()
		<-came
		if late := time.Since(began) - 2*time.Second; late < 0 || late > 20*time.Millisecond {
			t.Errorf("it ended %v late", late)
		}
	})
}

// While the write of one caller hangs, others are not stuck with it: they get their say when their time is over, and
// after five seconds the server gives up for all.
func TestAWriteHangsInACallersGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, v := behindValve(t, t.TempDir())
		open := v.shut()
		first, returned := submitted(e, lease("a", time.Minute))
		second := submit(e, lease("b", time.Minute)) // returns: the first one has the write
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Do(ctx, lease("c", time.Minute)); !errors.Is(err, leasehold.ErrUndecided) {
			t.Errorf("the third caller got %v", err)
		}
		if err := e.Read(ctx, func(core.View) {}); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("a reader got %v", err)
		}
		select {
		case <-e.Failed():
			t.Fatal("it gave up too early")
		case <-time.After(replica.StalledWrite - 2*time.Second):
		}
		<-e.Failed()
		synctest.Wait()
		if !errors.Is(second.err, leasehold.ErrUnavailable) || second.answers != 1 {
			t.Errorf("the second caller got %v", second.err)
		}
		open()
		<-returned
		if !errors.Is(first.err, leasehold.ErrUndecided) || first.answers != 1 {
			t.Errorf("the first caller got %v", first.err)
		}
		fallen(t, e)
	})
}

// A server that is closed while a caller writes waits for that, and the caller has its answer.
func TestAServerIsClosedWhileACallerWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e, v := behindValve(t, dir)
		open := v.shut()
		o, returned := submitted(e, lease("a", time.Minute))
		ended := make(chan error, 1)
		go func() { ended <- e.Close() }()
		synctest.Wait()
		if late := submit(e, lease("b", time.Minute)); !errors.Is(late.err, leasehold.ErrUnavailable) {
			t.Errorf("who came later got %v", late.err)
		}
		open()
		<-returned
		if err := <-ended; err != nil || o.err != nil || o.answers != 1 {
			t.Errorf("close: %v, the caller: %v", err, o.err)
		}
		if o := submit(e, lease("c", time.Minute)); !errors.Is(o.err, leasehold.ErrUnavailable) {
			t.Errorf("after the end: %v", o.err)
		}
		e, _ = behindValve(t, dir)
		defer closed(t, e)
		if o := submit(e, &core.Renew{Namespace: "default", ID: "id-a"}); o.err != nil {
			t.Errorf("after a restart: %v", o.err)
		}
	})
}

// A server that was removed frees its directory only when no caller writes there.
func TestAServerIsRemovedWhileACallerWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, v := behindValve(t, t.TempDir())
		open := v.shut()
		o, returned := submitted(e, lease("a", time.Minute))
		e.events <- replica.Expelled{}
		<-e.Failed()
		ended := make(chan error, 1)
		go func() { ended <- e.Close() }()
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("the directory is free, and a caller writes")
		}
		open()
		<-returned
		if err := <-ended; err != nil || !errors.Is(o.err, leasehold.ErrUndecided) || o.answers != 1 {
			t.Errorf("close: %v, the caller: %v", err, o.err)
		}
	})
}

// A write that fails in a caller's goroutine ends the server as any other does.
func TestTheDiskIsFullForACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, v := behindValve(t, t.TempDir())
		v.mu.Lock()
		v.err = syscall.ENOSPC
		v.mu.Unlock()
		o := submit(e, lease("a", time.Minute))
		<-e.Failed()
		if !errors.Is(o.err, leasehold.ErrUndecided) || !errors.Is(e.Failure(), replica.ErrNoRoom) {
			t.Errorf("the caller got %v, and the server ends by %v", o.err, e.Failure())
		}
		fallen(t, e)
	})
}

// A leader whose write hangs in the goroutine of a caller is deposed like any other, and what it wrote counts only if
// the new leader has it.
func TestTheLeadIsLostWhileACallerWrites(t *testing.T) {
	inVirtualTime(t, theLeadIsLostWhileACallerWrites)
}

func theLeadIsLostWhileACallerWrites(t *testing.T, s *site) {
	s.valves = map[string]*valve{"n1": {}, "n2": {}, "n3": {}}
	s.begin("n1", "n2", "n3")
	old := s.leader()
	s.do(old, lease("before", time.Hour))
	synctest.Wait()
	v := s.valves[old.self.Name]
	open := v.shut()
	o, returned := submitted(old, lease("a", time.Hour))
	if v.hanging() == 0 {
		t.Fatal("nobody writes")
	}
	var next *Engine
	s.await("another leader", func() bool {
		for _, e := range s.engines {
			if e != old && e.view.Load().serving {
				next = e
			}
		}
		return next != nil
	})
	s.do(next, lease("b", time.Hour))
	open()
	<-returned
	s.await("an answer", func() bool { synctest.Wait(); return o.answers > 0 })
	holds := s.holds(next, "a")
	if o.err == nil && holds != 1 || errors.Is(o.err, leasehold.ErrUnavailable) && holds != 0 {
		t.Errorf("the caller got %v, and %d hold it", o.err, holds)
	}
	if s.holds(old, "a") != holds || s.holds(old, "b") != 1 {
		t.Error("the servers differ")
	}
}

// A panic in a step ends the process, also where those who serve requests would recover from it.
func TestAPanicInAStepIsTheEnd(t *testing.T) {
	said := make(chan string, 1)
	defer func(was func(string)) { crash = was }(crash)
	crash = func(text string) { said <- text }
	func() {
		defer decisive()
		panic("the state is inconsistent")
	}()
	if text := <-said; !strings.Contains(text, "inconsistent") || !strings.Contains(text, "turn_test.go") {
		t.Errorf("it says %q", text)
	}
}
