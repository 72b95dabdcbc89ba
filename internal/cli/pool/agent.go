package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/cli"
)

// agentFlags are those of pool agent.
type agentFlags struct {
	host, program string
	every         cli.Span
	once          bool
}

// agent returns the command pool agent.
func agent(a *cli.App) *cobra.Command {
	f := agentFlags{every: cli.SpanOf(time.Minute)}
	cmd := &cobra.Command{
		Use:   "agent POOL",
		Short: "Report how the cards of this host are used",
		Long: `Agent runs on each host of a pool. Every minute it asks nvidia-smi which cards there are, how
busy they are and which processes use them, and reports that. New cards join the pool. A
card that nvidia-smi no longer lists is not granted until it is back, and none is while
nvidia-smi fails or hangs twice in a row; who has a card keeps it.

A process belongs to the lease whose id is in its environment, or in that of the process
that started it: leasehold run puts it there. A card on which others work is shown as
taken and not granted. Nobody is killed.

It ends with SIGTERM, and loses nothing by that: a host that is silent is not idle.`,
		Example: `  leasehold pool agent gpu
  leasehold pool agent gpu --every 30s --nvidia-smi /usr/bin/nvidia-smi
  leasehold pool agent gpu --once -o json`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if f.every.Value < time.Second {
			return cli.SeeHelp(cmd, cli.Usage("--every is %q: at least 1s is allowed", f.every.String()))
		}
		watch, err := newWatcher(a, c, args[0], f)
		if err != nil {
			return err
		}
		return watch.run(ctx)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.host, "host", "", "the name of this host (default: that of this machine)")
	flags.StringVar(&f.program, "nvidia-smi", nvidiaSMI, "the program that knows the cards")
	flags.Var(&f.every, "every", "how often to report")
	flags.BoolVar(&f.once, "once", false, "report once, and end")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// A watcher looks at the cards of a host and reports them.
type watcher struct {
	app    *cli.App
	conn   *cli.Conn
	pool   string
	flags  agentFlags
	cards  smi
	proc   procfs
	known  []pools.HostUnit // that this host has, as far as anybody said
	failed int              // in a row
	said   string           // what was complained about last
}

// largestWait is how long nvidia-smi may take at most. It takes a second or two for many cards.
const largestWait = 20 * time.Second

// newWatcher finds the program and the name of the host. That either is missing is a mistake of who starts the agent,
// and the only thing that ends it by itself.
func newWatcher(a *cli.App, c *cli.Conn, pool string, f agentFlags) (*watcher, error) {
	program, err := exec.LookPath(f.program)
	if err != nil {
		return nil, cli.Usage("%s cannot be run: %v: say where it is with --nvidia-smi", f.program, err)
	}
	if f.host == "" {
		if f.host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("this machine does not say its name: give --host: %w", err)
		}
	}
	return &watcher{app: a, conn: c, pool: pool, flags: f, proc: "/proc",
		cards: smi{program, min(largestWait, f.every.Value)}}, nil
}

// run reports until somebody ends it. Nothing but that ends it: what goes wrong now may be well in a minute.
func (w *watcher) run(ctx context.Context) error {
	ticks := time.NewTicker(w.flags.every.Value)
	defer ticks.Stop()
	for {
		err := w.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case w.flags.once:
			return err
		case err == nil:
			w.said = ""
		case err.Error() != w.said:
			w.said = err.Error()
			w.app.Say("%v; trying again every %s", err, cli.Short(w.flags.every.Value))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// once looks at the cards and reports them. One failure to look may be an accident, and is silence; after the second
// nobody should get a card of this host.
func (w *watcher) once(ctx context.Context) error {
	seen, failure := w.cards.sample(ctx)
	if failure == nil {
		w.failed = 0
		return w.report(ctx, seen, nil)
	}
	if w.failed++; w.failed < 2 || ctx.Err() != nil {
		return failure
	}
	return errors.Join(failure, w.report(ctx, nil, failure))
}

// report sends one message. If the pool does not know a card, it is told which there are first.
func (w *watcher) report(ctx context.Context, seen []card, failure error) error {
	request := w.request(seen, failure)
	err := pools.ReportUse(ctx, w.conn.Caller, w.pool, request)
	if errors.Is(err, leasehold.ErrNotFound) {
		if err = w.introduce(ctx, seen); err != nil {
			return err
		}
		request = w.request(seen, failure)
		err = pools.ReportUse(ctx, w.conn.Caller, w.pool, request)
	}
	if err != nil {
		return err
	}
	if w.app.Output == cli.FormatJSON {
		return w.app.PrintJSON(request)
	}
	if w.flags.once {
		w.app.Say("%s: reported %s of host %s", w.pool, cli.Plural(len(request.Units), "unit", "units"), w.flags.host)
	}
	return nil
}

// request says how each card that is seen is used, and that others which the host had are not there.
func (w *watcher) request(seen []card, failure error) pools.UseRequest {
	r := pools.UseRequest{Host: w.flags.host, By: w.conn.Operator(), Units: []pools.UnitReport{}}
	adopted := w.proc.adopted(w.pool)
	named := 0
	for _, c := range seen {
		unit := pools.UnitReport{Name: c.Name, Percent: c.percent, Memory: c.memory}
		if unit.Processes = w.proc.describe(c.processes, w.pool, adopted); named+len(unit.Processes) >
			leasehold.MaxHostProcesses {
			unit.Processes = nil
		}
		named += len(unit.Processes)
		r.Units = append(r.Units, unit)
		if !w.knows(c.Name) {
			w.known = append(w.known, c.HostUnit)
		}
	}
	for _, u := range w.known {
		if slices.ContainsFunc(seen, func(c card) bool { return c.Name == u.Name }) {
			continue
		}
		unit := pools.UnitReport{Name: u.Name, Unfit: nvidiaSMI + " does not list it"}
		if failure != nil {
			unit.Unfit = short(failure.Error())
		}
		r.Units = append(r.Units, unit)
	}
	return r
}

// knows reports whether a unit is one of this host.
func (w *watcher) knows(name string) bool {
	return slices.ContainsFunc(w.known, func(u pools.HostUnit) bool { return u.Name == name })
}

// introduce says which units this host has: those that are seen, and those that the pool knows already, which may be
// back in a while.
func (w *watcher) introduce(ctx context.Context, seen []card) error {
	w.known = nil
	for _, c := range seen {
		w.known = append(w.known, c.HostUnit)
	}
	now, err := whole(ctx, w.conn, w.pool)
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
		return err
	}
	for _, u := range now.Units {
		if u.Host == w.flags.host && !u.Removed && !w.knows(u.Name) {
			w.known = append(w.known, pools.HostUnit{Name: u.Name, Labels: u.Labels,
				Unfit: nvidiaSMI + " does not list it"})
		}
	}
	if len(w.known) == 0 {
		return cli.Failure(leasehold.NotFound, "this host has no cards, and %s knows none of it", w.pool)
	}
	return pools.SetUnits(ctx, w.conn.Caller, w.pool, pools.UnitsRequest{Host: w.flags.host, Units: w.known,
		By: w.conn.Operator(), Reason: "reported by the agent"})
}
