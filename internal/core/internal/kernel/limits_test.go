package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A desk is a state with a clock, for tests that are no stories.
type desk struct {
	testing.TB
	state *core.State
	now   time.Duration
}

func newDesk(t testing.TB) *desk {
	d := &desk{TB: t, state: core.NewAt(core.NewestLevel)}
	t.Cleanup(func() { mustBeSound(t, d.state) })
	return d
}

// at moves time.
func (d *desk) at(now time.Duration) *desk {
	d.now = now
	return d
}

func (d *desk) apply(commands ...core.Command) core.Result {
	d.Helper()
	result, err := d.state.Apply(stampOf(d.now), wallOf(d.now), commands)
	if err != nil {
		d.Fatal(err)
	}
	return result
}

func (d *desk) do(c core.Command) core.Answer {
	d.Helper()
	return d.apply(c).Answers[0]
}

// must carries out a command that is not refused.
func (d *desk) must(c core.Command) core.Answer {
	d.Helper()
	answer := d.do(c)
	if answer.Err != nil {
		d.Fatalf("%s: %s", writeCommand(c), tellError(answer.Err))
	}
	return answer
}

// refused carries out a command that is refused in some way, with words that say why.
func (d *desk) refused(c core.Command, code leasehold.Code, words string) {
	d.Helper()
	switch answer := d.do(c); {
	case answer.Err == nil:
		d.Fatalf("%.200s: %s", writeCommand(c), tellAnswer(answer, d.now))
	case answer.Err.Code != code || !strings.Contains(answer.Err.Message, words):
		d.Fatalf("%.200s: %s, which does not say %q", writeCommand(c), tellError(answer.Err), words)
	}
}

const ns = leasehold.DefaultNamespace

