package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A script is what happens to a state, second by second.
type script []struct {
	at       time.Duration
	commands []core.Command
}

func (s script) run(t testing.TB) *core.State {
	t.Helper()
	state := core.New()
	for _, step := range s {
		stamp := core.Time(time.Hour + step.at)
		if _, err := state.Apply(stamp, goldenWall+int64(step.at), step.commands); err != nil {
			t.Fatal(err)
		}
	}
	if err := state.Check(); err != nil {
		t.Fatal(err)
	}
	return state
}

func do(commands ...core.Command) []core.Command { return commands }

func key(k string) core.Request { return core.Request{Key: k} }

func nth(session string, n uint64) core.Request {
	return core.Request{Session: session, Sequence: n}
}

type option func(*core.Acquire)

func acquire(resource, id, holder string, options ...option) *core.Acquire {
	a := &core.Acquire{Namespace: "default", Resource: resource, ID: id, Holder: holder}
	for _, o := range options {
		o(a)
	}
	return a
}

func in(namespace string) option   { return func(a *core.Acquire) { a.Namespace = namespace } }
func ttl(d time.Duration) option   { return func(a *core.Acquire) { a.TTL = d } }
func wait(d time.Duration) option  { return func(a *core.Acquire) { a.Wait = d } }
func grace(d time.Duration) option { return func(a *core.Acquire) { a.Grace = d } }
func limit(d time.Duration) option { return func(a *core.Acquire) { a.HoldLimit = d } }
func session(id string) option     { return func(a *core.Acquire) { a.Session = id } }
func of(party string) option       { return func(a *core.Acquire) { a.Party = party } }
func slots(n, of int) option       { return func(a *core.Acquire) { a.Slots, a.Capacity = n, of } }
func also(resource, id string) option {
	return func(a *core.Acquire) { a.Also = append(a.Also, core.Item{Resource: resource, ID: id}) }
}
func once(r core.Request) option { return func(a *core.Acquire) { a.Request = r } }
func described(reason string) option {
	return func(a *core.Acquire) { a.Reason, a.Labels = reason, goldenLabels }
}

