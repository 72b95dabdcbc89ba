package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// tell writes lines as people read them.
func tell(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		if l.Kind == Hold {
			fmt.Fprintf(&b, "%d.%d hold %s by %s, token %d, %v to %v, waited %v: %v", l.Index, l.N, l.Resource, l.Holder, l.Token,
				l.Since.Sub(time.Unix(0, wall)), l.Until.Sub(time.Unix(0, wall)), l.Waited, l.How)
		} else {
			fmt.Fprintf(&b, "%d.%d %s %s%s: %s; %s", l.Index, l.N, l.Verb, l.Resource, l.Session, l.Outcome, l.Actor)
			if l.Door != "" {
				fmt.Fprintf(&b, " from %s by %s", l.Address, l.Door)
			}
			if l.Token != 0 {
				fmt.Fprintf(&b, "; token %d", l.Token)
			}
			if l.Holder != "" {
				fmt.Fprintf(&b, " of %s", l.Holder)
			}
			if l.How != 0 {
				fmt.Fprintf(&b, "; %v", l.How)
			}
		}
		if l.By != "" {
			fmt.Fprintf(&b, "; named by %s", l.By)
		}
		if l.Reason != "" {
			fmt.Fprintf(&b, " (%s)", l.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Each thing that can happen, who is named for it, and what is left out.
func TestOperationsAndHolds(t *testing.T) {
	w := newWorld(t)
	const s = time.Second
	at := func(at time.Duration, o leasehold.Origin, commands ...core.Command) {
		w.at = at
		w.entry(o, commands...)
	}
	acquire := func(resource, holder string, more ...func(*core.Acquire)) *core.Acquire {
		a := &core.Acquire{Namespace: space, Resource: resource, ID: holder + "@" + resource, Holder: holder, TTL: 10 * s}
		for _, m := range more {
			m(a)
		}
		return a
	}
	waits := func(a *core.Acquire) { a.Wait = time.Minute }
	in := func(session string) func(*core.Acquire) {
		return func(a *core.Acquire) { a.TTL, a.Session = 0, session }
	}
	ann := leasehold.Origin{Address: "10.0.0.1:1", Door: "native"}
	bob := leasehold.Origin{Address: "10.0.0.2:2", Door: "native"}
	ops := leasehold.Origin{Actor: "ops@example.com", Address: "10.0.0.3:3", Door: "native"}

	at(0, ann, &core.Lead{Node: 1}, acquire("r", "ann"), &core.Renew{Namespace: space, ID: "ann@r"})
	at(1*s, bob, acquire("r", "bob"), acquire("r", "bob"), acquire("r", "cyd", waits)) // refused twice
	at(2*s, ann, &core.Release{Namespace: space, ID: "ann@r"}, &core.Release{Namespace: space, ID: "ann@r"})
	at(3*s, ops, &core.Break{Namespace: space, ID: "cyd@r", Period: 2 * s, By: "me", Reason: "stuck"})
	at(4*s, bob, acquire("r", "bob"), &core.Renew{Namespace: space, ID: "gone"}) // another lease is in the way by now
	at(5*s, leasehold.Origin{}, &core.Tick{})
	at(6*s, bob, acquire("r", "bob"))
	at(20*s, ann, acquire("r", "ann", func(a *core.Acquire) { a.ID = "second" })) // meets what is over
	at(21*s, ops, &core.Change{Namespace: space, ID: "second", Holder: "dan"}, &core.Break{Namespace: space, Resource: "r", Token: 99, By: "me"})
	at(22*s, ops, &core.Break{Namespace: space, ID: "second", By: "me", Reason: "now"})
	at(30*s, ann, &core.OpenSession{Namespace: space, ID: "s1", TTL: 10 * s}, &core.OpenSession{Namespace: space, ID: "s2", TTL: 10 * s},
		acquire("a", "ann", in("s1")), acquire("b", "ann", in("s2")), &core.PutRecord{Namespace: space, Path: "p", Value: "v", Session: "s1"})
	at(31*s, ann, &core.CloseSession{Namespace: space, ID: "s2"})
	at(32*s, bob, acquire("a", "bob", waits), &core.Ask{Namespace: space, Resource: "a", By: "bob", Message: "please"})
	at(33*s, ops, &core.Move{Namespace: space, ID: "bob@a", Priority: 1, By: "me"})
	at(40*s, leasehold.Origin{}, &core.Tick{})
	at(41*s, ann, &core.Txn{Namespace: space, Then: []core.Op{{Do: core.Put, Path: "q", Value: "v"}, {Do: core.Put, Path: "p", Value: "v"}}})
	at(42*s, ann, &core.DeleteRecord{Namespace: space, Path: "p", Range: true}, &core.DeleteRecord{Namespace: space, Path: "none"},
		&core.PutRecord{Namespace: space, Path: "p", Value: "v", IfRevision: 1})
	at(43*s, bob, &core.Acquire{Namespace: space, Resource: "c", ID: "x", Holder: "bob", Session: "none"})

	const want = `
1.0 acquire r: ok; ann from 10.0.0.1:1 by native; token 1 of ann
2.0 acquire r: held; bob from 10.0.0.2:2 by native of bob (r is held by ann; ends in 9s unless renewed)
2.2 acquire r: queued; cyd from 10.0.0.2:2 by native of cyd
3.0 release r: ok;  from 10.0.0.1:1 by native; token 1 of ann; released
3.1 hold r by ann, token 1, 0s to 2s, waited 0s: released
3.2 grant r: ok;  from 10.0.0.1:1 by native; token 2 of cyd
4.0 break r: ok; ops@example.com from 10.0.0.3:3 by native; token 2 of cyd; named by me (stuck)
5.0 acquire r: held; bob from 10.0.0.2:2 by native of bob (r is held by cyd; ends in 1s at the latest)
6.0 break r: ok; time; token 2 of cyd; broken; named by me (stuck)
6.1 hold r by cyd, token 2, 2s to 5s, waited 1s: broken; named by me (stuck)
7.0 acquire r: ok; bob from 10.0.0.2:2 by native; token 3 of bob
8.0 expire r: ok; time; token 3 of bob; expired
8.1 hold r by bob, token 3, 6s to 16s, waited 0s: expired
8.2 acquire r: ok; ann from 10.0.0.1:1 by native; token 4 of ann
9.0 change r: ok; ops@example.com from 10.0.0.3:3 by native; token 5 of dan
9.1 hold r by ann, token 4, 20s to 21s, waited 0s: changed
9.2 break r: lost; ops@example.com from 10.0.0.3:3 by native; token 99; named by me (r is not held with token 99 any more: dan holds it with token 5; look again before you break that)
10.0 break r: ok; ops@example.com from 10.0.0.3:3 by native; token 5 of dan; broken; named by me (now)
10.1 hold r by dan, token 5, 21s to 22s, waited 0s: broken; named by me (now)
11.0 open-session s1: ok;  from 10.0.0.1:1 by native
11.1 open-session s2: ok;  from 10.0.0.1:1 by native
11.2 acquire as1: ok; ann from 10.0.0.1:1 by native; token 6 of ann
11.3 acquire bs2: ok; ann from 10.0.0.1:1 by native; token 7 of ann
11.4 put-record ps1: ok;  from 10.0.0.1:1 by native
12.0 close-session s2: ok;  from 10.0.0.1:1 by native; session closed
12.1 release bs2: ok;  from 10.0.0.1:1 by native; token 7 of ann; session closed
12.2 hold b by ann, token 7, 30s to 31s, waited 0s: session closed
13.0 acquire a: queued; bob from 10.0.0.2:2 by native of bob
13.1 ask as1: ok; bob from 10.0.0.2:2 by native; token 6 of ann; named by bob (please)
14.0 move a: ok; ops@example.com from 10.0.0.3:3 by native of bob; named by me
15.0 expire s1: ok; time; session expired
15.1 expire as1: ok; time; token 6 of ann; session expired
15.2 hold a by ann, token 6, 30s to 40s, waited 0s: session expired
15.3 grant a: ok; time; token 8 of bob
15.4 expire ps1: ok; time; session expired
16.0 put-record q: ok;  from 10.0.0.1:1 by native
16.1 put-record p: ok;  from 10.0.0.1:1 by native
17.0 delete-record p: ok;  from 10.0.0.1:1 by native
17.1 delete-record q: ok;  from 10.0.0.1:1 by native
17.2 put-record p: refused;  from 10.0.0.1:1 by native (p is not there, and was expected at revision 1: read it again)
18.0 acquire cnone: not-found; bob from 10.0.0.2:2 by native of bob (session "none" is unknown: open it first)
`
	if got := "\n" + tell(projected(w.log)); got != want {
		t.Errorf("got%s", got)
	}
}

// Several at once, leases in transactions, definitions, and what is acknowledged.
func TestOperationsOnSlots(t *testing.T) {
	w := newWorld(t)
	ann := leasehold.Origin{Address: "10.0.0.1:1", Door: "native"}
	const s = time.Second
	at := func(at time.Duration, commands ...core.Command) {
		w.at = at
		w.entry(ann, commands...)
	}
	both := func(holder string, wait time.Duration) *core.Acquire {
		return &core.Acquire{
			Namespace: space, Resource: "a", ID: holder + "@a", Also: []core.Item{{Resource: "b", ID: holder + "@b"}}, Holder: holder, TTL: 10 * s, Wait: wait,
		}
	}
	at(0, both("ann", 0), both("bob", time.Hour), both("cyd", time.Hour))
	at(1*s, &core.Release{Namespace: space, ID: "bob@b"}) // takes both out of the queues
	at(2*s, &core.Release{Namespace: space, ID: "ann@a"}, &core.Release{Namespace: space, ID: "ann@b"})
	at(3*s, &core.Define{Namespace: space, Definition: leasehold.Definition{Path: "c", Unclean: leasehold.AwaitAcknowledgement}, By: "ops"},
		&core.Txn{Namespace: space, Then: []core.Op{{Do: core.AcquireLease, Acquire: &core.Acquire{Namespace: space, Resource: "c", ID: "x", Holder: "dan", TTL: 2 * s}}, {Do: core.ReleaseLease, ID: "cyd@a"}}})
	at(6*s, &core.Acquire{Namespace: space, Resource: "c", ID: "y", Holder: "eve", TTL: 10 * s, Wait: time.Hour})
	at(7*s, &core.Acknowledge{Namespace: space, Resource: "c", Token: 5, By: "ops", Reason: "looked"}, &core.Undefine{Namespace: space, Path: "none", By: "ops"})
	const want = `
1.0 acquire a: ok; ann from 10.0.0.1:1 by native; token 1 of ann
1.1 acquire b: ok; ann from 10.0.0.1:1 by native; token 2 of ann
1.2 acquire a: queued; bob from 10.0.0.1:1 by native of bob
1.3 acquire b: queued; bob from 10.0.0.1:1 by native of bob
1.4 acquire a: queued; cyd from 10.0.0.1:1 by native of cyd
1.5 acquire b: queued; cyd from 10.0.0.1:1 by native of cyd
2.0 release a: ok;  from 10.0.0.1:1 by native of bob; withdrawn
2.1 release b: ok;  from 10.0.0.1:1 by native of bob; withdrawn
3.0 release a: ok;  from 10.0.0.1:1 by native; token 1 of ann; released
3.1 hold a by ann, token 1, 0s to 2s, waited 0s: released
3.2 release b: ok;  from 10.0.0.1:1 by native; token 2 of ann; released
3.3 hold b by ann, token 2, 0s to 2s, waited 0s: released
3.4 grant a: ok;  from 10.0.0.1:1 by native; token 3 of cyd
3.5 grant b: ok;  from 10.0.0.1:1 by native; token 4 of cyd
4.0 define c: ok; ops from 10.0.0.1:1 by native; named by ops
4.1 acquire c: ok; dan from 10.0.0.1:1 by native; token 5 of dan
4.2 release a: ok;  from 10.0.0.1:1 by native; token 3 of cyd; released
4.3 hold a by cyd, token 3, 2s to 3s, waited 2s: released
5.0 expire c: ok; time; token 5 of dan; expired
5.1 hold c by dan, token 5, 3s to 5s, waited 0s: expired
5.2 acquire c: queued; eve from 10.0.0.1:1 by native of eve
6.0 acknowledge c: ok; ops from 10.0.0.1:1 by native; token 5 of dan; named by ops (looked)
6.1 grant c: ok; ops from 10.0.0.1:1 by native; token 6 of eve
6.2 undefine none: not-found; ops from 10.0.0.1:1 by native; named by ops (none has no definition of its own)
`
	if got := "\n" + tell(projected(w.log)); got != want {
		t.Errorf("got%s", got)
	}
}

// Records that stand for leases: who ended what, through which of the two.
func TestOperationsOnLinkedRecords(t *testing.T) {
	w := newWorld(t)
	ann, bob := leasehold.Origin{Address: "10.0.0.1:1", Door: "etcd"}, leasehold.Origin{Address: "10.0.0.2:2", Door: "native"}
	const s = time.Second
	at := func(at time.Duration, o leasehold.Origin, commands ...core.Command) {
		w.at = at
		w.entry(o, commands...)
	}
	put := func(path string, l core.Link) *core.PutRecord {
		return &core.PutRecord{Namespace: space, Path: path, Link: &l}
	}
	at(0, bob, &core.Acquire{Namespace: space, Resource: "q", ID: "b1", Holder: "bob", TTL: 100 * s})
	at(1*s, ann, put("q/a1", core.Link{Resource: "q", ID: "a1", Holder: "ann", TTL: 100 * s, Wait: true, Mirror: "q/"}))
	at(2*s, ann, &core.DeleteRecord{Namespace: space, Path: "q/b1"}) // breaks the lease of bob
	at(3*s, bob, &core.Break{Namespace: space, ID: "a1", By: "bob", Reason: "mine"})
	at(4*s, ann, put("k", core.Link{Resource: "k", ID: "k1", Holder: "ann", TTL: 10 * s, Stay: true}),
		put("k", core.Link{Resource: "k", ID: "k1", Holder: "ann", TTL: 10 * s, Stay: true})) // a sign of life
	at(5*s, ann, put("k", core.Link{Resource: "k", ID: "k2", Holder: "eve", TTL: 10 * s, Stay: true}),
		put("k", core.Link{Resource: "k", ID: "k2", Holder: "eve", TTL: 10 * s, Stay: true}))
	at(6*s, ann, put("k", core.Link{Resource: "k", ID: "k2", Holder: "eve", TTL: 10 * s, Stay: true, Take: true}))
	at(20*s, leasehold.Origin{}, &core.Tick{})
	at(21*s, ann, put("k", core.Link{Resource: "k", ID: "k3", Holder: "ann", TTL: 10 * s}))
	at(22*s, ann, &core.PutRecord{Namespace: space, Path: "k", Value: "free"})
	const want = `
1.0 acquire q: ok; bob from 10.0.0.2:2 by native; token 1 of bob
2.0 put-record q/b1: ok; ann from 10.0.0.1:1 by etcd; token 1
2.1 acquire q: queued; ann from 10.0.0.1:1 by etcd of ann
2.2 put-record q/a1: ok; ann from 10.0.0.1:1 by etcd
3.0 delete-record q/b1: ok;  from 10.0.0.1:1 by etcd
3.1 break q: ok;  from 10.0.0.1:1 by etcd; token 1 of bob; broken (its record was deleted through the etcd door)
3.2 hold q by bob, token 1, 0s to 2s, waited 0s: broken (its record was deleted through the etcd door)
3.3 grant q: ok;  from 10.0.0.1:1 by etcd; token 2 of ann
4.0 break q: ok; bob from 10.0.0.2:2 by native; token 2 of ann; broken; named by bob (mine)
4.1 hold q by ann, token 2, 2s to 3s, waited 1s: broken; named by bob (mine)
4.2 delete-record q/a1: ok; bob from 10.0.0.2:2 by native; broken
5.0 acquire k: ok; ann from 10.0.0.1:1 by etcd; token 3 of ann
5.1 put-record k: ok; ann from 10.0.0.1:1 by etcd; token 3
6.0 put-record k: held; eve from 10.0.0.1:1 by etcd of eve (k is held by ann; ends in 9s unless renewed)
7.0 change k: ok; eve from 10.0.0.1:1 by etcd; token 4 of eve
7.1 hold k by ann, token 3, 4s to 6s, waited 0s: changed
7.2 put-record k: ok; eve from 10.0.0.1:1 by etcd; token 4
8.0 expire k: ok; time; token 4 of eve; expired
8.1 hold k by eve, token 4, 6s to 16s, waited 0s: expired
8.2 expire k: ok; time; expired
9.0 acquire k: ok; ann from 10.0.0.1:1 by etcd; token 5 of ann
9.1 put-record k: ok; ann from 10.0.0.1:1 by etcd; token 5
10.0 put-record k: ok;  from 10.0.0.1:1 by etcd
10.1 release k: ok;  from 10.0.0.1:1 by etcd; token 5 of ann; released
10.2 hold k by ann, token 5, 21s to 22s, waited 0s: released
`
	if got := "\n" + tell(projected(w.log)); got != want {
		t.Errorf("got%s", got)
	}
}

// What was left out because it was said before is said again in time: after another
// lease came in the way, and when there is too much to remember.
func TestPollingIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.entry(leasehold.Origin{}, &core.Acquire{Namespace: space, Resource: "r", ID: "a", Holder: "ann", TTL: time.Hour})
	p := newProjector()
	p.refusals = true
	poll := func(holder string) (told int) {
		e := w.entry(leasehold.Origin{}, &core.Acquire{Namespace: space, Resource: "r", ID: "b-" + holder, Holder: holder, TTL: time.Minute})
		p.lines(&e, func(*Line) { told++ })
		return told
	}
	if poll("bob") != 1 || poll("bob") != 0 || poll("cyd") != 1 || poll("bob") != 0 {
		t.Error("polling is not told once")
	}
	for i := range maxAsked {
		p.asked[uint64(i)] = 1
	}
	if poll("dan") != 1 || len(p.asked) != 1 {
		t.Errorf("%d are remembered", len(p.asked))
	}
}

func TestRenewalsAreSilent(t *testing.T) {
	w := newWorld(t)
	e := w.entry(leasehold.Origin{}, &core.Renew{Namespace: space, ID: "none"}, &core.RenewSession{Namespace: space, ID: "none"}, &core.Tick{}, &core.Lead{Node: 1})
	if e.changes() || e.refuses() {
		t.Error("renewals, a tick and a lead are not silent")
	}
	if e := w.entry(leasehold.Origin{}, &core.Release{Namespace: space, ID: "none"}); !e.refuses() {
		t.Error("a refusal is")
	}
}

// An alarm that somebody clears is told once, with its kind; a retry that finds it gone is not.
func TestAnAcknowledgedAlarmIsAnOperation(t *testing.T) {
	w := newWorld(t)
	ops := leasehold.Origin{Actor: "ops@example.com", Address: "10.0.0.3:3", Door: "native"}
	w.entry(leasehold.Origin{}, &core.Acquire{Namespace: space, Resource: "r", ID: "a", Holder: "ann", TTL: time.Second})
	w.at = time.Second
	w.entry(leasehold.Origin{}, &core.Tick{})
	looked := &core.AcknowledgeAlarm{Namespace: space, Kind: leasehold.UncleanEnd, Resource: "r", ID: "a", Order: 1, By: "me", Reason: "it was me"}
	w.log = nil
	w.entry(ops, looked)
	w.entry(ops, looked)
	const want = "1.0 acknowledge-alarm r: ok; ops@example.com from 10.0.0.3:3 by native; named by me (unclean-end: it was me)\n"
	if got := tell(projected(w.log)); got != want {
		t.Errorf("got %s", got)
	}
}
