package storetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// A recorder is the testing.TB of one case. It keeps what failed instead of failing a test, so that
// cases can run beside each other, and a broken store can be shown to be found.
type recorder struct {
	testing.TB
	name   string
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex // guards what follows
	failures []string
	logs     []string
	skipped  string
	cleanups []func()
}

func newRecorder(t testing.TB, name string) *recorder {
	r := &recorder{TB: t, name: name}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

func (r *recorder) Name() string             { return r.name }
func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Cleanup(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, fn)
}

// finish ends the context and cleans up, the last first. One that fails or panics keeps none from the others: in
// virtual time, what is left open ends the program.
func (r *recorder) finish() {
	r.cancel()
	r.mu.Lock()
	n := len(r.cleanups)
	if n == 0 {
		r.mu.Unlock()
		return
	}
	fn := r.cleanups[n-1]
	r.cleanups = r.cleanups[:n-1]
	r.mu.Unlock()
	defer r.finish()
	defer func() {
		if p := recover(); p != nil {
			r.Errorf("panic: %v", p)
		}
	}()
	fn()
}

func (r *recorder) result() result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return result{failures: r.failures, logs: r.logs, skipped: r.skipped}
}

func (r *recorder) fail(text string) {
	// Where in the suite it was: the recorder hides it from package testing.
	for skip := 2; skip < 10; skip++ {
		_, file, line, ok := runtime.Caller(skip)
		if !ok {
			break
		}
		if base := file[strings.LastIndexByte(file, '/')+1:]; base != "recorder.go" && base != "kit.go" {
			text = fmt.Sprintf("%s:%d: %s", base, line, text)
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, text)
}

func (r *recorder) Failed() bool  { return len(r.result().failures) > 0 }
func (r *recorder) Skipped() bool { return r.result().skipped != "" }

func (r *recorder) Fail()                          { r.fail("failed") }
func (r *recorder) FailNow()                       { r.fail("failed"); runtime.Goexit() }
func (r *recorder) Error(args ...any)              { r.fail(fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, a ...any) { r.fail(fmt.Sprintf(format, a...)) }
func (r *recorder) Fatal(args ...any)              { r.fail(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(format string, a ...any) {
	r.fail(fmt.Sprintf(format, a...))
	runtime.Goexit()
}
func (r *recorder) Log(args ...any)                 { r.log(fmt.Sprint(args...)) }
func (r *recorder) Logf(format string, args ...any) { r.log(fmt.Sprintf(format, args...)) }
func (r *recorder) Skip(args ...any)                { r.skip(fmt.Sprint(args...)) }
func (r *recorder) Skipf(format string, a ...any)   { r.skip(fmt.Sprintf(format, a...)) }
func (r *recorder) SkipNow()                        { r.skip("skipped") }

func (r *recorder) log(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, text)
}

func (r *recorder) skip(why string) {
	r.mu.Lock()
	r.skipped = why
	r.mu.Unlock()
	runtime.Goexit()
}
