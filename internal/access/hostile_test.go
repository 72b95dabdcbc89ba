package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// The secrets are everywhere in what bob has: in names, holders, labels, reasons and values.
const secret = "xyzzy"

func (w *world) secrets() {
	path, id := "b/"+secret, "id-"+secret
	w.do("bob", &core.OpenSession{Namespace: space, ID: "session-" + secret, TTL: time.Hour, Labels: leasehold.Labels{{Key: "k", Value: secret}}})
	w.do("bob", &core.Acquire{Namespace: space, Resource: path, ID: id, Holder: "h-" + secret, Reason: secret,
		Session: "session-" + secret, Labels: leasehold.Labels{{Key: "k", Value: secret}}, Foreign: "f-" + secret})
	w.do("bob", &core.Acquire{Namespace: space, Resource: path, ID: "wait-" + secret, Holder: "w-" + secret, Wait: time.Hour, TTL: time.Hour})
	w.do("op", &core.Define{Namespace: space, Definition: leasehold.Definition{Path: "b/" + secret, Expected: time.Second}, Reason: secret})
	w.put("bob", space, path, secret)
	w.put("bob", space, path, secret+secret)
	w.do("bob", &core.Acquire{Namespace: space, Resource: path + "/2", ID: "ended-" + secret, Holder: secret, TTL: time.Hour})
	w.do("bob", &core.Break{Namespace: space, ID: "ended-" + secret, By: secret, Reason: secret})
	w.acquire("bob", "other", secret, "other-"+secret)
	time.Sleep(time.Minute)
}

