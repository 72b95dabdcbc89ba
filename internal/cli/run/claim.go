package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
)

type claimFlags struct {
	runFlags
	loop bool
}

// Claim returns the command claim.
func Claim(a *cli.App) *cobra.Command {
	f := claimFlags{runFlags: runFlags{jobFlags: jobFlags{labels: cli.Labels{}}}}
	cmd := &cobra.Command{
		Use:   "claim FOLDER/ -- COMMAND [ARG]…",
		Short: "Run a command for the next task of a folder",
		Long: `Claim takes the next task of a folder, or waits for one, and runs the command for it. The task
is done if the command ends with code 0; otherwise it failed, and is tried again, behind the
others, while it has attempts left. Claim ends with the code of the command.

The command finds the path of the task in LEASEHOLD_TASK, its value in LEASEHOLD_TASK_VALUE
if that is text of at most 32 KiB (leasehold get "$LEASEHOLD_TASK" prints any), and the token
in LEASEHOLD_TOKEN. If this machine is lost, the task is offered to others again.

If you stop claim with INT, TERM or HUP, the task is given back and costs no attempt. With
--loop it goes on with the next task until you do; with --loop and -n until there is none.

Signals, terminal, environment and codes are those of run: see leasehold help run.`,
		Example: `  leasehold claim jobs/ -- ./resize.sh
  leasehold claim jobs/ --loop --ttl 1m -- ./work.sh
  leasehold claim jobs/ --loop -n -- ./work.sh   # until there is nothing left`,
		Args:              func(cmd *cobra.Command, args []string) error { return f.splitClaim(cmd, args) },
		ValidArgsFunction: completes(a),
	}
	cmd.Flags().SetInterspersed(slices.Contains(a.Args, "--"))
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return claimJobs(ctx, a, c, f)
	})
	flags := cmd.Flags()
	flags.BoolVar(&f.loop, "loop", false, "go on with the next task")
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "if there is no task, end at once with code 75")
	flags.VarP(&f.wait, "wait", "w", "how long to wait for a task at most (default: as long as it takes)")
	flags.IntVarP(&f.heldCode, "held-code", "E", cli.ExitHeld, "exit code to use if there is no task")
	f.jobFlags.add(a, cmd)
	a.ClientFlags(cmd)
	return cmd
}

func (f *claimFlags) splitClaim(cmd *cobra.Command, args []string) error {
	names, argv, err := nameAndCommand(cmd, args)
	switch {
	case err != nil:
		return err
	case len(names) > 1 || !leasehold.IsTaskFolder(names[0]):
		return cli.SeeHelp(cmd, cli.Usage("claim takes one folder, with a slash at its end, such as jobs/"))
	}
	f.names, f.argv = names, argv
	return nil
}

// claimJobs runs the command for one task, or for one after the other.
func claimJobs(ctx context.Context, a *cli.App, c *cli.Conn, f claimFlags) error {
	if _, err := child.Find(f.argv[0]); err != nil {
		return noCommand(err)
	}
	e, ctx, err := beginJob(ctx, a, c, f.jobFlags)
	if err != nil {
		return err
	}
	defer e.stop()
	defer e.close()
	for n := 0; ; n++ {
		task, err := e.client.Claim(ctx, f.names[0], f.options(e)...)
		switch {
		case errors.Is(err, leasehold.ErrHeld) && n > 0 && f.noWait:
			return nil // all are done
		case err != nil:
			return f.explain(a, c, f.names, err)
		}
		end, err := e.doTask(task)
		switch {
		case err != nil && !isStopped(err):
			return err
		case err != nil && f.loop:
			a.Report(err) // the next one may go better
		case err != nil:
			return err
		case !f.loop || isAskedToStop(end):
			return &cli.CodedError{Code: end.Code}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// doTask runs the command for a task, and says what became of it.
func (e *job) doTask(task *client.Task) (child.End, error) {
	e.app.Say("doing %s: token %d", task.Resource(), task.Token())
	e.taskEnv = map[string]string{config.EnvTask: task.Resource()}
	if value := string(task.Value()); len(value) <= maxTaskValue && !strings.Contains(value, "\x00") {
		e.taskEnv[config.EnvTaskValue] = value
	}
	end, err := e.run([]*client.Hold{task.Hold})
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	switch {
	case err != nil && isStopped(err):
		_ = task.Release(ctx) // it was about to end, and may have been renewed since
		return end, err
	case err != nil || isAskedToStop(end):
		return end, errors.Join(err, task.Release(ctx))
	case end.Code == 0:
		err = task.Done(ctx, "")
	default:
		err = task.Fail(ctx, fmt.Sprintf("exit code %d", end.Code))
	}
	if err != nil {
		e.silent = !errors.Is(err, client.ErrLost)
		return end, &cli.CodedError{Code: cli.ExitLost, Err: fmt.Errorf("%s ended with code %d, which could not be "+
			"recorded: %w", task.Resource(), end.Code, err)}
	}
	return end, nil
}

// maxTaskValue is the longest value that is passed on in the environment, whose size is limited.
const maxTaskValue = 32 << 10

// isAskedToStop reports whether somebody ended the command, and not a fault in it.
func isAskedToStop(end child.End) bool {
	return fromKeyboard(end) || end.Signal == syscall.SIGTERM || end.Signal == syscall.SIGHUP
}
