package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/lease"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/config"
)

type runFlags struct {
	jobFlags
	everyFlags
	names     []string
	noWait    bool
	wait      cli.Span
	heldCode  int
	wanted    cli.Wanted
	where     string
	spread    bool
	unit      []string
	terraform string
	reserved  string
}

// Run returns the command run.
func Run(a *cli.App) *cobra.Command {
	f := runFlags{jobFlags: jobFlags{labels: cli.Labels{}}}
	cmd := &cobra.Command{
		Use:   "run NAME [NAME]… -- COMMAND [ARG]…",
		Short: "Run a command while you hold a resource, or several at once",
		Long: `Run waits for the resource, runs the command while it holds it, and gives it back when
the command has ended. It ends with the code of the command, or 128 and the number of
the signal that ended it. The command has your terminal, standard input and output.

The lease is renewed for as long as the command runs. If that cannot be done, because
the server is gone, the machine was asleep or an operator broke the lease, the command
gets SIGTERM --kill-after before the lease ends and SIGKILL when it ends: before anybody
else can have the resource. Run then ends with code 76 and says why.

The command is a process group of its own, which gets those signals as a whole. INT, TERM,
HUP, QUIT, WINCH and TSTP are passed on to the group, USR1 and USR2 to the command.
What it leaves running in its group when it ends is stopped too. If run itself is
killed, so is the group; the lease then ends at once, as abandoned, and not with its TTL.

Everything behind -- is the command's; with one name and no flags behind it the -- can be
left out. The environment of the command says what is held: LEASEHOLD_RESOURCE, _ID,
_TOKEN, _UNITS, _EXPIRES and _SERVER; with several names there is a line for each.
In it, another run of the same resource just runs its command.

With --units-env NAME the names of the units that you got are in that variable, too, as
they are, with commas: for CUDA_VISIBLE_DEVICES define units by index or UUID.

With --terraform STATE the command is terraform or tofu, and the lease is the lock that
it takes itself: see docs/doors/terraform.md.

With --at-most-every 1d it does nothing if it ran within a day on any machine, and ends
with code 79; runs that failed do not count. With several names, the first is the job's.

Codes besides those of the command: 75 it is held (see -E), 76 the lease was lost, 79 it is
not due (see --not-due-code), 126 the command cannot be run, 127 there is no such command.
Other codes: leasehold help exit-codes.`,
		Example: `  leasehold run prod/deploy --reason "release 311" -- ./deploy.sh
  leasehold run -n -E 0 backup --at-most-every 1d -- ./backup   # from cron
  leasehold run gpu/pool -w 1h --units-env CUDA_VISIBLE_DEVICES -- ./train`,
		Args:              func(cmd *cobra.Command, args []string) error { return f.split(cmd, args) },
		ValidArgsFunction: completes(a),
	}
	// Without -- everything behind the name belongs to the command, its flags too.
	cmd.Flags().SetInterspersed(slices.Contains(a.Args, "--"))
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		if f.terraform != "" {
			return runTerraform(ctx, a, c, f)
		}
		return runJob(ctx, a, c, f)
	})
	flags := cmd.Flags()
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "if it is held, end at once with code 75")
	flags.VarP(&f.wait, "wait", "w", "how long to wait in the queue at most (default: as long as it takes)")
	flags.IntVarP(&f.heldCode, "held-code", "E", cli.ExitHeld, "exit code to use if it is held")
	f.addSlots(flags)
	flags.StringVar(&f.terraform, "terraform", "", "hold nothing, but keep the lock on this state alive that the "+
		"command takes")
	f.everyFlags.add(flags)
	f.jobFlags.add(a, cmd)
	a.ClientFlags(cmd)
	return cmd
}

// addSlots adds the flags that say how much of a resource to take.
func (f *runFlags) addSlots(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.wanted.Shared, "shared", "s", false, "take one slot of many, beside others who share it")
	flags.Var(&f.wanted.Slots, "slots", "how many slots to take, or all, which is exclusive (default: 1 if several "+
		"are defined, else all)")
	flags.IntVar(&f.wanted.Capacity, "capacity", 0, "with --slots: how many there are, if nobody defined it")
	f.addSelection(flags)
}

