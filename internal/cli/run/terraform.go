package run

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/terraform"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// splitTerraform takes all arguments as the command. There are no names: what is held is the lock
// that Terraform takes itself.
func (f *runFlags) splitTerraform(cmd *cobra.Command, args []string) error {
	f.argv = args
	switch {
	case cmd.ArgsLenAtDash() > 0:
		return cli.SeeHelp(cmd, cli.Usage("run --terraform holds the lock of the state and nothing else: leave %q out",
			args[0]))
	case len(args) == 0:
		return cli.SeeHelp(cmd, cli.Usage("run needs a command: leasehold run --terraform STATE -- terraform apply"))
	}
	return tfstate.CheckState(f.terraform)
}

// runTerraform runs a Terraform whose lock lives as long as this process does.
//
// Terraform does not renew a lock. So the lock is bound to a session that we renew for
// it, and about which Terraform knows nothing but the address that it locks at.
func runTerraform(ctx context.Context, a *cli.App, c *cli.Conn, f runFlags) error {
	if _, err := child.Find(f.argv[0]); err != nil {
		return noCommand(err)
	}
	if err := f.keepable(c, a.Getenv); err != nil {
		return err
	}
	e, ctx, err := beginJob(ctx, a, c, f.jobFlags)
	if err != nil {
		return err
	}
	defer e.stop()
	session, err := e.client.OpenSession(ctx, client.Label("terraform", f.terraform))
	if err != nil {
		e.close()
		return err
	}
	// A signal may have come while the session was opened.
	if ctx.Err() != nil {
		e.close()
		return context.Cause(ctx)
	}
	g := newLockLease(session, e.killAfter.Value)
	end := child.End{}
	env, err := e.terraformEnviron(session, f)
	if err == nil {
		w := newLockWatch(e, &f, session.ID())
		if end, err = e.runLocked(g, w, env); err == nil {
			w.judge(end)
		}
	}
	e.freeLock(session, f, end)
	e.close()
	if err != nil {
		return err
	}
	return &cli.CodedError{Code: end.Code}
}

// runLocked runs the command while the session lasts and nobody breaks the lock.
func (e *job) runLocked(g *lockLease, w *lockWatch, env []string) (child.End, error) {
	signals, stop := child.Signals()
	defer stop()
	e.running.Store(true)
	defer e.running.Store(false)
	defer e.hearEvents(g, w)()
	end, err := child.Run{
		Command: child.Command{Argv: e.argv, Env: env, Gate: asMyself(GateName), Apart: e.keep},
		Lease:   g, KillAfter: e.killAfter.Value, Guard: e.guard, Mark: g.session.ID(), Signals: signals,
		Warn: e.warn,
	}.Do()
	switch {
	case err != nil:
		return end, noCommand(fmt.Errorf("%s: %w", e.argv[0], err))
	case end.Stopped || g.why() != "":
		return end, &cli.CodedError{Code: cli.ExitLost, Err: e.lostLock(g, end)}
	}
	return end, nil
}

// lostLock says why Terraform was stopped, and where its unsaved state may be.
func (e *job) lostLock(g *lockLease, end child.End) error {
	why := g.why()
	if why == "" {
		if why = "the session of the lock could not be renewed"; e.failures.since(e.app.Now().Add(-e.ttl.Value)) != "" {
			why += ": " + e.failures.since(e.app.Now().Add(-e.ttl.Value))
		}
	}
	if end.Stopped {
		return cli.Failure(leasehold.Lost, "%s\n%s was stopped; if it left an errored.tfstate, see "+
			"docs/doors/terraform.md", why, e.argv[0])
	}
	return cli.Failure(leasehold.Lost, "%s\n%s ended by itself with code %d; what it wrote after that was refused", why,
		e.argv[0], end.Code)
}

// hearEvents tells the lease when somebody breaks the lock, and the watch who takes it, until stop
// is called. It returns once events are heard, so that none is missed while Terraform runs, or once
// it is clear that none will be.
func (e *job) hearEvents(g *lockLease, w *lockWatch) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	hears, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	query := v1.WatchQuery{Resource: tfstate.Path(w.flags.terraform), Started: func(hello v1.Hello) {
		w.begins(hello)
		once.Do(func() { close(hears) })
	}}
	go func() {
		defer close(ended)
		for event, err := range e.conn.Watch(ctx, query) {
			if err != nil {
				return // what the holder of a broken lock writes is refused all the same
			}
			g.hear(event)
			w.hear(event)
		}
	}()
	select {
	case <-hears:
	case <-ended:
	case <-time.After(farewell):
	}
	return func() {
		cancel()
		<-ended
	}
}