// A neighbour with the role member on a/ tries to learn of b/, and of another namespace.
func TestAHostileNeighbourLearnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := engine.Position{}
		w.secrets()
		view := func(look func(core.View) any) func() (string, error) {
			return func() (string, error) { return w.see("ann", look) }
		}
		journal := func(q audit.Query) func() (string, error) {
			return func() (string, error) {
				q.Limit = 1000
				if q.Namespace == "" {
					q.Namespace = space
				}
				page, err := w.guard.Journal().Find(as("ann"), q)
				return text(t, page.Lines), err
			}
		}
		watch := func(f engine.Filter) func() (string, error) {
			return func() (string, error) {
				ctx, cancel := context.WithTimeout(as("ann"), time.Second)
				defer cancel()
				watcher, err := engine.Watch(ctx, w.guard, f, &began)
				if err != nil {
					return "", err
				}
				seen := ""
				_, err = watcher.Each(func(e *leasehold.Event) bool { seen += fmt.Sprintf("%+v", *e); return true })
				return seen, err
			}
		}
		w.change(policy.Keys{}, policy.Items{
			Roles:    []*policy.Role{{Name: "auditor", Any: policy.Of(policy.Audit)}},
			Bindings: []*policy.Binding{bind("ann", "auditor", space, "a/")},
		})
		path := "b/" + secret
		tries := map[string]func() (string, error){
			"the status by its path": view(func(v core.View) any { return redacted(v.Status(space, path, 100), path) }),
			"a list of everything":   view(func(v core.View) any { return pair(v.List(space, "", "", 1000, true)) }),
			"a list of its prefix":   view(func(v core.View) any { return pair(v.List(space, "b/", "", 1000, true)) }),
			"a list in pages of one": view(func(v core.View) any { return pair(v.List(space, "", "", 1, true)) }),
			"a list from behind":     view(func(v core.View) any { return pair(v.List(space, "", "b/x", 1, true)) }),
			"a filter by holder": view(func(v core.View) any {
				return pair(v.Find(space, core.ListQuery{Most: 9, Filter: core.Filter{Holder: core.NewPattern("*")}}))
			}),
			"a filter by state": view(func(v core.View) any {
				return pair(v.Find(space, core.ListQuery{Most: 9, Filter: core.Filter{State: leasehold.Broken}}))
			}),
			"its lease id":                 view(func(v core.View) any { return redacted(v.Claim(space, "id-"+secret), "id-"+secret) }),
			"its waiter":                   view(func(v core.View) any { return redacted(v.Claim(space, "wait-"+secret), "wait-"+secret) }),
			"its lease that ended":         view(func(v core.View) any { return redacted(v.Claim(space, "ended-"+secret), "ended-"+secret) }),
			"how it ended":                 view(func(v core.View) any { return pair(secretIf(v.Ended(space, "ended-"+secret) != 0), 0) }),
			"what it became":               view(func(v core.View) any { _, how := v.EndedAs(space, "ended-"+secret); return secretIf(how != 0) }),
			"its session":                  view(func(v core.View) any { return redacted(pair(v.Session(space, "session-"+secret)), "session-"+secret) }),
			"all sessions":                 view(func(v core.View) any { return pair(v.Sessions(space, "", "", 1000)) }),
			"who is in the way":            view(func(v core.View) any { return redacted(v.Held(space, path), path) }),
			"who is in the way of several": view(func(v core.View) any { return redacted(v.Held(space, "a/x", path), path) }),
			"its definition":               view(func(v core.View) any { return pair(v.Definition(space, path)) }),
			"all definitions":              view(func(v core.View) any { return pair(v.Definitions(space, "", "", 1000)) }),
			"its advice":                   view(func(v core.View) any { return redacted(v.Advice(space, path), path) }),
			"its kinds":                    view(func(v core.View) any { return v.Kinds(space, path, "") }),
			"alarms":                       view(func(v core.View) any { return pair(v.Alarms(space, core.AlarmQuery{Most: 1000})) }),
			"alarms one by one":            view(func(v core.View) any { return pair(v.Alarms(space, core.AlarmQuery{Most: 1})) }),
			"its record":                   view(func(v core.View) any { return redacted(pair(v.Record(space, path, 0)), path) }),
			"its record of before":         view(func(v core.View) any { return redacted(pair(v.Record(space, path, 9)), path) }),
			"all records":                  view(func(v core.View) any { return pair(v.Records(space, core.RecordQuery{Count: true})) }),
			"records of before": view(func(v core.View) any {
				q := core.RecordQuery{Revision: v.History(space).Revision - 1}
				q.Past = v.History(space).Past(q)
				return pair(v.Records(space, q))
			}),
			"a count of its records": view(func(v core.View) any {
				page, _ := v.Records(space, core.RecordQuery{From: "b/", To: "b0", Count: true})
				return secretIf(page.Count != 0)
			}),
			"its versions":                 view(func(v core.View) any { return pair(v.Versions(space, path, 0, 10)) }),
			"a version":                    view(func(v core.View) any { return redacted(pair(v.Version(space, path, 8)), path) }),
			"history":                      view(func(v core.View) any { return v.History(space).All() }),
			"history from the end":         view(func(v core.View) any { events, _, _ := v.History(space).Last(0, 0, 1000, 1000, always); return events }),
			"history after a position":     view(func(v core.View) any { events, _ := v.History(space).After(1, 0); return events }),
			"namespaces":                   view(func(v core.View) any { return secretIf(strings.Contains(fmt.Sprint(v.Namespaces()), "other")) }),
			"another namespace's revision": view(func(v core.View) any { return secretIf(v.History("other").Revision != 0) }),
			"another namespace's token":    view(func(v core.View) any { return secretIf(v.NewestTokenIn("other") != 0) }),
			"counts":                       view(func(v core.View) any { return secretIf(v.Counts().Leases != 0) }),
			"a watch of everything":        watch(engine.Filter{Namespace: space}),
			"a watch of its resource":      watch(engine.Filter{Namespace: space, Resource: path}),
			"a watch of its session":       watch(engine.Filter{Namespace: space, Session: "session-" + secret}),
			"a watch of another namespace": watch(engine.Filter{Namespace: "other"}),
			"the journal":                  journal(audit.Query{Kind: audit.Operation}),
			"the journal of its resource":  journal(audit.Query{Kind: audit.Operation, Resource: path}),
			"the journal of its holder":    journal(audit.Query{Kind: audit.Operation, Holder: "h-" + secret}),
			"holds":                        journal(audit.Query{Kind: audit.Hold}),
			"holds of another namespace":   journal(audit.Query{Kind: audit.Hold, Namespace: "other"}),
		}
		if len(tries) < 25 {
			t.Errorf("only %d tries", len(tries))
		}
		for name, try := range tries {
			seen, err := try()
			if err != nil {
				// A refusal may repeat what was asked for.
				err = errors.New(strings.ReplaceAll(err.Error(), path, ""))
			}
			if strings.Contains(fmt.Sprint(seen, err), secret) {
				t.Errorf("%s: %s, %v", name, seen, err)
			}
		}
		// The same tries show it to who may see it: they are real ones.
		if seen := w.seeAll(func(v core.View) any { return pair(v.List(space, "b/", "", 1000, true)) }); !strings.Contains(seen, secret) {
			t.Error("there was nothing to learn")
		}
	})
}

