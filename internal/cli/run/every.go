package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/cli"
)

// everyFlags are those of a job that must not run too often.
type everyFlags struct {
	every         cli.Span
	countFailures bool
	notDueCode    int
}

func (f *everyFlags) add(flags *pflag.FlagSet) {
	flags.Var(&f.every, "at-most-every", "do nothing, and end with code 79, if it ran on any machine within "+
		"this time, less 5% for a cron that is early")
	flags.BoolVar(&f.countFailures, "count-failures", false, "with --at-most-every: a run that failed counts too")
	flags.IntVar(&f.notDueCode, "not-due-code", cli.ExitNotDue,
		"with --at-most-every: exit code to use if it ran lately")
}

func (f *runFlags) checkEvery(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case !f.every.Given && (given("count-failures") || given("not-due-code")):
		return cli.SeeHelp(cmd, cli.Usage("--count-failures and --not-due-code go with --at-most-every: give that too"))
	case !f.every.Given:
		return nil
	case f.every.Value == 0:
		return cli.SeeHelp(cmd, cli.Usage("--at-most-every is 0s: write how often it may run, such as 1d"))
	case f.notDueCode < 0 || f.notDueCode > 255:
		return cli.SeeHelp(cmd, cli.Usage("--not-due-code is %d: use 0 to 255", f.notDueCode))
	case f.terraform != "" || f.wanted.Shared || given("slots"):
		return cli.SeeHelp(cmd, cli.Usage("--at-most-every needs the resource alone: it does not go with --terraform, "+
			"--shared or --slots"))
	}
	f.wanted.Slots = cli.Slots{Given: true} // all, also of a pool
	return nil
}

// due decides whether a job may run now, by when the last run began that counts, and returns when it
// may. The window ends 5 % early, so that a cron that is a little early one day skips no run. A run
// that began in the future was stamped by a clock that has been set back since: it counts for a
// period at most, or the job would not run until the clock is there again.
func due(counted, now time.Time, period time.Duration) (next time.Time, is bool) {
	next = counted.Add(period - period/20)
	return next, !now.Before(next) || counted.Sub(now) >= period
}

// A ledger is the record of a job's runs, while this run has the lease that fences it.
type ledger struct {
	*job
	everyFlags
	hold  *client.Hold
	runs  cli.Runs
	began time.Time // on this machine's monotonic clock
}

// openLedger reads when the job ran last and writes that it begins now. If it is not due yet, the
// error has the code for that. What cannot be read or written keeps the command from being run.
func (e *job) openLedger(ctx context.Context, h *client.Hold, f everyFlags) (*ledger, error) {
	if h.Slots() != 0 {
		return nil, cli.Failure(leasehold.Refused, "%s has slots, and others may run beside this one: --at-most-every "+
			"needs a name of its own", h.Resource())
	}
	l := &ledger{job: e, everyFlags: f, hold: h, began: time.Now()}
	var now time.Time
	err := l.insist(ctx, func(ctx context.Context) (err error) {
		if now, err = l.granted(ctx); err == nil {
			l.runs, err = cli.ReadRuns(ctx, e.conn.Caller, h.Resource())
		}
		return err
	})
	switch {
	case errors.Is(err, leasehold.ErrRefused):
		return nil, cli.Hint(err, "if nobody needs it: %s", e.conn.Again("delete", cli.RunsRecord(h.Resource())))
	case err != nil:
		return nil, err
	}
	if err := l.checkDue(now); err != nil {
		return nil, err
	}
	machine, _ := os.Hostname()
	l.runs.Last = append(l.runs.Last, cli.JobRun{Started: v1.Time{Time: now}, Outcome: cli.RunBegan, Holder: e.holder,
		Machine: machine, Token: uint64(h.Token()), Every: v1.Duration(f.every.Value)})
	if f.countFailures {
		l.runs.Counted = &v1.Time{Time: now}
	}
	return l, l.write(ctx)
}

// granted returns when the lease was granted, on the server's clock. It is the only clock that all
// machines share, and the lease has it whichever server answers.
func (l *ledger) granted(ctx context.Context) (time.Time, error) {
	lease, err := l.conn.Renew(ctx, v1.RenewRequest{ID: l.hold.ID()}) // its session's renewals count, not this one
	if err != nil || lease.Acquired == nil {
		return time.Time{}, err
	}
	return lease.Acquired.Time, nil
}

// checkDue returns the error that ends a run that is not due.
func (l *ledger) checkDue(now time.Time) error {
	if l.runs.Counted == nil {
		return nil
	}
	counted := l.runs.Counted.Time
	next, is := due(counted, now, l.every.Value)
	name := l.hold.Resource()
	switch {
	case is && counted.After(now):
		l.app.Say("warning: %s last ran at %s, says its record, which is yet to come: the server's clock was set back",
			name, cli.Absolute(counted))
		return nil
	case is:
		return nil
	}
	where := ""
	for _, run := range l.runs.Last {
		if run.Started.Equal(counted) {
			where = " on " + run.Machine
		}
	}
	l.app.Say("%s ran %s ago%s, and may run again in %s: nothing to do", name, cli.Short(now.Sub(counted)), where,
		cli.Short(next.Sub(now)))
	return &cli.CodedError{Code: l.notDueCode}
}

// close writes how the run ended. It tries for as long as the lease lasts: the command has done its
// work, and what nobody recorded is done again. A signal that ended the command has ended ctx too:
// how such a run ended is recorded like any other, but the person who stopped us does not wait for a
// server that does not answer.
func (l *ledger) close(ctx context.Context, end child.End, err error) {
	run := l.runs.Newest()
	run.Duration = v1.Duration(time.Since(l.began).Round(time.Millisecond))
	code := end.Code
	switch {
	case isStopped(err):
		run.Outcome = cli.RunStopped
	case err != nil:
		run.Outcome, code = cli.RunFailed, cli.ExitCode(err)
	case code != 0:
		run.Outcome = cli.RunFailed
	default:
		run.Outcome = cli.RunSucceeded
		l.runs.Counted = &run.Started
	}
	run.Code = &code
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(farewell, cancel) })()
	failure := l.write(writing)
	if failure == nil {
		return
	}
	why := strings.ReplaceAll(failure.Error(), "\n", ": ")
	switch {
	case isStopped(err) && l.hold.Err() != nil:
		why = "the lease is lost" // which is reported next, with its reason
	case writing.Err() != nil:
		why = "no server answered within " + cli.Short(farewell)
	}
	text := fmt.Sprintf("%s: how this run ended could not be recorded: %s", l.hold.Resource(), why)
	if run.Outcome == cli.RunSucceeded && !l.countFailures {
		text += "\nit succeeded, but does not count: it may run again before " + cli.Short(l.every.Value) + " is over"
	}
	l.app.Report(cli.Failure(leasehold.Undecided, "%s", text))
}

func (l *ledger) write(ctx context.Context) error {
	return l.insist(ctx, func(ctx context.Context) error {
		return l.hold.Put(ctx, cli.RunsRecord(l.hold.Resource()), l.runs.Value())
	})
}

// insist does something again and again until a server has answered or the lease is lost.
func (l *ledger) insist(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.hold.Context(), cancel)()
	var last error
	for n := 1; ; n++ {
		err := do(ctx)
		switch lost := l.hold.Err(); {
		case lost != nil && last != nil:
			return fmt.Errorf("%w: %w", lost, last)
		case lost != nil:
			return lost
		}
		last = err
		if !v1.Transient(err) || !(v1.Backoff{}).Sleep(ctx, n) {
			return err
		}
	}
}
