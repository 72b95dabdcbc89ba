package mcp

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/core"
)

// What goes wrong with the claims of agents elsewhere, one test for each.

// The claim of a dead agent elsewhere lasts for hours, or until somebody deletes it by hand.
func TestAClaimDoesNotOutliveItsAgent(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		dead := b.acquire("ann", "task/1").is(statusHeld)
		ticket := b.acquire("bob", "task/1").is(statusWaiting)
		for range 11 {
			sleep(time.Minute)
			b.check("bob", ticket.ID)
		}
		b.check("bob", ticket.ID).is(statusHeld)
		b.check("ann", dead.ID).is(statusLost, "session expired", "Stop")
	})
}

// A ticket that its agent forgot gets no more than one TTL of anybody's time, whatever else that agent does.
func TestAForgottenTicketIsNotKeptByOtherCalls(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ann := b.acquire("ann", "task/1", `,"ttl_seconds":3600`).is(statusHeld)
		forgotten := b.acquire("bob", "task/1", `,"ttl_seconds":120`).is(statusWaiting)
		b.release("ann", ann.ID)
		for range 5 {
			sleep(30 * time.Second)
			b.call("bob", "lease_list", `{}`)
		}
		b.acquire("eve", "task/1").is(statusHeld)
		b.check("bob", forgotten.ID).is(statusLost)
	})
}

// Once its agent knows of it, what a ticket got is renewed by other calls like any lease.
func TestATicketThatWasTakenUpIsKeptByOtherCalls(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ann := b.acquire("ann", "task/1").is(statusHeld)
		ticket := b.acquire("bob", "task/1", `,"ttl_seconds":120`).is(statusWaiting)
		b.release("ann", ann.ID)
		b.check("bob", ticket.ID).is(statusHeld)
		for range 10 {
			sleep(30 * time.Second)
			b.call("bob", "lease_list", `{}`)
		}
		b.check("bob", ticket.ID).is(statusHeld)
	})
}

// Nobody renews in the middle of a long command, so a short TTL ends the lease of somebody who works.
func TestATTLIsLongerThanTheWorkUsuallyTakes(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		for range 10 {
			g := b.acquire("ann", "build").is(statusHeld)
			for range 3 {
				sleep(5 * time.Minute)
				b.check("ann", g.ID).is(statusHeld)
			}
			b.release("ann", g.ID)
		}
		g := b.acquire("bob", "build").is(statusHeld)
		if g.ExpiresIn < 30*60 || g.ExpiresIn > 34*60 {
			t.Errorf("work of 15 minutes has a lease of %ds", g.ExpiresIn)
		}
		sleep(29 * time.Minute) // one long command
		b.check("bob", g.ID).is(statusHeld)
	})
}

// What is learned stays between 2 minutes and 4 hours, and is not learned from those who died.
func TestLearnedTTLs(t *testing.T) {
	usual := func(holds, unclean int, p50, p95 time.Duration) *leasehold.Usual {
		return &leasehold.Usual{Holds: holds, Unclean: unclean, HoldP50: p50, HoldP95: p95}
	}
	for _, c := range []struct {
		usual *leasehold.Usual
		want  time.Duration
	}{
		{nil, defaultTTL},
		{usual(2, 0, time.Hour, time.Hour), defaultTTL},
		{usual(20, 0, time.Minute, 9*time.Minute), 18 * time.Minute},
		{usual(20, 1, time.Minute, 9*time.Minute), 18 * time.Minute},
		{usual(20, 4, 3*time.Minute, 90*time.Minute), 6 * time.Minute},
		{usual(20, 11, 90*time.Minute, 90*time.Minute), defaultTTL},
	} {
		if got := learned(c.usual, defaultTTL); got != c.want {
			t.Errorf("from %+v %v is learned, want %v", c.usual, got, c.want)
		}
	}
	inTime(t, func(t *testing.T, b *bench) {
		for range 5 {
			b.release("ann", b.acquire("ann", "quick").is(statusHeld).ID)
		}
		if g := b.acquire("ann", "quick"); g.ExpiresIn != 120 {
			t.Errorf("the least is %ds", g.ExpiresIn)
		}
		for range 5 {
			g := b.acquire("ann", "slow", `,"ttl_seconds":14400`).is(statusHeld)
			sleep(3 * time.Hour)
			b.release("ann", g.ID)
		}
		if g := b.acquire("ann", "slow"); g.ExpiresIn != 4*60*60 {
			t.Errorf("the most is %ds", g.ExpiresIn)
		}
	})
}

