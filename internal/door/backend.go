package door

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// Options are what a Backend can be told. The zero value is good for tests.
type Options struct {
	Version v1.Version         // of the program
	Metrics *telemetry.Metrics // nil: the backend keeps its own
	Log     *slog.Logger       // nil: nothing is written
	State   *listen.State      // nil: the backend keeps its own
	MaxStay int                // requests of one client that wait or watch at a time, of all doors; 0: 10,000
	Answers int                // bytes of large answers at a time, of all doors; 0: 512 MiB
	Now     func() time.Time   // by which credentials end; nil: the clock of this machine
	Issuers *http.Client       // that asks issuers of JWTs for their keys; nil: the usual one
	Warner  engine.Warner      // what is to be looked at beside what the engine knows; nil: nothing
	Gates   *listen.Gates      // of the server's ports; nil: who is connected is not known
}

// A Backend is all that a door may use. Its methods may be called from any goroutine.
type Backend struct {
	options Options
	state   *listen.State

	stays, renewals, checks *Places // of requests that take long
	answers                 *Places // bytes of large answers

	strangers *limit.Budget // bytes

	version map[string]string // what doors add to the version; written while they are opened

	// Set before the state opens. Doors get no engine but this one.
	guard   *access.Guard
	values  engine.Values
	cluster engine.Cluster
	login   *credential.Login

	entrances []Entrance
	sleepers  sleepers
}

// NewBackend returns a backend with an engine.
func NewBackend(e engine.Engine, options Options) *Backend {
	own := options.Metrics == nil
	b := NewStarting(options)
	if own {
		b.Metrics().CountBy(e.Read)
	}
	b.Open(e)
	return b
}

// NewStarting returns a backend whose engine comes later, by Open. Until then the ports answer
// "starting" for its doors.
func NewStarting(options Options) *Backend {
	if options.Metrics == nil {
		options.Metrics = telemetry.NewMetrics()
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.State == nil {
		options.State = listen.NewState()
	}
	SetDefault(&options.MaxStay, 10000)
	b := &Backend{options: options, state: options.State}
	most := options.MaxStay + options.MaxStay/4
	b.stays = NewPlaces(most, options.MaxStay, "as many requests wait or watch here as can, or as one client may "+
		"have: try again in a moment, or on another server")
	b.renewals = NewPlaces(most, options.MaxStay, "as many streams renew leases here as can, or as one client may "+
		"have: renew several by one stream")
	SetDefault(&options.Answers, defaultAnswers)
	b.answers = newAnswers(options.Answers)
	b.checks = NewPlaces(maxChecks, maxChecks/10, "as many watch the health of this server as can: ask for it now "+
		"and then")
	b.strangers = listen.NewStrangers()
	return b
}

// Open gives the backend its engine, and lets requests in. It is called once. The engine is
// put behind a guard: doors do and see what who asks them may.
func (b *Backend) Open(e engine.Engine) {
	b.guard = access.New(e)
	b.values = b.guard.Values()
	b.cluster = b.guard.Cluster()
	b.login = b.newLogin(e)
	b.state.Open()
}

// SetEntrances says which doors the server has. It is called before Open.
func (b *Backend) SetEntrances(all []Entrance) { b.entrances = all }

// Entrances returns which doors the server has. It may be asked once the server is open.
func (b *Backend) Entrances() []Entrance { return b.entrances }

// Guests returns who is connected, if the asker may know.
func (b *Backend) Guests(ctx context.Context) ([]listen.Guest, error) {
	if err := b.Monitors(ctx); err != nil {
		return nil, err
	}
	return b.options.Gates.Guests(), nil
}

// Engine orders and keeps commands. It is nil while the server starts.
func (b *Backend) Engine() engine.Engine {
	if b.Starting() {
		return nil // Open may be writing it
	}
	return b.guard
}

// Do carries out a command.
func (b *Backend) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	return b.guard.Do(ctx, command)
}

// Submit carries out commands that no goroutine waits for.
func (b *Backend) Submit(batch []engine.Submission) { b.guard.Submit(batch) }

// Read calls fn with what the asker may see of the state, as engine.Engine does.
func (b *Backend) Read(ctx context.Context, fn func(core.View)) error { return b.guard.Read(ctx, fn) }

// Ready returns why the engine cannot be read. Anybody may ask: it tells nothing else.
func (b *Backend) Ready(ctx context.Context) error { return b.guard.Ready(ctx) }

// Permit returns what the asker may do; nil: everything.
func (b *Backend) Permit(ctx context.Context) (*policy.Permit, error) { return b.guard.Permit(ctx) }

// MayWrite returns why the asker may not write the record at a path, or none below it; nil: it may try. It is asked
// before a body is read: see access.Guard.
func (b *Backend) MayWrite(ctx context.Context, namespace, path string, below bool) error {
	return b.guard.MayWrite(ctx, namespace, path, below)
}

// Monitors returns why the asker may not see how the server does; nil: it may. While the server starts
// there is nothing to see.
func (b *Backend) Monitors(ctx context.Context) error {
	if b.Starting() {
		return nil
	}
	return b.guard.MayCluster(ctx, policy.Monitor)
}

// Journal has what was done, by whom, as far as the asker of each search may see it. Nil: there is none.
func (b *Backend) Journal() audit.Book { return b.guard.Journal() }

// Refused puts a refusal in the journal that only a door knows of.
func (b *Backend) Refused(r audit.Refusal) {
	if b.Starting() {
		return
	}
	if j := b.Journal(); j != nil {
		j.Refused(r)
	}
}

// Values keeps large values. Nil: this engine keeps none.
func (b *Backend) Values() engine.Values { return b.values }

// Cluster is the servers that the engine runs on. Nil: it runs on no others and never will.
func (b *Backend) Cluster() engine.Cluster { return b.cluster }

// Warnings returns one sentence for each thing that somebody should look at, if the asker may know.
func (b *Backend) Warnings(ctx context.Context) []string {
	if b.Starting() || b.Monitors(ctx) != nil {
		return nil
	}
	all := b.guard.Warnings(ctx)
	if b.options.Warner != nil {
		all = append(all, b.options.Warner.Warnings()...)
	}
	return all
}

// Version returns the version of the program.
func (b *Backend) Version() v1.Version { return b.options.Version }

// AddVersion adds fields to what /version answers, for clients of a door that look there. A door calls it while it is
// opened.
func (b *Backend) AddVersion(fields map[string]string) {
	if b.version == nil {
		b.version = map[string]string{}
	}
	maps.Copy(b.version, fields)
}

// VersionFields returns what /version answers beside the version of the program.
func (b *Backend) VersionFields() map[string]string { return b.version }

// Log is where a door writes what operators should know.
func (b *Backend) Log() *slog.Logger { return b.options.Log }

// Metrics are the server's numbers.
func (b *Backend) Metrics() *telemetry.Metrics { return b.options.Metrics }

// Requests returns the account of a door's requests, which has one line for each verb.
func (b *Backend) Requests(door string) *telemetry.Requests {
	return b.options.Metrics.Requests(door, b.options.Log)
}

// State is the phase that the server is in: starting, open or stopping.
func (b *Backend) State() *listen.State { return b.state }

// Starting reports whether there is no engine yet.
func (b *Backend) Starting() bool { return b.state.Starting() }

// Stopping is done when the server drains: what waits or watches is to end then.
func (b *Backend) Stopping() context.Context { return b.state.Stopping() }

// Expected reports whether a request may fail without anybody being told: its caller went
// away, or the server is stopping.
func (b *Backend) Expected(r *http.Request) bool {
	return r.Context().Err() != nil || b.Stopping().Err() != nil
}