// TestValidate tries every field of every command at its limit and one beyond. What is
// beyond must be told what is allowed.
func TestValidate(t *testing.T) {
	name := func(bytes int) string { return strings.Repeat("n", bytes) }
	labels := func(bytes int) leasehold.Labels {
		return leasehold.Labels{{Key: "a", Value: name(bytes / 2)}, {Key: "b", Value: name(bytes - bytes/2 - 2)}}
	}
	acquire := func(change func(c *core.Acquire)) core.Command {
		c := &core.Acquire{Namespace: ns, Resource: "printer", ID: "a1", Holder: "ann", TTL: time.Second}
		change(c)
		return c
	}
	open := func(change func(c *core.OpenSession)) core.Command {
		c := &core.OpenSession{Namespace: ns, ID: "s1", TTL: time.Second}
		change(c)
		return c
	}
	breaks := func(change func(c *core.Break)) core.Command {
		c := &core.Break{Namespace: ns, ID: "a1"}
		change(c)
		return c
	}
	for _, field := range []struct {
		what    string
		allowed string
		command func(n int) core.Command // with n more than is allowed
	}{
		{"namespace", "1024", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.Namespace = name(1024 + n) }) }},
		{"resource", "1024", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.Resource = name(1024 + n) }) }},
		{"lease id", "1024", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.ID = name(1024 + n) }) }},
		{"holder", "1024", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.Holder = name(1024 + n) }) }},
		{"reason", "1024", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.Reason = name(1024 + n) }) }},
		{"session", "1024", func(n int) core.Command {
			return acquire(func(c *core.Acquire) { c.TTL, c.Session = 0, name(1024+n) })
		}},
		{"request key", "1024", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.Request.Key = name(1024 + n) }) }},
		{"request session", "1024", func(n int) core.Command {
			return acquire(func(c *core.Acquire) { c.Request = core.Request{Session: name(1024 + n), Sequence: 1} })
		}},
		{"foreign id", "256", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.Foreign = name(256 + n) }) }},
		{"foreign id", "256", func(n int) core.Command {
			return &core.Change{Namespace: ns, ID: "a1", NewID: "a2", Foreign: name(256 + n)}
		}},
		{"holder", "1024", func(n int) core.Command {
			return &core.Change{Namespace: ns, ID: "a1", About: &core.About{Holder: name(1024 + n)}}
		}},
		{"reason", "1024", func(n int) core.Command {
			return &core.Change{Namespace: ns, ID: "a1", About: &core.About{Holder: "ann", Reason: name(1024 + n)}}
		}},
		{"labels", "4096", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.Labels = labels(4096 + n) }) }},
		{"ttl", "100ms to 720h0m0s (30 days)", func(n int) core.Command {
			return acquire(func(c *core.Acquire) { c.TTL = 30*24*time.Hour + time.Duration(n) })
		}},
		{"ttl", "100ms to 720h0m0s (30 days)", func(n int) core.Command {
			return acquire(func(c *core.Acquire) { c.TTL = 100*time.Millisecond - time.Duration(n) })
		}},
		{"wait", "0 to 24h0m0s", func(n int) core.Command {
			return acquire(func(c *core.Acquire) { c.Wait = 24*time.Hour + time.Duration(n) })
		}},
		{"wait", "0 to 24h0m0s", func(n int) core.Command { return acquire(func(c *core.Acquire) { c.Wait = -time.Duration(n) }) }},
		{"grace", "0 to 24h0m0s", func(n int) core.Command {
			return acquire(func(c *core.Acquire) { c.Grace = 24*time.Hour + time.Duration(n) })
		}},
		{"hold limit", "0 to 8760h0m0s", func(n int) core.Command {
			return acquire(func(c *core.Acquire) { c.HoldLimit = 365*24*time.Hour + time.Duration(n) })
		}},
		{"session id", "1024", func(n int) core.Command { return open(func(c *core.OpenSession) { c.ID = name(1024 + n) }) }},
		{"ttl", "100ms to 720h0m0s (30 days)", func(n int) core.Command {
			return open(func(c *core.OpenSession) { c.TTL = 30*24*time.Hour + time.Duration(n) })
		}},
		{"labels", "4096", func(n int) core.Command { return open(func(c *core.OpenSession) { c.Labels = labels(4096 + n) }) }},
		{"session id", "1024", func(n int) core.Command { return &core.RenewSession{Namespace: ns, ID: name(1024 + n)} }},
		{"session id", "1024", func(n int) core.Command { return &core.CloseSession{Namespace: ns, ID: name(1024 + n)} }},
		{"note", "256", func(n int) core.Command {
			note := name(256 + n)
			return &core.Renew{Namespace: ns, ID: "id", Note: &note}
		}},
		{"lease id", "1024", func(n int) core.Command { return &core.Renew{Namespace: ns, ID: name(1024 + n)} }},
		{"lease id", "1024", func(n int) core.Command { return &core.Release{Namespace: ns, ID: name(1024 + n)} }},
		{"lease id", "1024", func(n int) core.Command { return &core.Change{Namespace: ns, ID: name(1024 + n), Holder: "bob"} }},
		{"holder", "1024", func(n int) core.Command { return &core.Change{Namespace: ns, ID: "a1", Holder: name(1024 + n)} }},
		{"new id", "1024", func(n int) core.Command { return &core.Change{Namespace: ns, ID: "a1", NewID: name(1024 + n)} }},
		{"lease id", "1024", func(n int) core.Command { return breaks(func(c *core.Break) { c.ID = name(1024 + n) }) }},
		{"resource", "1024", func(n int) core.Command {
			return breaks(func(c *core.Break) { c.ID, c.Resource, c.Token = "", name(1024+n), 1 })
		}},
		{"by", "1024", func(n int) core.Command { return breaks(func(c *core.Break) { c.By = name(1024 + n) }) }},
		{"reason", "1024", func(n int) core.Command { return breaks(func(c *core.Break) { c.Reason = name(1024 + n) }) }},
		{"period", "0 to 720h0m0s", func(n int) core.Command {
			return breaks(func(c *core.Break) { c.Period = 30*24*time.Hour + time.Duration(n) })
		}},
		{"boot", "1024", func(n int) core.Command { return &core.Lead{Boot: name(1024 + n)} }},
	} {
		if err := field.command(0).Validate(); err != nil {
			t.Errorf("%s of %T at its limit: %v", field.what, field.command(0), err)
		}
		c := field.command(1)
		err := c.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), field.what+" ") || !strings.Contains(err.Error(), field.allowed) {
			t.Errorf("%s of %T beyond its limit: %v, which does not say %q", field.what, c, err, field.allowed)
		}
		newDesk(t).refused(c, leasehold.Invalid, field.allowed)
	}
}

