package azure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// A forgetful engine does what it is told, or does not, and then can't tell which. At
// each command it asks what to do.
type forgetful struct {
	engine.Engine
	mu   sync.Mutex
	next func() (do, tell bool)
}

func (e *forgetful) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	e.mu.Lock()
	do, tell := e.next()
	e.mu.Unlock()
	if !do {
		return core.Answer{}, engine.Undecided("nobody knows")
	}
	answer, err := e.Engine.Do(ctx, c)
	if !tell {
		return core.Answer{}, engine.Undecided("nobody knows")
	}
	return answer, err
}

// Nobody can tell whether a command happened, once, at each of the commands of a whole
// life. Whatever it was, the caller gets the answer that it would have had.
func TestAnswersThatWereLost(t *testing.T) {
	const target = "/box/state"
	life := []struct {
		method, target string
		status         int
		headers        []string
	}{
		{"PUT", "/box?restype=container", 201, nil},
		{"PUT", target, 201, []string{"x-ms-blob-type", "BlockBlob"}},
		{"PUT", target + "?comp=lease", 201, []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA}},
		{"PUT", target + "?comp=metadata", 200, []string{"x-ms-lease-id", idA, "x-ms-meta-terraformlockid", "e30="}},
		{"PUT", target, 201, []string{"x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idA}},
		{"PUT", target + "?comp=snapshot", 201, []string{"x-ms-lease-id", idA}},
		{"PUT", target + "?comp=block&blockid=QQ==", 201, []string{"x-ms-lease-id", idA}},
		{"PUT", target + "?comp=lease", 200, []string{"x-ms-lease-action", "renew", "x-ms-lease-id", idA}},
		{"PUT", target + "?comp=lease", 200, []string{"x-ms-lease-action", "change", "x-ms-lease-id", idA, "x-ms-proposed-lease-id", idB}},
		{"PUT", target + "?comp=metadata", 200, []string{"x-ms-lease-id", idB}},
		{"PUT", target + "?comp=lease", 200, []string{"x-ms-lease-action", "release", "x-ms-lease-id", idB}},
		{"PUT", target + "?comp=lease", 201, []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idC}},
		{"PUT", target + "?comp=lease", 202, []string{"x-ms-lease-action", "break", "x-ms-lease-break-period", "0"}},
		{"DELETE", target, 202, []string{"x-ms-delete-snapshots", "include"}},
		{"DELETE", "/box?restype=container", 202, nil},
	}
	for _, happens := range []bool{false, true} {
		// As many commands as there are: the run in which nothing was lost is the last.
		for lost, more := 0, true; more; lost++ {
			more = false
			b := newBench(t)
			n := 0
			b.door.backend.Open(&forgetful{Engine: b.engine, next: func() (bool, bool) {
				defer func() { n++ }()
				if n == lost {
					more = true
					return happens, false
				}
				return true, true
			}})
			for _, step := range life {
				got := b.ask(step.method, step.target, "", step.headers...)
				if got.status != step.status {
					t.Fatalf("the answer to command %d was lost (it happened: %v): %s %v: %d %s", lost, happens, got.what, step.headers, got.status, got.code)
				}
			}
			if lost > 100 {
				t.Fatal("there is no end")
			}
		}
	}
}

// Who proposed no id, and got no answer, can't release what it may have: nobody must be
// left to hold it.
func TestNobodyHoldsWhatWasNeverAnswered(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/state", "")
	never := true
	b.door.backend.Open(&forgetful{Engine: b.engine, next: func() (bool, bool) { return true, !never }})
	b.lease("/box/state", "acquire", "x-ms-lease-duration", "-1").expect(201) // found by looking
	b.lease("/box/state", "break", "x-ms-lease-break-period", "0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the caller went away
	r := bare("PUT", "/leasehold/box/state?comp=lease", "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1")
	b.sign(r)
	b.send(r.WithContext(ctx)).expect(503, "ServerBusy")
	never = false
	if state := b.stateOf("/box/state"); state == "leased" {
		t.Errorf("it is %s, by nobody", state)
	}
}

// An engine is overtaking if it carries out a command, loses the answer, and lets others act before anybody looks again.
type overtaking struct {
	engine.Engine
	is   func(core.Command) bool // the command, which comes once
	then func()
	lost bool // the answer: reads fail as well
}

func (e *overtaking) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if e.is == nil || !e.is(c) {
		return e.Engine.Do(ctx, c)
	}
	e.is = nil
	if _, err := e.Engine.Do(ctx, c); err != nil {
		return core.Answer{}, err
	}
	e.then()
	return core.Answer{}, engine.Undecided("nobody knows")
}

