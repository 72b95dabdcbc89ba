// Package memory is an engine that forgets everything when it ends. It is for
// tests: of doors, of clients, and of users' own programs.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// Engine applies each command at once, under one lock. It keeps the same contract as the
// cluster (see enginetest) on the same core, so what a test learns from it holds there too,
// apart from durability.
type Engine struct {
	clock   engine.Clock
	feed    *engine.Feed
	journal *audit.Journal // nil: none

	mu      sync.Mutex // guards what follows
	state   core.Machine
	applied uint64
	ticker  *time.Timer
	closed  bool
	values  map[leasehold.Digest]value
}

var _ engine.Engine = (*Engine)(nil)

// Start returns an engine that counts time by clock; call Close when done.
func Start(clock engine.Clock) *Engine {
	e := StartSilent(clock)
	e.journal = audit.InMemory(maxJournal, clock.Wall)
	return e
}

// StartSilent returns an engine without a journal. It has a timer and no goroutine, so one that
// nobody closes costs only its memory.
func StartSilent(clock engine.Clock) *Engine {
	return &Engine{
		clock: clock, feed: engine.NewFeed(), state: core.NewMachine(core.NewestLevel),
		values: map[leasehold.Digest]value{},
	}
}

// maxJournal bounds the journal, in bytes.
const maxJournal = 4 << 20

// Close ends the engine, and tells everybody who waits.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.ticker != nil {
		e.ticker.Stop()
	}
	e.feed.Close()
	if e.journal == nil {
		return nil
	}
	return e.journal.Close()
}

// Level returns the level of the rules by which it decides.
func (e *Engine) Level() core.Level { return core.NewestLevel }

// LiftTokens makes the tokens of a namespace go on above one that somebody has seen.
func (e *Engine) LiftTokens(namespace string, above leasehold.Token) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return stopping()
	}
	if failure := e.state.LiftTokens(namespace, above); failure != nil {
		return failure
	}
	return nil
}

// Restore makes it continue as after a restore of a backup of its state, which begins a quarantine.
func (e *Engine) Restore(how core.Restoration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.state.FromBackup(how); err != nil {
		return err
	}
	_, err := e.apply(&core.Lead{Node: 1}, leasehold.Origin{}, nil)
	return err
}

// Feed returns the feed of what happens.
func (e *Engine) Feed() *engine.Feed { return e.feed }

// Journal has what was done, and who held what; nil if there is none.
func (e *Engine) Journal() audit.Book {
	if e.journal == nil {
		return nil // and not a Book that has none
	}
	return e.journal
}

// Do applies one command.
func (e *Engine) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.do(ctx, command)
}

// Submit applies commands, nothing else in between.
func (e *Engine) Submit(batch []engine.Submission) {
	type outcome struct {
		answer core.Answer
		err    error
	}
	outcomes := make([]outcome, len(batch))
	e.mu.Lock()
	for i, s := range batch {
		o := &outcomes[i]
		if o.err = engine.ErrLeft; s.Ctx.Err() == nil {
			o.answer, o.err = e.do(s.Ctx, s.Command)
		}
	}
	e.mu.Unlock()
	for i, o := range outcomes {
		batch[i].Done(o.answer, o.err)
	}
}

func (e *Engine) do(ctx context.Context, command core.Command) (core.Answer, error) {
	if err := command.Validate(); err != nil {
		return core.Answer{}, err
	}
	origin, err := engine.OriginOf(ctx)
	if err != nil {
		return core.Answer{}, err
	}
	asker := engine.AskerOf(ctx)
	if err := engine.CheckAsker(asker); err != nil {
		return core.Answer{}, err
	}
	if e.closed {
		return core.Answer{}, stopping()
	}
	if err := e.nameable(command); err != nil {
		return core.Answer{}, err
	}
	answer, err := e.apply(command, origin, asker)
	if err != nil {
		return core.Answer{}, engine.Unavailable(err.Error())
	}
	return engine.Decided(answer)
}

func stopping() error {
	return engine.Unavailable("the server is stopping: try another one, or this one in a moment")
}

// Read calls fn with the state as it is.
func (e *Engine) Read(ctx context.Context, fn func(core.View)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return stopping()
	}
	fn(e.state.View(time.Duration(e.now() - e.state.Now())))
	return nil
}

// Check returns every way in which the state contradicts itself.
func (e *Engine) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.Check()
}

func (e *Engine) now() core.Time { return core.Time(e.clock.Monotonic()) }

func (e *Engine) apply(command core.Command, origin leasehold.Origin, asker *access.Asker) (core.Answer, error) {
	stamp, wall := max(e.now(), e.state.Now()), e.clock.Wall().UnixNano()
	commands := []core.Command{command}
	from := core.From{Origins: []leasehold.Origin{origin}, Askers: []*access.Asker{asker}}
	result, err := e.state.Apply(stamp, wall, commands, from)
	if err != nil {
		return core.Answer{}, err
	}
	e.applied++
	for _, large := range result.Freed {
		e.see(large)
	}
	if e.journal != nil {
		e.journal.Append(audit.Entry{
			Index: e.applied, Wall: wall, Commands: commands, From: from, Result: result,
		})
	}
	e.feed.Publish(e.state.View(0), result.Events)
	e.pace()
	return result.Answers[0], nil
}

// pace sets the timer for the next tick.
func (e *Engine) pace() {
	if e.ticker != nil {
		e.ticker.Stop()
	}
	if at, ok := engine.NextLook(e.state); ok {
		e.ticker = time.AfterFunc(time.Duration(max(0, at-e.now())), e.tick)
	}
}

func (e *Engine) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if !engine.TickDue(e.state, e.now()) {
		e.pace()
		return
	}
	// A tick can only fail if the clock went back, and then the next one will do.
	_, _ = e.apply(&core.Tick{}, leasehold.Origin{}, nil)
}