// TestContradictions sends what cannot be meant.
func TestContradictions(t *testing.T) {
	for _, test := range []struct {
		command core.Command
		says    string
	}{
		{&core.Break{Namespace: ns, ID: "a1", Resource: "printer", Token: 1}, "not both"},
		{&core.Break{Namespace: ns, Resource: "printer"}, "together with the token"},
		{&core.Break{Namespace: ns, ID: "a1", Remains: true, Period: 1}, "not both"},
		{&core.Change{Namespace: ns, ID: "a1"}, "a new holder, a new id, or both"},
		{&core.Acquire{Namespace: ns, Resource: "printer", ID: "a1", Holder: "ann", TTL: time.Second, Session: "s1"}, "not both"},
		{&core.Release{Namespace: ns, ID: "a1", Request: core.Request{Sequence: 1}}, "name the session"},
		{&core.Release{Namespace: ns, ID: "a1", Request: core.Request{Session: "s1"}}, "from 1 on"},
		{&core.Release{Namespace: ns, ID: "a1", Request: core.Request{Session: "s1", Sequence: 1, Key: "k1"}}, "by its sequence number"},
	} {
		newDesk(t).refused(test.command, leasehold.Invalid, test.says)
	}
}

// TestLabelsAreSorted holds that labels have one form: two requests that mean the same
// are the same bytes.
func TestLabelsAreSorted(t *testing.T) {
	for _, labels := range []leasehold.Labels{
		{{Key: "b", Value: "1"}, {Key: "a", Value: "1"}},
		{{Key: "a", Value: "1"}, {Key: "a", Value: "2"}},
	} {
		newDesk(t).refused(&core.OpenSession{Namespace: ns, ID: "s1", TTL: time.Second, Labels: labels}, leasehold.Invalid, "sorted by key")
	}
}

// fillSession opens a session and gives it so many leases, each with somebody who waits.
func fillSession(d *desk, leases int) {
	d.must(&core.OpenSession{Namespace: ns, ID: "s1", TTL: 10 * time.Second})
	var batch []core.Command
	for i := range leases {
		path := fmt.Sprint("r", i)
		batch = append(batch,
			&core.Acquire{Namespace: ns, Resource: path, ID: "h" + path, Holder: "ann", Session: "s1"},
			&core.Acquire{Namespace: ns, Resource: path, ID: "w" + path, Holder: "bob", TTL: time.Hour, Wait: time.Hour})
	}
	for _, c := range batch {
		d.must(c)
	}
}

// TestSessionHasSoManyClaims fills a session and sees it end: over several ticks, and with one
// alarm at the end.
func TestSessionHasSoManyClaims(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	fillSession(d, leasehold.MaxClaimsPerSession)
	more := &core.Acquire{Namespace: ns, Resource: "one more", ID: "one more", Holder: "ann", Session: "s1"}
	d.refused(more, leasehold.Limited, "16384")
	d.must(&core.Release{Namespace: ns, ID: "hr0"})
	d.must(more)

	events, ticks := d.at(10*time.Second).apply(&core.Tick{}).Events, 1
	for d.state.Chores() > 0 {
		events = append(events, d.apply(&core.Tick{}).Events...)
		ticks++
	}
	if want := 1 + 16384 + 16383 + 1; len(events) != want {
		t.Fatalf("the end of the session had %d events, not %d: its own, one for each lease, one for each who waited, and one alarm for all", len(events), want)
	}
	if last := events[len(events)-1]; last.Kind != leasehold.Alarmed || ticks < 16 {
		t.Fatalf("the last event of %d ticks is %+v", ticks, last)
	}
	if n := d.state.View(0).Counts(); n.Sessions != 0 || n.Leases != 16384 || n.Waiters != 0 {
		t.Fatalf("after the end there are %+v", n)
	}
}

// TestQueueHasSoManyWaiters restores a full queue, since to stand in line a hundred
// thousand times takes long.
func TestQueueHasSoManyWaiters(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.state = manyWaiters(t, leasehold.MaxQueue)
	wants := &core.Acquire{Namespace: ns, Resource: "printer", ID: "one more", Holder: "bob", TTL: time.Hour, Wait: time.Hour}
	d.refused(wants, leasehold.Limited, "100000")

	last := d.must(&core.Renew{Namespace: ns, ID: fmt.Sprint("w", leasehold.MaxQueue)}).Waiter
	if last.Position != leasehold.MaxQueue {
		t.Fatalf("the last one stands at %d", last.Position)
	}
	d.must(&core.Release{Namespace: ns, ID: "holder"})
	if answer := d.must(wants); answer.Waiter.Position != leasehold.MaxQueue {
		t.Fatalf("the one more stands at %d", answer.Waiter.Position)
	}
}