func always(*leasehold.Event) bool { return true }

func secretIf(learned bool) string {
	if learned {
		return secret
	}
	return ""
}

// redacted is an answer without what the neighbour itself said.
func redacted(answer any, said string) string {
	return strings.ReplaceAll(fmt.Sprintf("%+v", deref(answer)), said, "")
}

func deref(answer any) any {
	switch a := answer.(type) {
	case *leasehold.Error:
		return *a
	case core.Answer:
		return []any{a.Lease == nil, a.Waiter == nil, a.Err.Error()}
	case []any:
		var all []any
		for _, one := range a {
			all = append(all, deref(one))
		}
		return all
	}
	return answer
}

// A refusal for a deadlock names others; who reads the journal of one of the resources does not learn of them.
func TestTheJournalShowsNoOthersInAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.change(policy.Keys{}, policy.Items{
			Roles:    []*policy.Role{{Name: "auditor", Any: policy.Of(policy.Audit)}},
			Bindings: []*policy.Binding{bind("ann", "auditor", space, "a/")},
		})
		acquire := func(path, holder, id string, wait time.Duration) error {
			_, err := w.guard.Do(as("op"), &core.Acquire{Namespace: space, Resource: path, ID: id, Holder: holder, TTL: time.Hour, Wait: wait})
			return err
		}
		for _, err := range []error{acquire("a/x", "one", "1", 0), acquire("b/"+secret, "two", "2", 0),
			acquire("a/x", "two", "3", time.Hour)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := acquire("b/"+secret, "one", "4", time.Hour); !errors.Is(err, leasehold.ErrRefused) {
			t.Fatalf("no deadlock: %v", err)
		}
		w.do("op", &core.Release{Namespace: space, ID: "3"})
		if err := acquire("b/"+secret, "one", "5", time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := acquire("a/x", "two", "6", time.Hour); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), secret) {
			t.Fatalf("no deadlock that names the other: %v", err)
		}
		find := func(who string) string {
			page, err := w.guard.Journal().Find(as(who), audit.Query{Kind: audit.Operation, Namespace: space, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			return text(t, page.Lines)
		}
		if seen := find("ann"); strings.Contains(seen, secret) || !strings.Contains(seen, "refused") {
			t.Errorf("ann sees %s", seen)
		}
		if seen := find("op"); !strings.Contains(seen, secret) {
			t.Errorf("an operator sees %s", seen)
		}
	})
}

// keeper is an engine of a cluster, as far as the guard is concerned.
type keeper struct{ engine.Engine }

func (keeper) Outlook(context.Context) (engine.Outlook, error) {
	return engine.Outlook{Cluster: secret, Leader: 1, Self: 1, Term: 7, Confirmed: true, Level: core.NewestLevel,
		Servers: []engine.Server{{ID: 1, Name: "n1", Peer: secret, Client: "http://n1:4653", Version: secret, Applied: 99, Voter: true}}}, nil
}
func (keeper) Add(context.Context, string, string) (engine.Server, error) {
	return engine.Server{}, nil
}
func (keeper) Promote(context.Context, string) error            { return nil }
func (keeper) Remove(context.Context, string) error             { return nil }
func (keeper) Transfer(context.Context, string) (string, error) { return "", nil }
func (keeper) Upgrade(context.Context) (core.Level, error)      { return 0, nil }
func (keeper) Sums(context.Context) (engine.Sums, error)        { return engine.Sums{}, nil }
func (keeper) Backup(_ context.Context, w io.Writer) error {
	_, err := w.Write([]byte(secret))
	return err
}
func (keeper) Warnings() []string { return []string{secret} }

func TestTheClusterIsForThoseWhoRunIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		g := New(keeper{w.bare})
		c := g.Cluster()
		brief, err := c.Outlook(as("ann"))
		if err != nil || strings.Contains(fmt.Sprint(brief), secret) || brief.Servers[0].Client == "" {
			t.Errorf("a member sees %+v, %v", brief, err)
		}
		if full, err := c.Outlook(as("op")); err != nil || full.Cluster != secret {
			t.Errorf("an operator sees %+v, %v", full, err)
		}
		var b bytes.Buffer
		calls := map[string]func(context.Context) error{
			"add":      func(ctx context.Context) error { _, err := c.Add(ctx, "n", "a"); return err },
			"promote":  func(ctx context.Context) error { return c.Promote(ctx, "n") },
			"remove":   func(ctx context.Context) error { return c.Remove(ctx, "n") },
			"transfer": func(ctx context.Context) error { _, err := c.Transfer(ctx, "n"); return err },
			"upgrade":  func(ctx context.Context) error { _, err := c.Upgrade(ctx); return err },
			"sums":     func(ctx context.Context) error { _, err := c.Sums(ctx); return err },
			"backup":   func(ctx context.Context) error { return c.Backup(ctx, &b) },
		}
		for name, call := range calls {
			if err := call(as("op")); !errors.Is(err, leasehold.ErrDenied) {
				t.Errorf("%s by an operator: %v", name, err)
			}
			if err := call(context.Background()); !errors.Is(err, leasehold.ErrDenied) {
				t.Errorf("%s by nobody: %v", name, err)
			}
			if err := call(as("root")); err != nil {
				t.Errorf("%s by an admin: %v", name, err)
			}
		}
		if len(g.Warnings(as("ann")))+len(g.Warnings(t.Context())) > 0 || len(g.Warnings(as("op"))) != 1 {
			t.Error("warnings are shown to others than those who monitor")
		}
		if w.guard.Cluster() != nil {
			t.Error("an engine without a cluster got one")
		}
	})
}

func TestLargeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		values := w.guard.Values()
		if _, err := values.PutValue(t.Context(), strings.NewReader("x")); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("nobody puts one: %v", err)
		}
		large, err := values.PutValue(as("bob"), strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		w.do("bob", &core.PutRecord{Namespace: space, Path: "b/large", Large: &large})
		r, err := values.OpenValue(as("bob"), large)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		w.change(policy.Keys{Tokens: []string{"t-bob"}}, policy.Items{})
		if _, err := r.Read(make([]byte, 100)); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("after the token was revoked: %v", err)
		}
		if _, err := values.OpenValue(t.Context(), large); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("nobody opens one: %v", err)
		}
	})
}

// A value that is being read ends where its reader can no longer be known to have the right, or to be there.
func TestLargeValuesEndWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alone := &leaderless{Engine: w.bare}
		w.guard = New(alone)
		values := w.guard.Values()
		large, err := values.PutValue(as("bob"), strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		w.do("bob", &core.PutRecord{Namespace: space, Path: "b/large", Large: &large})
		ctx, gone := context.WithCancelCause(as("bob"))
		r, err := values.OpenValue(ctx, large)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		read := func() error {
			_, err := r.Read(make([]byte, 100))
			return err
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait() // for what the guard does at that very moment
		}
		pass(time.Hour)
		if err := read(); err != nil {
			t.Fatal(err)
		}
		alone.lost.Store(true)
		pass(time.Second)
		if err := read(); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("after a second without a leader: %v", err)
		}
		alone.lost.Store(false)
		pass(time.Second)
		if err := read(); err != nil {
			t.Errorf("with a leader again: %v", err)
		}
		gone(leasehold.ErrDenied)
		if err := read(); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("after the end of the request: %v", err)
		}
	})
}
