package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// The exit codes. Scripts depend on them: add, never change. They follow sysexits.h where that has
// a fitting one, and shells from 126 on.
const (
	ExitAlarm       = 1
	ExitUsage       = 64
	ExitConflict    = 65
	ExitNotFound    = 66
	ExitUnavailable = 69
	ExitBug         = 70
	ExitUnfit       = 71
	exitLimited     = 73
	exitUndecided   = 74
	ExitHeld        = 75
	ExitLost        = 76
	exitDenied      = 77
	ExitNotDue      = 79
	ExitNoRun       = 126
	ExitNoCommand   = 127
	exitSignal      = 128 // plus the number of the signal
)

// exitMeanings returns the table of exit codes that help shows.
func exitMeanings() []struct{ code, meaning string } {
	return []struct{ code, meaning string }{
		{"0", "done"},
		{"1", "something needs attention (alarms --check, cluster status, cert show)"},
		{"64", "the command or the request is wrong, or conflicts with the current state"},
		{"65", "the record exists already, or has changed (put --create, --if-revision)"},
		{"66", "not found"},
		{"69", "no server could be reached, or it cannot act now: try again"},
		{"70", "a bug, or damaged data"},
		{"71", "this machine is not fit to hold leases: leasehold doctor says why"},
		{"73", "a limit was reached"},
		{"74", "the outcome is unknown: look, or repeat it with the same id"},
		{"75", "somebody else holds it"},
		{"76", "you no longer hold it"},
		{"77", "permission denied"},
		{"79", "run --at-most-every: it ran lately, so there is nothing to do"},
		{"126", "run, elect: the command cannot be run"},
		{"127", "run, elect: command not found; any other code is the command's own"},
		{"130", "stopped by ctrl-C (143: by SIGTERM)"},
	}
}

// exitHelp returns the exit codes and what they mean.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:")
	for _, e := range exitMeanings() {
		fmt.Fprintf(&b, "\n  %-4s %s", e.code, e.meaning)
	}
	return b.String()
}

// ExitCode returns the exit code of an error. The order of the cases matters: an error can wrap
// several of these, and the first that says most about what a script should do wins.
func ExitCode(err error) int {
	var (
		stopped SignalError
		failure *leasehold.Error
		lost    *outputError
		unfit   UnfitError
		coded   *CodedError
		alarms  Alarmed
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, &stopped):
		return exitSignal + int(stopped)
	case errors.As(err, &lost):
		return exitUndecided
	case errors.As(err, &alarms):
		return ExitAlarm
	case errors.As(err, &failure):
		return exitOf(failure.Code)
	case errors.As(err, &unfit):
		return ExitUnfit
	case errors.Is(err, leasehold.ErrLost): // as the client says it
		return ExitLost
	}
	return ExitBug
}

// exitOf returns the exit code of an error code. A refused request shares its exit code with an
// invalid one: repeating it changes nothing, somebody has to ask for something else.
func exitOf(code leasehold.Code) int {
	switch code {
	case leasehold.Held:
		return ExitHeld
	case leasehold.Lost:
		return ExitLost
	case leasehold.NotFound:
		return ExitNotFound
	case leasehold.Invalid, leasehold.Refused:
		return ExitUsage
	case leasehold.Denied:
		return exitDenied
	case leasehold.Limited:
		return exitLimited
	case leasehold.Unavailable:
		return ExitUnavailable
	case leasehold.Undecided:
		return exitUndecided
	}
	return ExitBug
}

// A SignalError is the error of a command that was stopped by a signal.
type SignalError syscall.Signal

func (s SignalError) Error() string {
	name := map[syscall.Signal]string{syscall.SIGINT: "ctrl-C", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP",
		syscall.SIGQUIT: "SIGQUIT"}[syscall.Signal(s)]
	return "stopped by " + cmp.Or(name, syscall.Signal(s).String())
}

// A CodedError ends the program with a code that somebody else chose: the command that it
// ran, or the caller. Without an error there is nothing to report.
type CodedError struct {
	Code int
	Err  error
}

func (e *CodedError) Unwrap() error { return e.Err }

func (e *CodedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("it ends with code %d", e.Code)
	}
	return e.Err.Error()
}

// interrupted replaces an error by the signal that caused it: somebody who interrupts a call knows that
// it was cut off. The code of a command that was run is kept, because that command got the signal
// too and decided itself how to end.
func interrupted(ctx context.Context, err error) error {
	var (
		stopped SignalError
		coded   *CodedError
	)
	if errors.As(err, &coded) {
		return err
	}
	if errors.As(context.Cause(ctx), &stopped) {
		return stopped
	}
	return err
}