// everything returns a state that has each kind of record, each way to end, each kind
// of event and of answer, and all of the terms that a claim can have.
func everything(t testing.TB) *core.State {
	t.Helper()
	const s, m = time.Second, time.Minute
	state := script{
		{0, do(
			&core.Lead{Node: 3, Boot: "boot-1", Offset: -5 * s},
			&core.OpenSession{Namespace: "default", ID: "s1", TTL: 10 * m, Labels: goldenLabels, Request: key("open")},
			&core.OpenSession{Namespace: "default", ID: "s2", TTL: 5 * s},
			&core.OpenSession{Namespace: "default", ID: "s3", TTL: 10 * m},
		)},
		{1 * s, do(
			acquire("by/ttl", "t1", "ann", ttl(2*s), once(key("lease")), described("nightly run")),
			acquire("by/limit", "l1", "ann", ttl(10*m), limit(2*s)),
			acquire("by/session", "e1", "ann", session("s2")),
			acquire("by/close", "c1", "ann", session("s3")),
			acquire("by/break", "b1", "ann", ttl(10*m), grace(10*m)),
			acquire("by/release", "r1", "ann"),
			acquire("by/change", "i1", "ann", ttl(10*m)),
			acquire("held", "h1", "ann", session("s1"), once(nth("s1", 1)), grace(m), limit(10*m)),
			acquire("held", "h2", "bob", wait(5*m), once(key("waiter")), described("next"), grace(s)),
			acquire("held", "h3", "cat", wait(5*m), session("s1"), once(nth("s1", 2))),
			acquire("held", "h4", "dan", once(key("held"))),
			acquire("held", "h5", "eve", wait(2*s)),
			acquire("held", "h6", "fay", wait(5*m)),
			acquire("other", "o1", "ann", in("elsewhere"), ttl(10*m)),
			acquire("other", "o2", "bob", in("elsewhere"), once(key("held"))),
		)},
		{2 * s, do(
			&core.Release{Namespace: "default", ID: "r1", Request: key("release")},
			&core.Release{Namespace: "default", ID: "h6"},
			&core.Release{Namespace: "default", ID: "never", Request: key("not found")},
			&core.Change{Namespace: "default", ID: "i1", NewID: "i2", Request: key("change")},
			&core.Change{Namespace: "default", ID: "i2", Holder: "bob"},
			&core.Change{Namespace: "default", ID: "h2", Holder: "bob", Request: key("refused")},
			&core.CloseSession{Namespace: "default", ID: "s3", Request: key("close")},
			&core.Break{Namespace: "default", ID: "b1", By: "ops", Reason: "stuck", Request: key("break")},
			&core.Break{Namespace: "default", ID: "h1", Period: 5 * m, By: "ops", Reason: "upgrade", Request: key("breaking")},
			acquire("by/break", "b2", "bob", wait(5*m)),
			&core.Ask{Namespace: "default", Resource: "held", By: "bob", Message: "please release"},
			&core.Move{Namespace: "default", ID: "h3", Priority: 2, By: "ops", Reason: "late"},
			&core.Renew{Namespace: "default", ID: "h2"},
			&core.RenewSession{Namespace: "default", ID: "s1"},
		)},
		{3 * s, do(
			&core.PutRecord{Namespace: "default", Path: "config/a", Value: "one", Request: key("put")},
			&core.PutRecord{Namespace: "default", Path: "config/a", Value: "\x00\xff", Fence: core.Fence{Lease: "h1"}},
			&core.PutRecord{Namespace: "default", Path: "alive/1", Session: "s1", Request: nth("s1", 3)},
			&core.PutRecord{Namespace: "default", Path: "alive/2", Session: "s2"},
			&core.PutRecord{Namespace: "default", Path: "config/a", Value: "two", IfAbsent: true, Request: key("there")},
			&core.Txn{
				Namespace: "default", If: []core.Compare{{What: core.RecordVersion, Is: core.Equal, Path: "config/a", Number: 2}},
				Then:    []core.Op{{Do: core.Put, Path: "config/b", Value: "three"}, {Do: core.Put, Path: "config/c"}, {Do: core.Delete, Path: "config/d"}},
				Request: key("txn"),
			},
			&core.DeleteRecord{Namespace: "default", Path: "config/c", Request: key("delete")},
			&core.PutRecord{Namespace: "elsewhere", Path: "config/a", Value: "one"},
		)},
		{3 * s, do(
			&core.Define{Namespace: "default", Definition: leasehold.Definition{Path: "gpu/", Units: []string{"gpu0", "gpu1", "gpu2"}, Unclean: leasehold.WarnNext}, Request: key("define")},
			&core.Define{Namespace: "default", Definition: leasehold.Definition{Path: "ack", Unclean: leasehold.AwaitAcknowledgement}},
			acquire("gpu/a", "g1", "ann", slots(1, 0), ttl(10*m), of("p1"), also("gpu/b", "g2"), once(key("several"))),
			&core.Break{Namespace: "default", ID: "g1", By: "ops"},
			acquire("gpu/a", "g3", "bob", slots(2, 0), ttl(10*m), of("p2")),
			acquire("room", "m1", "ann", slots(1, 8), ttl(10*m), of("p1")),
			acquire("gpu/b", "g4", "bob", ttl(10*m), of("p2"), wait(5*m), also("held", "g5")),
			acquire("gpu/a", "g6", "ann", ttl(10*m), of("p1"), wait(5*m), once(key("cycle"))),
			&core.Define{Namespace: "default", Definition: leasehold.Definition{Path: "long", Expected: s}},
			acquire("long", "w1", "ann", ttl(10*m)),
			acquire("ack", "k1", "ann", ttl(10*m)),
			&core.Break{Namespace: "default", ID: "k1", By: "ops"},
			&core.Acknowledge{Namespace: "default", Resource: "ack", Token: 1000, By: "ops"},
			&core.Undefine{Namespace: "default", Path: "ack", By: "ops"},
		)},
		{4 * s, do(&core.Tick{}, &core.Renew{Namespace: "default", ID: "w1"}, &core.Release{Namespace: "default", ID: "t1", Request: key("lost")})},
		{6 * s, do(&core.Tick{}, &core.Acknowledge{Namespace: "default", Resource: "by/limit", Token: 1000, By: "ops"})},
	}.run(t)
	covers(t, state)
	return state
}