func (e *overtaking) Read(ctx context.Context, fn func(core.View)) error {
	if e.lost {
		return engine.Unavailable("no leader is known")
	}
	return e.Engine.Read(ctx, fn)
}

// A request that is tried again does not hit what came after that for which it was meant.
func TestRetriesSpareTheNext(t *testing.T) {
	isTxn := func(c core.Command) bool { _, is := c.(*core.Txn); return is }
	for name, story := range map[string]struct {
		ask   func(*bench) reply
		is    func(core.Command) bool
		then  func(*bench)
		after func(*bench)
	}{
		"break": {
			ask: func(b *bench) reply { return b.lease("/box/state", "break", "x-ms-lease-break-period", "0") },
			is:  func(c core.Command) bool { _, is := c.(*core.Break); return is },
			then: func(b *bench) {
				b.lease("/box/state", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idB).expect(201)
			},
			after: func(b *bench) { b.lease("/box/state", "renew", "x-ms-lease-id", idB).expect(200) },
		},
		"delete of a blob": {
			ask:   func(b *bench) reply { return b.ask("DELETE", "/box/state", "", "x-ms-lease-id", idA) },
			is:    isTxn,
			then:  func(b *bench) { b.blob("box/state", "next") },
			after: func(b *bench) { b.ask("GET", "/box/state", "").expect(200) },
		},
		"delete of a container": {
			ask:   func(b *bench) reply { return b.ask("DELETE", "/box?restype=container", "") },
			is:    isTxn,
			then:  func(b *bench) { b.container("box"); b.blob("box/state", "next") },
			after: func(b *bench) { b.ask("GET", "/box/state", "").expect(200) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.container("box")
			b.blob("box/state", "")
			b.lease("/box/state", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA).expect(201)
			b.door.backend.Open(&overtaking{Engine: b.engine, is: story.is, then: func() { story.then(b) }})
			story.ask(b).expect(202)
			story.after(b)
		})
	}
}

// Nobody is left to hold a lease under an id that was never told, also if what came after the lost answer was another
// failure.
func TestNobodyHoldsWhatWasLostBeforeAFailure(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/state", "")
	e := &overtaking{Engine: b.engine, is: func(c core.Command) bool { _, is := c.(*core.Txn); return is }}
	e.then = func() { e.lost = true }
	b.door.backend.Open(e)
	b.lease("/box/state", "acquire", "x-ms-lease-duration", "-1").expect(503, "ServerBusy")
	e.lost = false
	if state := b.stateOf("/box/state"); state == "leased" {
		t.Errorf("it is %s, by nobody", state)
	}
}

// Who asks for another duration, and is gone or not answered before it was given, keeps what it has, and leaves nothing
// behind that holds the blob once that was given back.
func TestAnotherDurationThatWasGivenUpHoldsNothing(t *testing.T) {
	queued := func(c core.Command) bool { a, is := c.(*core.Acquire); return is && a.Wait > 0 }
	for name, story := range map[string]struct {
		lost   bool // the answer; or else the caller is gone
		status int
		code   string
	}{"gone": {false, 503, "ServerBusy"}, "unanswered": {true, 201, ""}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.container("box")
			b.blob("box/state", "")
			b.lease("/box/state", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", idA).expect(201)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if story.lost {
				b.door.backend.Open(&overtaking{Engine: b.engine, is: queued, then: func() {}})
			} else {
				b.door.backend.Open(&leaving{b.engine, queued, cancel})
			}
			r := bare("PUT", "/leasehold/box/state?comp=lease", "", "x-ms-lease-action", "acquire",
				"x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA)
			b.sign(r)
			b.send(r.WithContext(ctx)).expect(story.status, story.code)
			b.door.backend.Open(b.engine)
			b.lease("/box/state", "release", "x-ms-lease-id", idA).expect(200)
			if state := b.stateOf("/box/state"); state != "available" {
				t.Errorf("it is %s, by nobody", state)
			}
		})
	}
}