// Work is of kinds: reviewers who need a minute must not shorten the TTL of builders who need an hour, and a task that
// nobody did before is of the kind of its folder.
func TestTTLsAreLearnedByKind(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		turn := func(agent string, lasts time.Duration) {
			g := b.acquire(agent, "repo/web:a.go", `,"ttl_seconds":14400`).is(statusHeld)
			sleep(lasts)
			b.release(agent, g.ID)
		}
		for range 8 {
			turn("reviewer-1", time.Minute)
			turn("builder-1", time.Hour)
		}
		for agent, want := range map[string][2]int{"reviewer-7": {120, 130}, "builder-7": {7100, 7700}} {
			g := b.acquire(agent, "repo/web:a.go").is(statusHeld)
			if g.ExpiresIn < want[0] || g.ExpiresIn > want[1] {
				t.Errorf("%s has %ds, want %v", agent, g.ExpiresIn, want)
			}
			b.release(agent, g.ID)
		}
		for i := range 8 {
			b.do(&core.PutTask{Namespace: leasehold.DefaultNamespace, Path: "jobs/" + string(rune('a'+i)), Value: "x"})
			g := b.acquire("builder-1", "jobs/", `,"ttl_seconds":14400`).is(statusHeld)
			sleep(30 * time.Minute)
			b.call("builder-1", "lease_release", `{"ids":["`+g.ID+`"],"outcome":"done"}`)
		}
		b.do(&core.PutTask{Namespace: leasehold.DefaultNamespace, Path: "jobs/new", Value: "x"})
		if g := b.acquire("builder-2", "jobs/").is(statusHeld); g.ExpiresIn < 3500 || g.ExpiresIn > 3900 {
			t.Errorf("a new task of half an hour has %ds", g.ExpiresIn)
		}
	})
}

// A TTL that nobody can set is wrong for somebody: an agent may ask for one, and a definition may set one.
func TestTTLsCanBeSet(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.do(&core.Define{Namespace: leasehold.DefaultNamespace, Definition: leasehold.Definition{Path: "slow/",
			DefaultTTL: time.Hour, LargestTTL: 2 * time.Hour}})
		for arguments, want := range map[string]int{``: 3600, `,"ttl_seconds":30`: 30} {
			g := b.acquire("ann", "slow/1", arguments).is(statusHeld)
			if g.ExpiresIn != want {
				t.Errorf("with %q it lasts for %ds, want %d", arguments, g.ExpiresIn, want)
			}
			b.release("ann", g.ID)
		}
	})
}

// A heartbeat that never looks at who holds lets two machines hold one claim.
func TestNobodyRenewsTheLeaseOfAnother(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		mine := b.acquire("ann", "task/1").is(statusHeld)
		for range 4 {
			sleep(3 * time.Minute)
			b.check("bob", mine.ID).fails(leasehold.NotFound, "no lease or ticket of yours")
			b.release("bob", mine.ID).fails(leasehold.NotFound)
			b.check("bob")
		}
		if s := b.status("task/1"); s.Holding != 0 {
			t.Errorf("%+v hold it after the TTL of its agent", s.Holders)
		}
	})
}

// Without fencing, the agent that was away completes the task of the next one.
func TestALateAgentIsRefusedByItsToken(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		late := b.acquire("ann", "task/1").is(statusHeld)
		sleep(11 * time.Minute)
		next := b.acquire("bob", "task/1").is(statusHeld)
		guard, wrote := fence.NewMemory(), ""
		for _, agent := range []told{next, late} {
			pass := fence.Pass{Token: agent.Leases[0].Token}
			_ = guard.Do(t.Context(), "task/1", pass, func(context.Context) error {
				wrote += agent.ID + " "
				return nil
			})
		}
		if wrote != next.ID+" " {
			t.Errorf("%q wrote, want %s alone", wrote, next.ID)
		}
	})
}