// covers fails if a script leaves something out that a snapshot can hold.
func covers(t testing.TB, state *core.State) {
	t.Helper()
	seen := map[any]bool{}
	for r := range state.Pieces() {
		seen[pieceKinds[kindOf(r.Value)].name] = true
		switch v := r.Value.(type) {
		case *leasehold.Event:
			seen[v.Kind], seen[v.How] = true, true
		case *core.Claim:
			if v.Terms != nil {
				seen["grace"] = seen["grace"] || v.Terms.Grace != 0
				seen["hold limit"] = seen["hold limit"] || v.Terms.HoldLimit != 0
				seen["break"] = seen["break"] || v.Terms.BreakAt != 0 && v.Terms.BreakBy != "" && v.Terms.BreakReason != ""
			}
			seen["labels"] = seen["labels"] || v.Terms != nil && v.Terms.Labels != nil
			seen["party"] = seen["party"] || v.Terms != nil && v.Terms.Party != ""
			seen["units"] = seen["units"] || v.Terms != nil && v.Terms.Units != nil
			seen["after"] = seen["after"] || v.Terms != nil && v.Terms.After != nil
			seen["slots"] = seen["slots"] || v.Slots != 0
			seen["expected"] = seen["expected"] || v.Terms != nil && v.Terms.Expected != 0
			seen["overdue"] = seen["overdue"] || v.Overdue
			seen["gap"] = seen["gap"] || v.Gap != 0
			seen["wait until"] = seen["wait until"] || v.Wait != nil && v.Wait.Until != 0
			seen["with"] = seen["with"] || v.Wait != nil && v.Wait.With != nil
		case *core.Resource:
			seen["rests"] = seen["rests"] || v.More != nil && len(v.More.Rests) > 0 && v.Waiting > 0
			seen["shares"] = seen["shares"] || v.More != nil && v.More.Shares != nil
			seen["idle"] = seen["idle"] || v.Idle != 0
			seen["usual"] = seen["usual"] || v.More != nil && v.More.Usual != nil
		case *core.Outcome:
			seen["outcome "+v.Key[:1]] = true
			seen["answer lease"] = seen["answer lease"] || v.Answer.Lease != nil
			seen["answer session"] = seen["answer session"] || v.Answer.Session != nil
			seen["answer waiter"] = seen["answer waiter"] || v.Answer.Waiter != nil
			seen["answer held"] = seen["answer held"] || v.Answer.Err != nil && v.Answer.Err.Lease != nil
			seen["answer record"] = seen["answer record"] || v.Answer.Record != nil
			seen["answer txn"] = seen["answer txn"] || v.Answer.Txn != nil && len(v.Answer.Txn.Results) > 1
			seen["answer nothing"] = seen["answer nothing"] || reflect.DeepEqual(v.Answer, core.Answer{})
			seen["answer several"] = seen["answer several"] || v.Answer.Also != nil
			seen["answer definition"] = seen["answer definition"] || v.Answer.Definition != nil
			seen["answer cycle"] = seen["answer cycle"] || v.Answer.Err != nil && v.Answer.Err.Cycle != nil
		}
	}
	want := []any{"grace", "hold limit", "wait until", "break", "labels", "rests", "idle", "outcome k", "outcome s",
		"answer lease", "answer session", "answer waiter", "answer held", "answer nothing", "answer record", "answer txn",
		"answer several", "answer definition", "answer cycle", "party", "units", "after", "slots", "with", "shares",
		"expected", "overdue", "gap", "usual"}
	for _, kind := range []int{kindHead, kindTotals, kindSpace, kindSession, kindResource, kindClaim, kindEndedClaim,
		kindEndedSession, kindOutcome, kindEvent, kindRecord, kindDefinition, kindAlarm} {
		want = append(want, pieceKinds[kind].name) // others have golden files of their own
	}
	for k := leasehold.Kind(kinds.First); k <= leasehold.AlarmCleared; k++ { // others have golden files of their own
		want = append(want, k)
	}
	for h := leasehold.How(hows.First); h <= leasehold.How(hows.Last); h++ {
		// Some are no events of their own, or need more than is in the script.
		if h != leasehold.IDChanged && h != leasehold.NoSlots && h != leasehold.Abandoned {
			want = append(want, h)
		}
	}
	for _, what := range want {
		if !seen[what] {
			t.Errorf("the script leaves out %T %v", what, what)
		}
	}
}