// A break that comes just before the holder gives back what it has for a lease of another duration holds: who breaks was
// told when the blob is free.
func TestABreakHoldsWhileTheDurationChanges(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/state", "")
	b.lease("/box/state", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", idA).expect(201)
	gives := func(c core.Command) bool { _, is := c.(*core.Txn); return is }
	b.door.backend.Open(&preceded{Engine: b.engine, is: gives, by: func() {
		b.lease("/box/state", "break", "x-ms-lease-break-period", "5").expect(202)
	}})
	b.lease("/box/state", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA).expect(409, "LeaseIsBreakingAndCannotBeAcquired")
	if state := b.stateOf("/box/state"); state != "breaking" {
		t.Errorf("it is %s, and 5 s were promised to who broke the lease", state)
	}
}

// A preceded engine lets others act just before it carries out a command of some kind, once.
type preceded struct {
	engine.Engine
	is func(core.Command) bool
	by func()
}

func (e *preceded) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if e.is != nil && e.is(c) {
		e.is = nil
		e.by()
	}
	return e.Engine.Do(ctx, c)
}

// A leaving engine's caller goes away as soon as a command of some kind is done. It does nothing more for that caller.
type leaving struct {
	engine.Engine
	is    func(core.Command) bool
	leave func()
}

func (e *leaving) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if ctx.Err() != nil {
		return core.Answer{}, engine.Unavailable("the request ended")
	}
	answer, err := e.Engine.Do(ctx, c)
	if e.is(c) {
		e.leave()
	}
	return answer, err
}

func (e *leaving) Read(ctx context.Context, fn func(core.View)) error {
	if ctx.Err() != nil {
		return engine.Unavailable("the request ended")
	}
	return e.Engine.Read(ctx, fn)
}

// Many want a lease, and write under it, while leases are broken. No write is ever made
// by who does not hold the lease, and none is lost.
func TestManyWriters(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/state", "0")
	b.door.backend.Open(&forgetful{Engine: b.engine, next: func() (bool, bool) { return rand.IntN(50) != 0, rand.IntN(50) != 0 }})
	const writers, rounds = 8, 40
	written := make([]int, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			id := fmt.Sprintf("%08d-0000-4000-8000-000000000000", w)
			for range rounds {
				got := b.ask("PUT", "/box/state?comp=lease", "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", id)
				if got.status != 201 {
					continue
				}
				was := b.ask("GET", "/box/state", "", "x-ms-lease-id", id)
				if was.status == 200 && b.ask("PUT", "/box/state", was.body+" "+fmt.Sprint(w), "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", id).status == 201 {
					written[w]++
				}
				if rand.IntN(4) == 0 {
					b.ask("PUT", "/box/state?comp=lease", "", "x-ms-lease-action", "break", "x-ms-lease-break-period", "0")
				} else {
					b.ask("PUT", "/box/state?comp=lease", "", "x-ms-lease-action", "release", "x-ms-lease-id", id)
				}
			}
		})
	}
	all.Wait()
	total := 0
	for _, n := range written {
		total += n
	}
	b.door.backend.Open(b.engine)
	words := strings.Fields(b.ask("GET", "/box/state", "").expect(200).body)
	if len(words)-1 < total {
		t.Errorf("%d writes were answered, and %d are there", total, len(words)-1)
	}
	t.Logf("%d writes were answered, %d are there", total, len(words)-1)
}

// Whatever the engine says, the door has an answer of Azure's.
func TestEveryCodeHasAFault(t *testing.T) {
	for _, code := range leasehold.Codes {
		f := faultOf(&leasehold.Error{Code: code, Message: "x"})
		if f.code == "InternalError" || f.status < 400 {
			t.Errorf("%v is %d %s", code, f.status, f.code)
		}
		if f.later != (code == leasehold.Unavailable || code == leasehold.Undecided || code == leasehold.Limited) {
			t.Errorf("%v: to be tried again: %v", code, f.later)
		}
	}
	if f := faultOf(fmt.Errorf("odd")); f.status != 500 {
		t.Errorf("what nobody foresaw is %d", f.status)
	}
}