// An outputError means that the work was done but the output could not be written. It counts as
// undecided: a script must not conclude that nothing happened.
type outputError struct{ Err error }

func (e *outputError) Error() string { return "the output could not be written: " + e.Err.Error() }
func (e *outputError) Unwrap() error { return e.Err }

// A Hinted error ends with what to try next.
type Hinted struct {
	Err  error
	hint string
}

func (e *Hinted) Error() string { return e.Err.Error() }
func (e *Hinted) Unwrap() error { return e.Err }

// Hint adds to an error what to try next.
func Hint(err error, format string, args ...any) error {
	return &Hinted{err, fmt.Sprintf(format, args...)}
}

// Several are the errors of a command that was given several things; the first gives the exit code.
type Several []error

func (s Several) Error() string   { return errors.Join(s...).Error() }
func (s Several) Unwrap() []error { return s }

// Usage returns the error of a command that was called wrongly.
func Usage(format string, args ...any) error { return Failure(leasehold.Invalid, format, args...) }

// Failure returns an error with a code.
func Failure(code leasehold.Code, format string, args ...any) error {
	return &leasehold.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Report prints an error, for a person or as JSON. A signal, or the code of a command that was run,
// is not reported: the person knows already.
func (a *App) Report(err error) {
	var (
		stopped SignalError
		coded   *CodedError
	)
	switch {
	case errors.As(err, &stopped), errors.As(err, &coded) && coded.Err == nil:
		return
	case isJSON(a.Output):
		a.reportJSON(err)
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(a.Stderr, "leasehold: %s\n", Printable(line))
	}
	var next *Hinted
	if errors.As(err, &next) {
		a.Say("%s", next.hint)
	}
}

// reportJSON writes an object for each error, so that a program can tell which of several ids
// failed.
func (a *App) reportJSON(err error) {
	encoder := json.NewEncoder(a.Stderr)
	encoder.SetEscapeHTML(false)
	for _, e := range apart(err) {
		// If standard error is closed, nobody wants to know.
		_ = encoder.Encode(Problem(e))
	}
}

// apart returns the errors of a command that did several things.
func apart(err error) []error {
	var list Several
	if errors.As(err, &list) {
		return list
	}
	return []error{err}
}

// A told error is what a program reads: a problem as the API writes it, with the exit code in place
// of the HTTP status.
type told struct {
	Type   string `json:"type"`
	Code   string `json:"code"`
	Exit   int    `json:"exit"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"` // what to try next

	// If somebody is in the way.
	Resource    string   `json:"resource,omitempty"`
	Holder      string   `json:"holder,omitempty"`
	Since       *v1.Time `json:"since,omitempty"`
	Expires     *v1.Time `json:"expires,omitempty"`
	AvailableAt *v1.Time `json:"available_at,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Token       uint64   `json:"token,omitempty"`
	Waiting     *int     `json:"waiting,omitempty"`
	Position    int      `json:"position,omitempty"`
}

// Problem returns an error as a program reads it.
func Problem(err error) told {
	code := "bug"
	var (
		failure *leasehold.Error
		unfit   UnfitError
		alarms  Alarmed
	)
	switch {
	case errors.As(err, &alarms):
		code = "alarm"
	case errors.As(err, &failure):
		code = failure.Code.String()
	case errors.As(err, &unfit):
		code = "unfit"
	}
	t := told{Type: "urn:leasehold:problem:" + code, Code: code, Exit: ExitCode(err), Detail: err.Error()}
	var next *Hinted
	if errors.As(err, &next) {
		t.Hint = next.hint
	}
	if failure != nil && failure.Lease != nil {
		l := failure.Lease
		t.Resource, t.Holder, t.Reason, t.Token = l.Resource, l.Holder, l.Reason, uint64(l.Token)
		t.Since, t.Expires, t.AvailableAt = moment(l.Acquired), moment(l.Expires), moment(l.AvailableAt)
		t.Waiting, t.Position = &failure.Waiting, failure.Position
	}
	return t
}

func moment(t time.Time) *v1.Time {
	if t.IsZero() {
		return nil
	}
	return &v1.Time{Time: t}
}

// An UnfitError says why this machine should hold no leases.
type UnfitError string

func (e UnfitError) Error() string { return string(e) }

// Alarmed is the error of a check that found something wrong, for monitoring.
type Alarmed string

func (e Alarmed) Error() string { return string(e) }
