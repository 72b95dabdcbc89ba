package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/config"
)

// jobFlags are those that run and elect have in common.
type jobFlags struct {
	argv      []string
	subject   string // the resource that a TTL is learned of; empty: none
	ttl       autoSpan
	killAfter cli.Span
	reason    string
	labels    cli.Labels
	priority  int
	keep      bool
	grace     cli.Span
	unitsEnv  []string // variables for the names of units
	around    []string // units that the runs around this one hold
	pool      bool     // it is for units of a pool
	adopts    string   // processes that were there before, by their numbers with commas
}

func (f *jobFlags) add(a *cli.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&f.ttl, "ttl", "how long others wait if this machine dies, and how long the command survives without "+
		"the server, or auto: as was learned of such commands, at most 2m (default 30s)")
	flags.Var(&f.killAfter, "kill-after", "how long the command has to end when the lease is about to (default a "+
		"third of the TTL, at most 10s)")
	flags.Var(&f.grace, "grace", "how long others have to wait after an end that was no release: killed, expired, "+
		"broken (default 0s)")
	flags.StringVar(&f.reason, "reason", "", "why you need it, shown to others who wait")
	flags.Var(f.labels, "label", "more about the holder, such as run=881; may be given again")
	flags.IntVar(&f.priority, "priority", 0, "larger ones go first in the queue, from -1000 to 1000")
	flags.BoolVar(&f.keep, "keep", false, "go on when the terminal or the SSH session ends (as nohup and setsid do)")
	a.SettingFlag(cmd, "holder", "")
}

// check fills in defaults, and refuses times that leave no room for a renewal.
func (f *jobFlags) check(cmd *cobra.Command) error {
	if !f.ttl.Given {
		f.ttl.Value = leasehold.DefaultTTL
	}
	f.labelKind()
	switch {
	case f.ttl.auto: // see learnTTL
	case f.ttl.Value < leasehold.MinTTL:
		return cli.SeeHelp(cmd, cli.Usage("--ttl is %q: at least %s is allowed", f.ttl.String(), leasehold.MinTTL))
	case !f.killAfter.Given:
		f.killAfter.Value = min(f.ttl.Value/3, 10*time.Second)
	case f.killAfter.Value > f.ttl.Value/2:
		// It is renewed when a third has passed, and that can take a moment.
		return cli.SeeHelp(cmd, cli.Usage("--kill-after is %q: half of the TTL (%s) is the most, or there is no time "+
			"to renew it", f.killAfter.String(), cli.Short(f.ttl.Value/2)))
	}
	return nil
}

// nameAndCommand separates the names from the command. Without -- there is one name, and everything
// behind it belongs to the command, its flags too.
func nameAndCommand(cmd *cobra.Command, args []string) (names, argv []string, err error) {
	at := cmd.ArgsLenAtDash()
	if at < 0 {
		at = min(1, len(args))
	}
	switch {
	case at == 0:
		err = cli.Usage("%s needs a name before the command: %s", cmd.Name(), cli.UsageOf(cmd))
	case at == len(args):
		err = cli.Usage("%s needs a command: %s", cmd.Name(), cli.UsageOf(cmd))
	}
	if err != nil {
		return nil, nil, cli.SeeHelp(cmd, err)
	}
	return args[:at], args[at:], nil
}

// completes offers names, and then files: the rest is up to the command.
func completes(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		dashed := slices.Contains(a.Args, "--")
		if dashed || len(args) > 0 && cmd.Name() == "elect" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.Completes(-1, cli.ResourceNames)(cmd, args, typed)
	}
}

// A job is a command that runs while something is held.
type job struct {
	jobFlags
	app     *cli.App
	conn    *cli.Conn
	client  *client.Client
	guard   *child.Guard
	holder  string
	stop    func()
	silent  bool // no server answers: there is nobody to say goodbye to
	running atomic.Bool
	party   string // that of the runs around this one

	taskEnv map[string]string // what the environment says of a task

	failures errorLog               // what went wrong last
	broken   atomic.Pointer[string] // a break that was announced
}

// beginJob connects to the server. The context that it returns ends at a signal that asks to stop,
// but only while no command runs: once one does, the signal is passed on to it, and its end
// decides.
func beginJob(ctx context.Context, a *cli.App, c *cli.Conn, f jobFlags) (*job, context.Context, error) {
	ends := leaveIgnored(a, f.keep)
	// Unlike other commands this one is there for as long as it holds something.
	holder := cmp.Or(c.Client.Holder, fmt.Sprintf("%s:%d", cli.Person(), os.Getpid()))
	if err := f.learnTTL(ctx, c, holder); err != nil {
		return nil, ctx, err
	}
	// The guard comes first: from the first session on, it ends what we hold or wait for if we are
	// killed.
	e := &job{jobFlags: f, app: a, conn: c, holder: holder, guard: child.StartGuard(asMyself(GuardName))}
	dialed, err := client.Dial(ctx, client.Config{
		Servers: c.Client.Servers, HTTP: v1.NewClient(c.TLS), Namespace: c.Client.Namespace, Holder: holder,
		TTL: f.ttl.Value, OnSession: e.bequeath, Log: slog.New(&e.failures),
		Token: c.Client.Token, Insecure: c.Client.Insecure,
	})
	if err != nil {
		e.guard.Dismiss()
		return nil, ctx, err
	}
	if err := e.joinAround(ctx); err != nil {
		e.guard.Dismiss()
		return nil, ctx, errors.Join(err, dialed.Close())
	}
	e.client = dialed
	// A reader that closes our output must not end the command by it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := cli.UntilSignalIf(ctx, func() bool { return !e.running.Load() }, ends...)
	e.stop = func() { e.guard.Dismiss(); stop() }
	return e, ctx, nil
}