// A heartbeat that comes late brings a finished claim back to life.
func TestNothingRevivesWhatEnded(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		over := b.acquire("ann", "task/1", `,"request_id":"r1"`).is(statusHeld)
		done := b.acquire("ann", "task/2", `,"request_id":"r2"`).is(statusHeld)
		b.release("ann", done.ID)
		b.check("ann", done.ID).is(statusLost, "you released it")
		b.acquire("ann", "task/2", `,"request_id":"r2"`).fails(leasehold.Lost, "not revived", "new request_id")
		sleep(15 * time.Minute)
		b.check("ann", over.ID).is(statusLost)
		b.acquire("ann", "task/1", `,"request_id":"r1"`).fails(leasehold.Lost, "not revived")
		if s := b.status("task/1"); s.Holding != 0 {
			t.Errorf("%d hold what expired", s.Holding)
		}
		b.acquire("ann", "task/1", `,"request_id":"r3"`).is(statusHeld)
	})
}

// A heartbeat that waits for something else declares a healthy agent dead.
func TestACheckWaitsForNoOtherCall(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.acquire("eve", "busy").is(statusHeld)
		mine := b.acquire("ann", "task/1").is(statusHeld)
		ended := make(chan told)
		go func() { ended <- b.acquire("ann", "busy", `,"wait_seconds":20`) }()
		synctest.Wait()
		began := time.Now()
		b.check("ann", mine.ID).is(statusHeld)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the check took %v", took)
		}
		(<-ended).is(statusWaiting)
	})
}

// "0 released" looks like success.
func TestAReleaseNamesWhatItReleased(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		g := b.call("ann", "lease_acquire", `{"resources":["a","b"],"reason":"both"}`).is(statusHeld)
		for _, want := range []string{"released", "it was released before"} {
			got := b.release("ann", g.ID).Released
			if len(got) != 1 || got[0].Result != want || strings.Join(got[0].Resources, " ") != "a b" {
				t.Errorf("the release is answered %+v, want %s", got, want)
			}
		}
		b.release("ann", "mcp-nonsense").fails(leasehold.NotFound, "no lease or ticket of yours")
		b.release("ann", newAgent("", "ann").id("never")).says("there is no such lease")
		b.call("ann", "lease_release", `{"ids":[]}`).fails(leasehold.Invalid)
		over := b.acquire("ann", "c").is(statusHeld)
		sleep(11 * time.Minute)
		b.release("ann", over.ID).says(lostBefore, "session expired", "look at it")
	})
}

// Nobody but the session that died may clean up after it.
func TestOthersCanEndAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Break: true})
		gone := b.acquire("ann", "task/1").is(statusHeld)
		b.call("bob", "lease_break", `{"resource":"task/1"}`).fails(leasehold.Invalid, "reason is missing")
		b.call("bob", "lease_break", `{"resource":"task/1","reason":"ann's machine died"}`).says(`"holder":"ann"`,
			`"ends_in_seconds":60`)
		b.check("ann", gone.ID).is(statusHeld, "Somebody ends this lease")
		sleep(time.Minute)
		b.acquire("bob", "task/1").is(statusHeld)
		b.check("ann", gone.ID).is(statusLost, "broken")
		// So can a person, through any other door.
		b.do(&core.Break{Namespace: leasehold.DefaultNamespace, ID: b.status("task/1").Holders[0].ID, By: "eve",
			Reason: "no"})
		b.acquire("ann", "task/1").is(statusHeld)
	})
}

// "Granted, with conflicts" is not granted.
func TestNothingIsGrantedWithConflicts(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.acquire("ann", "a").is(statusHeld)
		both := b.call("bob", "lease_acquire", `{"resources":["a","b"],"reason":"both"}`).is(statusWaiting)
		if s := b.status("b"); s.Holding != 0 {
			t.Error("a part was granted without the rest")
		}
		if len(both.Leases) != 0 {
			t.Errorf("a ticket shows leases: %s", both.text)
		}
	})
}