// addSelection adds the flags that say which units of a pool to take, and where the command finds their names.
func (f *runFlags) addSelection(flags *pflag.FlagSet) {
	flags.StringVar(&f.where, "where", "", "of a pool, take only units that meet conditions, such as "+
		"model=H100,memory>=40")
	flags.BoolVar(&f.spread, "spread", false, "of a pool, the units may be on several hosts")
	flags.StringArrayVar(&f.unit, "unit", nil, "of a pool, take this unit; may be given again")
	flags.StringVar(&f.reserved, "reservation", "", "claim this reservation, which says how much is taken; before its "+
		"start, wait for that")
	flags.StringArrayVar(&f.unitsEnv, "units-env", nil, "environment variable for the names of the units, such as "+
		"CUDA_VISIBLE_DEVICES; may be given again")
}

// split tells the names from the command, in the place of cobra's check of arguments.
func (f *runFlags) split(cmd *cobra.Command, args []string) (err error) {
	if f.terraform != "" {
		return f.splitTerraform(cmd, args)
	}
	f.names, f.argv, err = nameAndCommand(cmd, args)
	return err
}

func (f *runFlags) check(cmd *cobra.Command) error {
	switch {
	case f.noWait && f.wait.Given:
		return cli.SeeHelp(cmd, cli.Usage("-n does not wait and -w says how long to: give one of them"))
	case f.heldCode < 0 || f.heldCode > 255:
		return cli.SeeHelp(cmd, cli.Usage("--held-code is %d: use 0 to 255", f.heldCode))
	case f.reserved != "" && (len(f.names) > 1 || f.wanted.Shared || cmd.Flags().Changed("slots") ||
		cmd.Flags().Changed("units") || f.wanted.Capacity != 0 || f.where != "" || f.spread || len(f.unit) > 0):
		return cli.SeeHelp(cmd, cli.Usage("a reservation is of one resource, and says how much of it: leave other "+
			"names, and flags for slots and units out"))
	case f.terraform != "" && len(f.unitsEnv) > 0:
		return cli.SeeHelp(cmd, cli.Usage("--units-env does not go with --terraform, which holds no units: "+
			"leave it out"))
	}
	if err := f.checkEvery(cmd); err != nil {
		return err
	}
	if err := f.checkNames(cmd); err != nil {
		return err
	}
	return f.jobFlags.check(cmd)
}

// runJob acquires, runs the command, and gives back.
func runJob(ctx context.Context, a *cli.App, c *cli.Conn, f runFlags) error {
	// Before anything is acquired: others should not wait for a command with a typing error.
	if _, err := child.Find(f.argv[0]); err != nil {
		return noCommand(err)
	}
	names, err := f.notHeldYet(ctx, a, c)
	switch {
	case err != nil:
		return err
	case f.every.Given && (len(names) == 0 || names[0] != f.names[0]):
		return cli.Usage("%s is held by the run around this one: give --at-most-every there", f.names[0])
	case len(names) == 0:
		if err := f.checkUnits(c, f.names, nil); err != nil {
			return err
		}
		return become(a, f.argv, f.withUnits(a.Environ, nil))
	}
	if err := f.findUnits(ctx, c, names); err != nil {
		return err
	}
	f.subject = names[0]
	e, ctx, err := beginJob(ctx, a, c, f.jobFlags)
	if err != nil {
		return err
	}
	defer e.stop()
	items, err := f.items(ctx, c, names)
	if err != nil {
		e.close()
		return err
	}
	holds, err := e.client.AcquireAll(ctx, items, f.options(e)...)
	if err != nil {
		e.close()
		return f.explain(a, c, names, err)
	}
	defer e.giveBack(holds)
	if err := f.checkUnits(c, names, unitsOf(holds)); err != nil {
		return err
	}
	// A signal may have come after the grant; the command must not begin then.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, h := range holds {
		if after := h.After(); after != nil {
			lease.SayUnclean(a, after.Holder, h.Resource(), after.How.String())
		}
	}
	end, err := f.runOnce(ctx, e, holds)
	if err != nil {
		return err
	}
	return &cli.CodedError{Code: end.Code}
}

// runOnce runs the command, with --at-most-every only if it is due, and records that it did. The
// first name is the job's: what else it needs may differ.
func (f *runFlags) runOnce(ctx context.Context, e *job, holds []*client.Hold) (child.End, error) {
	if !f.every.Given {
		return e.run(holds)
	}
	l, err := e.openLedger(ctx, holds[0], f.everyFlags)
	if err != nil {
		return child.End{}, err
	}
	end, err := e.run(holds)
	l.close(ctx, end, err)
	return end, err
}