func manyWaiters(t *testing.T, n int) *core.State {
	waiters := func(yield func(core.Piece, error) bool) {
		put := func(space string, value any) { yield(core.Piece{Space: space, Value: value}, nil) }
		put("", &core.Head{Now: stampOf(0), Wall: wallOf(0), Level: core.NewestLevel})
		put(ns, &core.SpaceHead{Token: 1, Arrivals: uint64(n)})
		put(ns, &core.Resource{Path: "printer", Claim: "holder", Waiting: n})
		put(ns, &core.Claim{ID: "holder", Resource: "printer", Holder: "ann", Token: 1, Since: stampOf(0)})
		for i := 1; i <= n; i++ {
			put(ns, &core.Claim{
				ID: fmt.Sprint("w", i), Resource: "printer", Holder: "bob", TTL: time.Hour, Since: stampOf(0),
				Expires: stampOf(15 * time.Second), Wait: &core.Wait{Until: stampOf(time.Hour), Order: uint64(i)},
			})
		}
	}
	state, err := core.Restore(waiters)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestThereAreSoManyNamespaces begins them all. What is there goes on; what would be
// one more is refused, and leaves nothing behind.
func TestThereAreSoManyNamespaces(t *testing.T) {
	d := newDesk(t)
	for i := range leasehold.MaxNamespaces {
		d.must(&core.OpenSession{Namespace: fmt.Sprint("n", i), ID: "s1", TTL: time.Hour})
	}
	d.refused(&core.OpenSession{Namespace: "more", ID: "s1", TTL: time.Hour}, leasehold.Limited, "4096")
	d.refused(&core.Acquire{Namespace: "more", Resource: "printer", ID: "a1", Holder: "ann"}, leasehold.Limited, "4096")
	d.must(&core.Acquire{Namespace: "n7", Resource: "printer", ID: "a1", Holder: "ann"})
	if n := d.state.View(0).Counts().Namespaces; n != leasehold.MaxNamespaces {
		t.Fatalf("there are %d namespaces", n)
	}
}

// TestTickEndsSoMany lets a hundred thousand leases end at one moment. Each tick ends
// a few of them, and between two ticks everybody is served, by the truth: what is over
// is over, collected or not.
func TestTickEndsSoMany(t *testing.T) {
	t.Parallel()
	const leases, perTick = 100000, 819
	d := newDesk(t)
	d.state = manyLeases(t, leases)
	d.at(10 * time.Second)
	left := leases
	for ticks := 1; left > 0; ticks++ {
		ended := 0
		for _, e := range d.apply(&core.Tick{}).Events {
			if e.Kind == leasehold.Ended { // others are of alarms
				ended++
			}
		}
		if ended != min(left, perTick) {
			t.Fatalf("tick %d ended %d with %d left", ticks, ended, left)
		}
		left -= ended
		if at, due := d.state.Due(); due != (left > 0) || due && at > stampOf(d.now) {
			t.Fatalf("%d are left, and due is %v", left, due)
		}
		d.must(&core.Renew{Namespace: ns, ID: "alive"})
		if left > perTick {
			d.refused(&core.Renew{Namespace: ns, ID: fmt.Sprintf("l%06d", leases-ticks)}, leasehold.Lost, "expired")
			left--
		}
	}
}

// TestTickEndsSoManyRests lets many rests end at once that somebody waits for.
func TestTickEndsSoManyRests(t *testing.T) {
	const rests, perTick = 2000, 819
	d := newDesk(t)
	for i := range rests {
		path := fmt.Sprint("r", i)
		d.apply(
			&core.Acquire{Namespace: ns, Resource: path, ID: "h" + path, Holder: "ann", Grace: 10 * time.Second},
			&core.Acquire{Namespace: ns, Resource: path, ID: "w" + path, Holder: "bob", Wait: time.Hour},
			&core.Break{Namespace: ns, ID: "h" + path})
	}
	d.at(10 * time.Second)
	for _, want := range []int{perTick, perTick, rests - 2*perTick, 0} {
		if events := d.apply(&core.Tick{}).Events; len(events) != want {
			t.Fatalf("a tick let %d have what had rested, and not %d", len(events), want)
		}
	}
}

func manyLeases(t *testing.T, n int) *core.State {
	leases := func(yield func(core.Piece, error) bool) {
		put := func(space string, value any) { yield(core.Piece{Space: space, Value: value}, nil) }
		put("", &core.Head{Now: stampOf(0), Wall: wallOf(0), Level: core.NewestLevel})
		put(ns, &core.SpaceHead{Token: leasehold.Token(n + 1)})
		put(ns, &core.Resource{Path: "alive", Claim: "alive"})
		put(ns, &core.Claim{ID: "alive", Resource: "alive", Holder: "ann", Token: leasehold.Token(n + 1), Since: stampOf(0)})
		for i := range n {
			id := fmt.Sprintf("l%06d", i)
			put(ns, &core.Resource{Path: id, Claim: id})
			put(ns, &core.Claim{
				ID: id, Resource: id, Holder: "ann", Token: leasehold.Token(i + 1), TTL: 10 * time.Second,
				Since: stampOf(0), Expires: stampOf(10 * time.Second),
			})
		}
	}
	state, err := core.Restore(leases)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestHistoryIsBounded makes enough events for the oldest to be dropped, and a watcher that wants
// them is told so. The namespace with the most events loses its oldest.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.must(&core.OpenSession{Namespace: "green", ID: "s1", TTL: 30 * 24 * time.Hour})
	long := strings.Repeat("n", 1000)
	for i := range 10000 {
		id := fmt.Sprint(long, i)
		d.apply(
			&core.Acquire{Namespace: ns, Resource: id, ID: id, Holder: long, Reason: long},
			&core.Release{Namespace: ns, ID: id})
	}
	history := d.state.View(0).History(ns)
	if _, known := history.After(0, 0); known {
		t.Fatal("all is said to be known, although some must be gone")
	}
	if bytes := 3300 * len(history.All()); bytes > 64<<20 || bytes < 50<<20 {
		t.Fatalf("%d events are kept, about %d MiB", len(history.All()), bytes>>20)
	}
	revision, n := history.Oldest()
	events, known := history.After(revision, n)
	if !known || len(events) != len(history.All()) || events[0].Revision != revision+1 {
		t.Fatalf("resuming after the newest that is gone gives %d of %d events, %v", len(events), len(history.All()), known)
	}
	if _, known := history.After(revision-1, core.AllOf); known {
		t.Fatal("one that is gone is said to be known")
	}
	if _, known := d.state.View(0).History("green").After(0, 0); !known {
		t.Fatal("the oldest event, which is the only one of its namespace, is not known")
	}
	again := reloaded(t, d.state).View(0).History(ns)
	if r, m := again.Oldest(); r != revision || m != n || len(again.All()) != len(history.All()) {
		t.Fatal("history is not the same after a restore")
	}
}

// TestHistoryEndsWithinARevision drops some events of a command and keeps the others. A
// watcher that has seen what is gone can go on; one that has not cannot.
func TestHistoryEndsWithinARevision(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	long := strings.Repeat("n", 1000)
	for i := range 20000 {
		session := fmt.Sprint(long, i)
		batch := []core.Command{&core.OpenSession{Namespace: ns, ID: session, TTL: time.Hour}}
		for _, path := range []string{"printer", "scanner", "plotter"} {
			id := fmt.Sprint(long, path, i)
			batch = append(batch, &core.Acquire{Namespace: ns, Resource: path, ID: id, Holder: long, Session: session})
		}
		d.apply(append(batch, &core.CloseSession{Namespace: ns, ID: session})...)
		history := d.state.View(0).History(ns)
		revision, n := history.Oldest()
		if n == 0 || history.All()[0].Revision != revision {
			continue
		}
		if _, known := history.After(revision, n-1); known {
			t.Fatalf("%d.%d is gone, and said to be known", revision, n)
		}
		if events, known := history.After(revision, n); !known || events[0].N != n+1 {
			t.Fatalf("%d.%d is there, and not said to be", revision, n+1)
		}
		return
	}
	t.Fatal("history never ended within a revision")
}

// TestHistoryResumes holds where a watcher goes on, within a revision and after it.
func TestHistoryResumes(t *testing.T) {
	d := newDesk(t)
	fillSession(d, 3)
	d.must(&core.CloseSession{Namespace: ns, ID: "s1"})
	history := d.state.View(0).History(ns)
	newest := history.Revision
	for n, want := range map[uint32]int{0: 6, 1: 5, 6: 0, core.AllOf: 0} {
		if events, known := history.After(newest, n); !known || len(events) != want {
			t.Errorf("after %d.%d there are %d events, not %d (%v)", newest, n, len(events), want, known)
		}
	}
	if events, _ := history.After(newest-1, core.AllOf); len(events) != 7 {
		t.Errorf("after all of %d there are %d events, not 7", newest-1, len(events))
	}

	// What somebody has read from stays as it is.
	before := len(history.All())
	d.must(&core.Release{Namespace: ns, ID: "wr0"})
	if len(history.All()) != before || len(d.state.View(0).History(ns).All()) != before+1 {
		t.Error("history changed under a reader")
	}
}