// versions returns a state that names large values and keeps former versions.
func versions(t testing.TB) *core.State {
	t.Helper()
	const s = time.Second
	put := func(path string, change func(*core.PutRecord)) *core.PutRecord {
		c := &core.PutRecord{Namespace: "default", Path: path}
		change(c)
		return c
	}
	return script{
		{0, do(
			acquire("state", "l1", "ann", ttl(time.Hour)),
			put("state/a", func(c *core.PutRecord) { c.Large, c.Keep, c.Fence.Lease = goldenLarge, 20, "l1" }),
			put("state/b", func(c *core.PutRecord) { c.Value = "one" }),
		)},
		{1 * s, do(
			put("state/a", func(c *core.PutRecord) { c.Value, c.Request = "small", key("put") }),
			put("state/b", func(c *core.PutRecord) { c.Large, c.Keep, c.Request = &leasehold.Large{Size: 1 << 20}, 3, key("large") }),
			put("state/c", func(c *core.PutRecord) { c.Large = goldenLarge }),
			&core.Txn{Namespace: "default", Then: []core.Op{{Do: core.Put, Path: "state/a", From: 2}, {Do: core.Put, Path: "state/d", Value: "d", Keep: 1}}},
		)},
		{2 * s, do(&core.DeleteRecord{Namespace: "default", Path: "state/b"})},
	}.run(t)
}

// little returns a state with each kind of record and few bytes.
func little(t testing.TB) *core.State {
	t.Helper()
	return script{
		{0, do(
			&core.OpenSession{Namespace: "a", ID: "s", TTL: time.Minute},
			&core.OpenSession{Namespace: "a", ID: "u", TTL: time.Minute},
			acquire("r", "i", "h", in("a"), ttl(time.Minute), once(key("x"))),
			acquire("r", "j", "h", in("a"), wait(time.Minute)),
			&core.CloseSession{Namespace: "a", ID: "s"},
			&core.PutRecord{Namespace: "a", Path: "p", Value: "v", Session: "u", Request: key("y")},
		)},
		{time.Second, do(
			&core.Release{Namespace: "a", ID: "i"},
			&core.Define{Namespace: "a", Definition: leasehold.Definition{Path: "q", Units: []string{"w"}}},
			acquire("q", "k", "h", in("a"), slots(1, 0)),
		)},
	}.run(t)
}