// leaveIgnored ignores the signals that we were started to ignore, which the command inherits, and
// with --keep a hangup too. It returns the other signals that end a wait, besides SIGINT and
// SIGTERM.
func leaveIgnored(a *cli.App, keep bool) (ends []os.Signal) {
	silent := a.Ignored
	if keep {
		silent = append(silent, syscall.SIGHUP)
	}
	for _, s := range silent {
		signal.Ignore(s)
	}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if !slices.Contains(silent, s) {
			ends = append(ends, s)
		}
	}
	return ends
}

// options are those of every acquire and campaign of the job.
func (e *job) options() []client.Option {
	options := []client.Option{client.Reason(e.reason), client.Priority(e.priority), client.Progress(e.progress()),
		client.Party(e.party), client.Grace(e.grace.Value)}
	for key, value := range e.labels {
		options = append(options, client.Label(key, value))
	}
	return options
}

// progress tells the person who is in the way, whenever that or the place in the queue
// has changed.
func (e *job) progress() func(client.Waiting) {
	said := ""
	return func(w client.Waiting) {
		line := fmt.Sprintf("waiting for %s: held by %s", w.Resource, cli.Because(w.Holder, w.Reason))
		if w.Holder == "" {
			line = "waiting for " + w.Resource
		}
		switch {
		case w.Position == 1:
			line += "; you are next"
		case w.Position > 1:
			line += fmt.Sprintf("; %d ahead of you", w.Position-1)
		}
		if line == said || e.app.Quiet {
			return
		}
		said = line
		if why := e.why(w); why != "" {
			line += "; this run " + why
		}
		if w.Forecast > 0 {
			line += ", usually in about " + cli.About(w.Forecast, w.ForecastError)
		}
		e.app.Say("%s", line)
	}
}

// run runs the command while the holds last. The error says that it could not be run, or
// that it was stopped.
func (e *job) run(holds []*client.Hold) (child.End, error) {
	signals, stop := child.Signals()
	defer stop()
	// From here on signals go to the command and not to our context; Signals above catches them
	// first, so that none falls in between.
	e.running.Store(true)
	defer e.running.Store(false)
	e.broken.Store(nil)
	e.failures.last.Store(nil)
	set := newHoldSet(holds)
	defer set.let()
	for _, h := range holds {
		go e.listen(set.done, h)
	}
	// A hold limit may leave less than that from the beginning. The command then gets half of what
	// there is, and is not told to stop at its start.
	killAfter := e.killAfter.Value
	if left := set.Remaining(); left <= killAfter {
		killAfter = left / 2 // its hold limit is nearer
	}
	end, err := child.Run{
		Command: child.Command{Argv: e.argv, Env: e.environ(holds), Gate: asMyself(GateName), Apart: e.keep},
		Lease:   set, KillAfter: killAfter, Guard: e.guard, Mark: holds[0].ID(), Signals: signals,
		Warn: e.warn,
	}.Do()
	switch {
	case err != nil:
		return end, noCommand(fmt.Errorf("%s: %w", e.argv[0], err))
	case end.Stopped || set.err() != nil:
		return end, &cli.CodedError{Code: cli.ExitLost, Err: e.lost(set, end)}
	}
	return end, nil
}

// GateName is the argument with which this program waits until it may become another.
const GateName = "__begin"

// asMyself is how to start this program with an argument; nil if nobody can tell.
func asMyself(name string) []string {
	path, err := child.Myself()
	if err != nil {
		return nil
	}
	return []string{path, "leasehold", name}
}

// warn says what happens to the command, when it happens.
func (e *job) warn(what child.Warning) {
	switch what {
	case child.Told:
		e.app.Say("the lease is about to end: %s was told to stop", e.argv[0])
	case child.Killed:
		e.app.Say("the lease is over: %s was killed", e.argv[0])
	case child.Orphans:
		e.app.Say("%s has ended and left others running: they are told to stop (setsid lets them stay)", e.argv[0])
	}
}

// lost returns the error of a command that was stopped, or that ended after its lease had. That it
// ended by itself is an error too: some of its work was not protected.
func (e *job) lost(g *holdSet, end child.End) error {
	why := e.whyLost(g)
	if end.Never {
		return cli.Failure(leasehold.Lost, "%s\n%s was not started", why, e.argv[0])
	}
	if end.Stopped {
		return cli.Failure(leasehold.Lost, "%s\n%s was stopped", why, e.argv[0])
	}
	return cli.Failure(leasehold.Lost, "%s\n%s ended by itself with code %d, but some of what it did was not protected",
		why, e.argv[0], end.Code)
}

