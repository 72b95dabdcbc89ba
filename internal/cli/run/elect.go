package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/cli"
)

type electFlags struct {
	jobFlags
	name    string
	value   string
	restart bool
}

// Elect returns the command elect.
func Elect(a *cli.App) *cobra.Command {
	f := electFlags{jobFlags: jobFlags{labels: cli.Labels{}}}
	cmd := &cobra.Command{
		Use:   "elect NAME -- COMMAND [ARG]…",
		Short: "Run a command on one machine of many: the one that leads",
		Long: `Elect campaigns for the resource, and runs the command while it leads. When the lead is
lost the command is stopped as by run, SIGTERM and then SIGKILL before anybody else can
lead, and elect campaigns again. Start it on every machine, and one of them runs the command.

While it leads it publishes a value, in a record of the same name as the resource, that only
the leader can write and that ends with the lead: leasehold get NAME reads it. It is
the holder's name unless --value says something better, such as an address.

When the command ends by itself, elect resigns and ends with the command's code; with
--restart it campaigns again, behind those who wait. A signal that asks elect to stop is
passed on to the command, and ends elect when the command has ended.

Signals, terminal, environment and codes are those of run: see leasehold help run.`,
		Example: `  leasehold elect scheduler -- ./scheduler --verbose
  leasehold elect db/primary --value "$(hostname):5432" -- ./serve-as-primary
  leasehold elect scheduler --restart --ttl 15s -- ./scheduler`,
		Args:              func(cmd *cobra.Command, args []string) error { return f.split(cmd, args) },
		ValidArgsFunction: completes(a),
	}
	cmd.Flags().SetInterspersed(slices.Contains(a.Args, "--"))
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return electJob(ctx, a, c, f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.value, "value", "", "what the leader publishes (default: who it is)")
	flags.BoolVar(&f.restart, "restart", false, "campaign again when the command has ended")
	f.add(a, cmd)
	a.ClientFlags(cmd)
	return cmd
}

func (f *electFlags) split(cmd *cobra.Command, args []string) error {
	names, argv, err := nameAndCommand(cmd, args)
	if err == nil && len(names) > 1 {
		err = cli.SeeHelp(cmd, cli.Usage("%s takes one name, not also %q: %s", cmd.Name(), names[1], cli.UsageOf(cmd)))
	}
	if err != nil {
		return err
	}
	f.name, f.argv = names[0], argv
	return nil
}

// electJob campaigns and runs the command, again and again until it ends by itself.
func electJob(ctx context.Context, a *cli.App, c *cli.Conn, f electFlags) error {
	if _, err := child.Find(f.argv[0]); err != nil {
		return noCommand(err)
	}
	f.subject = f.name
	e, ctx, err := beginJob(ctx, a, c, f.jobFlags)
	if err != nil {
		return err
	}
	defer e.stop()
	defer e.close()
	for {
		began := a.Now()
		end, err := f.lead(ctx, e)
		switch {
		case err == nil && f.restart && ctx.Err() == nil && !fromKeyboard(end):
			if !breathe(ctx, a.Now().Sub(began)) {
				return context.Cause(ctx)
			}
		case err == nil:
			return &cli.CodedError{Code: end.Code}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !isStopped(err):
			return err
		}
	}
}

// lead campaigns and runs the command until that ends by itself. A lead that is lost meanwhile is
// campaigned for again: by Client.Elect if it noticed, else by the loop in electJob.
func (f *electFlags) lead(ctx context.Context, e *job) (end child.End, err error) {
	ctx, resign := context.WithCancel(ctx)
	defer resign()
	ended, resigned := make(chan struct{}), make(chan error, 1)
	go func() {
		resigned <- e.client.Elect(ctx, f.name, []byte(cmp.Or(f.value, e.holder)),
			func(_ context.Context, h *client.Hold) error {
				e.app.Say("leading %s: token %d", f.name, h.Token())
				how, err := e.run([]*client.Hold{h})
				switch {
				case isStopped(err):
					e.app.Report(err)
				case err == nil:
					end = how
					resign() // even if the lead is lost in this moment
					close(ended)
				}
				return err
			}, e.options()...)
	}()
	select {
	case err = <-resigned:
	case <-ended:
		e.sayGoodbye(resigned, f.name)
	}
	select {
	case <-ended:
		return end, nil
	default:
		return end, err
	}
}

// sayGoodbye waits briefly until a server knows that nobody leads.
func (e *job) sayGoodbye(resigned <-chan error, name string) {
	select {
	case <-resigned:
	case <-time.After(farewell):
		e.app.Say("warning: no server could be told that %s is free: it will be when its TTL is over", name)
		e.silent = true
	}
}

// isStopped reports whether the command was stopped because the lead was lost.
func isStopped(err error) bool {
	var coded *cli.CodedError
	return errors.As(err, &coded) && coded.Code == cli.ExitLost
}

// fromKeyboard reports whether somebody at the terminal ended the command: then it is not
// restarted.
func fromKeyboard(end child.End) bool {
	return end.Signal == syscall.SIGINT || end.Signal == syscall.SIGQUIT
}

// breathe keeps a command that fails at once from being restarted as fast as it fails.
func breathe(ctx context.Context, ran time.Duration) bool {
	const least = time.Second
	select {
	case <-ctx.Done():
		return false
	case <-time.After(max(0, least-ran)):
		return true
	}
}