// linked returns a state with records that stand for leases and waiters, below a mirror prefix and not.
func linked(t testing.TB) *core.State {
	t.Helper()
	put := func(path, session string, l core.Link) *core.PutRecord {
		return &core.PutRecord{Namespace: "a", Path: path, Value: "v", Session: session, Link: &l, Request: key(path)}
	}
	s := core.New()
	_, err := s.Apply(core.Time(time.Hour), goldenWall, do(
		&core.OpenSession{Namespace: "a", ID: "s", TTL: time.Minute},
		acquire("q", "h", "h", in("a"), ttl(time.Minute)),
		put("q/1", "s", core.Link{Resource: "q", ID: "1", Holder: "b", Wait: true, Mirror: "q/"}),
		put("k", "s", core.Link{Resource: "k", ID: "k", Holder: "b", Stay: true, Grace: time.Second}),
		put("t", "", core.Link{Resource: "t", ID: "t", Holder: "b", TTL: time.Second}),
		&core.Txn{Namespace: "a", Then: []core.Op{{Do: core.Nested, Txn: &core.Txn{Then: []core.Op{{Do: core.Delete, Path: "t"}}}}}, Request: key("txn")},
	))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A snapshot of linked records is read back, and one in which a lease shows as a record that is not there is refused.
func TestLinkedSnapshot(t *testing.T) {
	state := linked(t)
	b := write(t, state)
	again := read(t, b)
	if err := again.Check(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(write(t, again), b) || !reflect.DeepEqual(records(state), records(again)) {
		t.Error("it is not written again as it was read")
	}
	_, err := core.Restore(func(yield func(core.Piece, error) bool) {
		for r := range state.Pieces() {
			if _, isRecord := r.Value.(*leasehold.Record); !isRecord && !yield(r, nil) {
				return
			}
		}
	})
	if err == nil {
		t.Error("a snapshot without the records of its leases was read")
	}
}

// governed returns a state with a policy, of which a part was just taken away: what ends by that has not ended yet.
func governed(t testing.TB) *core.State {
	t.Helper()
	ann, root := &access.Asker{Principal: "ann", Groups: []string{"team"}, Token: "t1"}, &access.Asker{Principal: "root", Token: "t0"}
	begin := &core.ChangeAccess{Put: access.Items{
		Tokens: []*access.Token{{ID: "t0", Hash: strings.Repeat("0", 32), Principal: "root"},
			{ID: "t1", Hash: strings.Repeat("1", 32), Principal: "ann", Groups: []string{"team", "rest"}}},
		Roles: []*access.Role{{Name: "crew", Any: access.Of(access.Read, access.Acquire, access.RecordWrite), Own: access.Of(access.Renew), EndOnRevoke: true}},
		Bindings: []*access.Binding{{Name: "root", Role: "admin", Principal: "root", Namespace: access.AllNamespaces},
			{Name: "team", Role: "crew", Group: "team", Namespace: "a"}, {Name: "ann", Role: "crew", Principal: "ann", Namespace: "a", Prefix: "p"}},
		Quotas:       []*access.Quota{{Principal: "ann", Leases: 9}},
		Issuers:      []*access.Issuer{{Name: "ci", URL: "https://ci.example", Audiences: []string{"a"}, Groups: []access.ClaimRule{{Claim: "sub", Value: "*", Group: "team"}}}},
		Certificates: []*access.Certificate{{Name: "c", SAN: "dns:*.example", Groups: []string{"team"}}},
	}}
	state := core.NewAt(core.NewestLevel)
	apply := func(asker *access.Asker, commands ...core.Command) {
		t.Helper()
		for _, c := range commands {
			result, err := state.Apply(1, 1, []core.Command{c}, core.From{Askers: []*access.Asker{asker}})
			if err != nil || result.Answers[0].Err != nil {
				t.Fatalf("%T: %v, %v", c, err, result.Answers)
			}
		}
	}
	apply(nil, begin)
	apply(ann, &core.OpenSession{Namespace: "a", ID: "s", TTL: time.Minute}, acquire("r", "i", "h", in("a"), ttl(time.Minute)),
		&core.PutRecord{Namespace: "a", Path: "p", Value: "v"})
	apply(root, acquire("q", "k", "root", in("a"), ttl(time.Minute)))
	apply(ann, acquire("q", "j", "h", in("a"), ttl(time.Minute), wait(time.Minute)))
	apply(root, &core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{{ID: "t1", Hash: strings.Repeat("1", 32), Principal: "ann", Groups: []string{"rest"}}}}})
	if !state.DueBy(state.Now()) {
		t.Fatal("nothing is left to end")
	}
	return state
}
