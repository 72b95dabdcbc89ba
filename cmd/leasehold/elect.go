package main

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
)

type electFlags struct {
	errandFlags
	name    string
	value   string
	restart bool
}

func (a *app) electCommand() *cobra.Command {
	f := electFlags{errandFlags: errandFlags{labels: labels{}}}
	cmd := &cobra.Command{
		Use:   "elect NAME -- COMMAND [ARG]…",
		Short: "Run a command on one machine of many: on the one that leads",
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
		ValidArgsFunction: a.completesErrand(),
	}
	cmd.Flags().SetInterspersed(slices.Contains(a.args, "--"))
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return a.electErrand(ctx, c, f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.value, "value", "", "what the leader publishes (default: who it is)")
	flags.BoolVar(&f.restart, "restart", false, "campaign again when the command has ended")
	f.add(cmd)
	a.clientFlags(cmd)
	return cmd
}

func (f *electFlags) split(cmd *cobra.Command, args []string) error {
	names, argv, err := nameAndCommand(cmd, args)
	if err == nil && len(names) > 1 {
		err = seeHelp(cmd, usage("%s takes one name, not also %q: %s", cmd.Name(), names[1], usageOf(cmd)))
	}
	if err != nil {
		return err
	}
	f.name, f.argv = names[0], argv
	return nil
}

// electErrand is the whole of elect.
func (a *app) electErrand(ctx context.Context, c *conn, f electFlags) error {
	if _, err := child.Find(f.argv[0]); err != nil {
		return noCommand(err)
	}
	e, ctx, err := a.beginErrand(ctx, c, f.errandFlags)
	if err != nil {
		return err
	}
	defer e.stop()
	defer e.close()
	for {
		began := a.now()
		end, err := f.lead(ctx, e)
		switch {
		case err == nil && f.restart && ctx.Err() == nil && !fromKeyboard(end):
			if !breathe(ctx, a.now().Sub(began)) {
				return context.Cause(ctx)
			}
		case err == nil:
			return &codedError{code: end.Code}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !isStopped(err):
			return err
		}
	}
}

// lead campaigns and runs the command until that ends by itself. What is lost while it
// leads is campaigned for again, here or by the client.
func (f *electFlags) lead(ctx context.Context, e *errand) (end child.End, err error) {
	ctx, resign := context.WithCancel(ctx)
	defer resign()
	ended, resigned := make(chan struct{}), make(chan error, 1)
	go func() {
		resigned <- e.client.Elect(ctx, f.name, []byte(cmp.Or(f.value, e.holder)), func(_ context.Context, h *client.Hold) error {
			e.app.say("leading %s: token %d", f.name, h.Token())
			how, err := e.run([]*client.Hold{h})
			switch {
			case isStopped(err):
				e.app.report(err)
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

// sayGoodbye waits until a server knows that nobody leads any more, but not for long.
func (e *errand) sayGoodbye(resigned <-chan error, name string) {
	select {
	case <-resigned:
	case <-time.After(farewell):
		e.app.say("warning: no server could be told that %s is free: it will be when its TTL is over", name)
		e.silent = true
	}
}

// isStopped tells whether the command was stopped because the lead was lost.
func isStopped(err error) bool {
	var coded *codedError
	return errors.As(err, &coded) && coded.code == exitLost
}

// fromKeyboard tells whether somebody at the terminal ended the command, who does not want
// to see it again.
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