// hear takes an event of the lock.
func (g *lockLease) hear(event v1.Event) {
	switch {
	case event.Session != g.session.ID():
	case event.Kind == leasehold.BreakSet.String() && event.Until != nil:
		g.broken(event.Until.Time, event.By, event.Reason)
	case event.Kind == leasehold.Ended.String() && event.How == leasehold.ByBreak.String():
		g.broken(time.Now(), event.By, event.Reason)
	}
}

// A lockLease lasts as long as the session that the lock is bound to, or until somebody breaks the
// lock. After a break Terraform still gets time to stop: the server refuses what it writes by then,
// but Terraform can save what it has made in its errored.tfstate.
type lockLease struct {
	session *client.Session
	spare   time.Duration

	mu    sync.Mutex // guards what follows
	until time.Time  // zero: nobody broke it
	said  string
}

func newLockLease(s *client.Session, spare time.Duration) *lockLease {
	return &lockLease{session: s, spare: spare}
}

// broken notes a break. Terraform gets at least spare to save its state, even if the lock is
// gone.
func (g *lockLease) broken(at time.Time, by, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if least := time.Now().Add(g.spare); at.Before(least) {
		at = least
	}
	if g.until.IsZero() || at.Before(g.until) {
		g.until = at
	}
	g.said = fmt.Sprintf("the lock was broken by %s: %s", by, reason)
}

func (g *lockLease) why() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.said == "" && g.session.Context().Err() != nil {
		return fmt.Sprintf("the session of the lock is over: %v", context.Cause(g.session.Context()))
	}
	return g.said
}

// Lost is closed when the session is over.
func (g *lockLease) Lost() <-chan struct{} { return g.session.Context().Done() }

// Remaining is how long the command may go on.
func (g *lockLease) Remaining() time.Duration {
	left := g.session.Remaining()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until.IsZero() {
		return left
	}
	return max(0, min(left, time.Until(g.until)))
}

// retries is how often Terraform repeats a request that got no answer. With its pauses that bridges
// about a minute, longer than a cluster takes to choose a leader.
const retries = 6

// terraformEnviron returns the environment of Terraform. Its backend is configured only by
// variables, so that the same directory works without leasehold run too.
func (e *job) terraformEnviron(s *client.Session, f runFlags) ([]string, error) {
	if len(e.conn.Client.Servers) > 1 {
		// Terraform asks one server alone: let it be one that answers.
		if _, err := e.conn.Resource(s.Context(), "terraform/"+f.terraform, 0); err != nil {
			return nil, err
		}
	}
	lock := url.Values{"session": {s.ID()}}
	switch {
	case f.wait.Given:
		lock.Set("wait", f.wait.Value.String())
	case !f.noWait:
		lock.Set("wait", leasehold.MaxWait.String())
	}
	set := map[string]string{
		terraform.Variable("address"):        terraform.Address(e.conn, f.terraform, url.Values{}),
		terraform.Variable("lock_address"):   terraform.Address(e.conn, f.terraform, lock),
		terraform.Variable("unlock_address"): terraform.Address(e.conn, f.terraform, url.Values{}),
		terraform.Variable("update_method"):  "POST",
		terraform.Variable("lock_method"):    "LOCK",
		terraform.Variable("unlock_method"):  "UNLOCK",
		terraform.Variable("retry_max"):      fmt.Sprint(retries),
		config.EnvName("server"):             e.conn.Client.Server,
		config.EnvName("namespace"):          e.conn.Client.Namespace,
	}
	if e.conn.Client.Token != nil && e.app.Getenv(terraform.Variable("password")) == "" {
		token, err := e.conn.Client.Token(s.Context())
		if err != nil {
			return nil, err
		}
		set[terraform.Variable("username")], set[terraform.Variable("password")] = "token", token
	}
	for name, file := range terraform.Files(e.conn) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, cli.Usage("%v", err)
		}
		set[name] = string(text)
	}
	env := slices.DeleteFunc(slices.Clone(e.app.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := set[name]
		return replaced
	})
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env, nil
}

// freeLock breaks a lock that the command left behind, for instance because it was killed. Closing
// the session would end the lock cleanly; a break makes it an unclean end, of which the next holder
// is warned.
func (e *job) freeLock(s *client.Session, f runFlags, end child.End) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	resource, err := e.conn.Resource(ctx, "terraform/"+f.terraform, 1)
	if err != nil || len(resource.Holders) == 0 || resource.Holders[0].Session != s.ID() {
		e.silent = e.silent || errors.Is(err, leasehold.ErrUnavailable)
		return
	}
	period := v1.Duration(0)
	_, err = e.conn.Break(ctx, v1.BreakRequest{
		Resource: resource.Resource, Token: resource.Holders[0].Token, Period: &period, By: "leasehold run",
		Reason: fmt.Sprintf("%s ended with code %d and left its lock", e.argv[0], end.Code),
	})
	if err == nil {
		e.app.Say("%s ended with code %d and left its lock on %s: the lock was broken", e.argv[0], end.Code,
			f.terraform)
	}
}