func (f *runFlags) items(ctx context.Context, c *cli.Conn, names []string) ([]client.Item, error) {
	items := client.All(names...)
	if f.reserved != "" {
		return items, nil // the reservation says
	}
	for i, name := range names {
		slots, capacity, err := f.wanted.Of(ctx, c, name)
		if err != nil {
			return nil, err
		}
		items[i].Shared, items[i].Slots, items[i].Capacity = f.wanted.Shared, slots, capacity
	}
	return items, nil
}

func (f *runFlags) options(e *job) []client.Option {
	options := e.options()
	if f.where != "" {
		options = append(options, client.Where(f.where))
	}
	if f.spread {
		options = append(options, client.Spread())
	}
	if len(f.unit) > 0 {
		options = append(options, client.Units(f.unit...))
	}
	if f.reserved != "" {
		options = append(options, client.Reservation(f.reserved))
	}
	switch {
	case f.noWait:
		options = append(options, client.Wait(0))
	case f.wait.Given:
		options = append(options, client.Wait(f.wait.Value))
	}
	return options
}

// explain adds what to do about an acquire that failed.
func (f *runFlags) explain(a *cli.App, c *cli.Conn, names []string, err error) error {
	if !errors.Is(err, leasehold.ErrHeld) {
		return err
	}
	if f.heldCode != cli.ExitHeld {
		// The caller chose the code and expects it: there is nothing to report.
		a.Say("%v", err)
		return &cli.CodedError{Code: f.heldCode}
	}
	return cli.Hint(err, "see who waits: %s", c.Again("describe", names[0]))
}

// notHeldYet leaves out what a run around this one holds already: a wait for that would never end.
// The server confirms what the environment says, which may be out of date.
func (f *runFlags) notHeldYet(ctx context.Context, a *cli.App, c *cli.Conn) (names []string, err error) {
	held := heldAround(a.Getenv(config.EnvHeld))
	for _, name := range f.names {
		id, ok := held[name]
		if ok {
			ok, err = f.isHeld(ctx, c, name, id)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// joinAround makes this run one party with the runs around it, which cannot go on while it waits:
// without that, the server would not see a deadlock among such runs. The party is named after their
// first lease. If all of them have ended, nobody is blocked and there is no party to join.
func (e *job) joinAround(ctx context.Context) error {
	lines := e.app.Getenv(config.EnvHeld)
	for line := range strings.Lines(lines) {
		id, _, _ := strings.Cut(line, " ")
		_, err := e.conn.Renew(ctx, v1.RenewRequest{ID: id}) // its session's renewals count, not this one
		switch {
		case err == nil:
			e.party, _, _ = strings.Cut(lines, " ")
			return nil
		case !lease.IsNone(err):
			return err
		}
	}
	return nil
}

// isHeld reports whether a lease is alive and enough for what is asked for.
func (f *runFlags) isHeld(ctx context.Context, c *cli.Conn, name, id string) (bool, error) {
	held, err := c.Renew(ctx, v1.RenewRequest{ID: id}) // its session's renewals count, not this one
	switch {
	case lease.IsNone(err):
		return false, nil
	case err != nil:
		return false, err
	case held.Resource != name:
		return false, nil
	}
	wanted, _, err := f.wanted.Of(ctx, c, name)
	if err != nil {
		return false, err
	}
	if f.wanted.Shared {
		wanted = 1
	}
	if held.Slots == 0 || wanted > 0 && wanted <= held.Slots {
		f.around = append(f.around, held.Units...)
		return true, nil
	}
	return false, cli.Failure(leasehold.Refused, "%s is held by the run around this one with %s only: ask for fewer "+
		"inside, or for more outside",
		name, cli.Plural(held.Slots, "slot", "slots"))
}

// heldAround returns what the runs around this one hold: the id of the lease of each resource.
func heldAround(lines string) map[string]string {
	held := map[string]string{}
	for line := range strings.Lines(lines) {
		if id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			held[name] = id
		}
	}
	return held
}

// become replaces this process by a command: with nothing to hold, there is nothing to watch.
func become(a *cli.App, argv, environ []string) error {
	path, err := child.Find(argv[0])
	if err == nil {
		err = syscall.Exec(path, argv, environ)
	}
	return noCommand(fmt.Errorf("%s: %w", argv[0], err))
}