// whyLost returns why the lease ended. It knows more than the lease does: at its end, a lease that
// an operator broke, or that no server could renew, has merely expired.
func (e *job) whyLost(g *holdSet) string {
	lost, broken, failure := g.err(), e.broken.Load(), e.failures.since(e.app.Now().Add(-e.ttl.Value))
	switch {
	case errors.Is(lost, client.ErrBroken):
		return lost.Error()
	case broken != nil:
		return *broken
	case lost != nil && failure != "":
		return lost.Error() + ": " + failure
	case lost != nil:
		return lost.Error()
	case failure != "":
		return g.holds[0].Resource() + ": the lease could not be renewed: " + failure
	}
	return g.holds[0].Resource() + ": the lease was about to end"
}

// listen tells the person what others say to the holder.
func (e *job) listen(done <-chan struct{}, h *client.Hold) {
	for {
		select {
		case <-done:
			return
		case m := <-h.Messages():
			if !m.Break {
				e.app.Say("%s asks for %s: %s", m.By, h.Resource(), m.Text)
				continue
			}
			broken := fmt.Sprintf("%s: the lease was broken by %s: %s", h.Resource(), m.By, m.Text)
			e.broken.Store(&broken)
			e.app.Say("%s breaks the lease on %s in %s: %s", m.By, h.Resource(), cli.Short(time.Until(m.Until)), m.Text)
		}
	}
}

// environ returns the environment of the command: ours, with what is held. It has the server and
// its certificates too, so that a leasehold command inside asks the same cluster.
func (e *job) environ(holds []*client.Hold) []string {
	var names, ids, tokens, units, held []string
	for _, h := range holds {
		names, ids, tokens = append(names, h.Resource()), append(ids, h.ID()), append(tokens, fmt.Sprint(h.Token()))
		units = append(units, strings.Join(h.Units(), ","))
		held = append(held, h.ID()+" "+h.Resource())
	}
	switch around := e.app.Getenv(config.EnvHeld); {
	case around != "" && e.party != "":
		held = append([]string{around}, held...)
	case around != "":
		held = append(held, around) // behind what begins a party: see joinAround
	}
	set := map[string]string{
		config.EnvResource: strings.Join(names, "\n"), config.EnvID: strings.Join(ids,
			"\n"), config.EnvToken: strings.Join(tokens, "\n"),
		config.EnvUnits: strings.Join(units, "\n"), config.EnvHeld: strings.Join(held, "\n"),
		config.EnvExpires:           holds[0].Expires().UTC().Format(time.RFC3339),
		config.EnvName("server"):    e.conn.Client.Server,
		config.EnvName("namespace"): e.conn.Client.Namespace,
	}
	for name, value := range map[string]string{"ca": e.conn.Client.TLS.CA, "cert": e.conn.Client.TLS.Cert,
		"key": e.conn.Client.TLS.Key, "token-file": e.conn.Client.TokenFile, "context": e.conn.Client.Context} {
		if value != "" {
			set[config.EnvName(name)] = value
		}
	}
	maps.Copy(set, e.taskEnv)
	// The command needs the fencing token under this name, and a leasehold command inside needs to prove who asks.
	if ours := e.app.Getenv(config.EnvToken); ours != "" && !v1.FencingToken(ours) {
		set[config.EnvAccessToken] = ours
	}
	env := slices.DeleteFunc(slices.Clone(e.app.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := set[name]
		return replaced
	})
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return e.adoptEnv(e.withUnits(env, unitsOf(holds)))
}

// farewell limits how long a server is told that something is free. If the server is gone, the
// lease ends by its TTL anyway, and our caller should not have to wait for that.
const farewell = 5 * time.Second

// giveBack releases what is held, once the command has ended. It never runs before that: another
// holder would begin while the command still works.
func (e *job) giveBack(holds []*client.Hold) {
	for _, h := range holds {
		left := h.Remaining()
		// What has ended by itself needs nobody to be told.
		ctx, cancel := context.WithTimeout(context.Background(), min(farewell, max(left, time.Second/2)))
		defer cancel()
		if err := h.Release(ctx); err != nil && !errors.Is(err, client.ErrLost) {
			e.app.Say("warning: %s could not be released: it ends by itself within %s: %v", h.Resource(),
				cli.Short(left), err)
			e.silent = true
			break
		}
	}
	e.close()
}

// close ends the session, unless no server answers: then it ends with its TTL.
func (e *job) close() {
	if !e.silent {
		_ = e.client.Close()
	}
}

// noCommand returns the error of a command that could not be started, with the exit code that
// shells use: 127 if it was not found, 126 otherwise.
func noCommand(err error) error {
	code, message := cli.ExitNoRun, err.Error()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = cli.ExitNoCommand
	}
	return &cli.CodedError{Code: code, Err: cli.Failure(leasehold.Invalid, "the command cannot be run: %s",
		strings.TrimPrefix(message, "exec: "))}
}