// Those who wait cannot see who holds a resource, and why.
func TestWaitersSeeWhoHoldsAndWhy(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ann := b.acquire("ann", "env/staging").is(statusHeld)
		b.acquire("bob", "env/staging").is(statusWaiting)
		got := b.acquire("eve", "env/staging").is(statusWaiting, `"position":2`, `"forecast":"unknown"`, `"holder":"ann"`,
			`"reason":"fix the login"`, "lease_check")
		if got.PlaceKeptIn != 600 || len(got.HeldBy) != 1 || got.HeldBy[0].Waiting != 2 {
			t.Errorf("the ticket says %s", got.text)
		}
		b.call("eve", "lease_list", `{"prefix":"env/"}`).says(`"holder":"ann"`, `"waiting":2`, "fix the login")
		b.call("eve", "lease_ask", `{"resource":"env/staging","message":"are you done?"}`).says(
			`"delivered_to":["ann"]`)
		if got := b.check("ann", ann.ID).Messages; len(got) != 1 || got[0].From != "eve" || got[0].Text != "are you done?" {
			t.Errorf("the holder was told %+v", got)
		}
		b.release("ann", ann.ID)
		b.call("eve", "lease_ask", `{"resource":"nothing","message":"?"}`).fails(leasehold.NotFound)
	})
}

// Clients cut a call off while it waits, and the place in the queue is lost.
func TestNoCallLastsFor25Seconds(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ann := b.acquire("ann", "task/1", `,"ttl_seconds":3600`).is(statusHeld)
		began := time.Now()
		ticket := b.acquire("bob", "task/1", `,"request_id":"r","wait_seconds":20`).is(statusWaiting)
		if took := time.Since(began); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("the call took %v", took)
		}
		b.acquire("bob", "task/1", `,"wait_seconds":21`).fails(leasehold.Invalid, "0 to 20")
		b.acquire("eve", "task/1").is(statusWaiting, `"position":2`)
		again := b.acquire("bob", "task/1", `,"request_id":"r"`).is(statusWaiting, `"position":1`)
		if again.ID != ticket.ID {
			t.Errorf("the same request has the tickets %s and %s", ticket.ID, again.ID)
		}
		turn := make(chan told)
		go func() { turn <- b.call("bob", "lease_check", `{"ids":["`+ticket.ID+`"],"wait_seconds":20}`) }()
		sleep(3 * time.Second)
		b.release("ann", ann.ID)
		(<-turn).is(statusHeld)
	})
}

// Without an atomic claim two agents do one task, and the one that was away completes the task of the next.
func TestATaskIsClaimedByOneAgentAndFinishedByItsHolder(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		for _, path := range []string{"jobs/a", "jobs/b"} {
			b.do(&core.PutTask{Namespace: leasehold.DefaultNamespace, Path: path, Value: "resize " + path})
		}
		first := b.acquire("ann", "jobs/").is(statusHeld)
		second := b.acquire("bob", "jobs/").is(statusHeld)
		if l := first.Leases[0]; l.Resource != "jobs/a" || l.Task != "resize jobs/a" || second.Leases[0].Resource != "jobs/b" {
			t.Errorf("claimed %+v and %+v", first.Leases, second.Leases)
		}
		ticket := b.acquire("eve", "jobs/").is(statusWaiting)
		for range 11 { // both are away
			sleep(time.Minute)
			b.check("eve", ticket.ID)
		}
		third := b.check("eve", ticket.ID).is(statusHeld)
		b.call("ann", "lease_release", `{"ids":["`+first.ID+`"],"outcome":"done"}`).says("it was lost before")
		state := func() (text string) {
			_ = b.engine.Read(t.Context(), func(v core.View) {
				task, _ := v.Task(leasehold.DefaultNamespace, third.Leases[0].Resource)
				text = task.State.String()
			})
			return text
		}
		if got := state(); got != "doing" {
			t.Errorf("after the late result it is %s", got)
		}
		b.call("eve", "lease_release", `{"ids":["`+third.ID+`"],"outcome":"done"}`)
		if got := state(); got != "done" {
			t.Errorf("it is %s", got)
		}
	})
}

// Who waits for a path learns by which pattern, and of whom, it is in the way.
func TestPatternsThatOverlap(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		wide := b.acquire("ann", "repo/web:src/auth/**").is(statusHeld)
		ticket := b.acquire("bob", "repo/web:src/auth/login.go").is(statusWaiting)
		if len(ticket.HeldBy) != 1 || ticket.HeldBy[0].Holder != "ann" ||
			ticket.HeldBy[0].Resource != "repo/web:src/auth/**" {
			t.Errorf("in the way is %+v", ticket.HeldBy)
		}
		b.acquire("cyd", "repo/web:docs/**").is(statusHeld)
		b.release("ann", wide.ID)
		b.acquire("dan", "repo/web:src").is(statusWaiting)
	})
}
