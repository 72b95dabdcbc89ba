package access

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Names are what a read can be asked for.
type names struct{ namespace, path, id, ended, session string }

func of(letter string) names {
	return names{space, letter + "/x", "id-" + letter, "ended-" + letter, "session-" + letter}
}

// populate gives each of ann and bob the same things, each under its own prefix.
func (w *world) populate() {
	for _, who := range []string{"ann", "bob"} {
		n := of(who[:1])
		w.session(who, space, n.session)
		w.acquire(who, space, n.path, n.id)
		w.acquire(who, space, n.path+"/done", n.ended)
		w.do(who, &core.Release{Namespace: space, ID: n.ended})
		w.do(who, &core.PutRecord{Namespace: space, Path: n.path, Value: "value of " + who, Keep: 2})
		w.do(who, &core.PutRecord{Namespace: space, Path: n.path, Value: "second value of " + who})
		w.do(who, &core.PutTask{Namespace: space, Path: n.path, Value: "third value of " + who})
		w.do("op", &core.Define{Namespace: space, Definition: leasehold.Definition{Path: n.path, Expected: time.Minute}})
		w.do(who, &core.Acquire{Namespace: space, Resource: n.path, ID: n.id + "-waits", Holder: who + "-waiter",
			Wait: time.Hour, TTL: time.Hour})
		w.do(who, &core.Reserve{Namespace: space, Resource: n.path, ID: "reserved-" + n.id, Holder: who, Reason: "reason of " + who, Length: time.Hour,
			From: reservation.Moment(time.Now().Add(48 * time.Hour).UnixNano())})
		w.do(who, &core.Reserve{Namespace: space, Resource: n.path, ID: "recurs-" + n.id, Holder: who, Length: time.Hour,
			Rule: &leasehold.Rule{Zone: "UTC", Days: 1, Length: time.Hour}, To: reservation.Moment(time.Now().UnixNano())})
	}
	w.acquire("bob", "other", "b/x", "id-other")
	w.put("bob", "other", "b/x", "value in other")
}

// perPath are the reads that name something. The same three things are true of each: who may see it is told what
// everybody was told before there was a policy; to others it looks as what does not exist; and what does not exist
// looks alike to all.
var perPath = map[string]func(core.View, names) any{
	"Status": func(v core.View, n names) any { return v.Status(n.namespace, n.path, 10) },
	"List":   func(v core.View, n names) any { return pair(v.List(n.namespace, n.path, "", 10, true)) },
	"Find": func(v core.View, n names) any {
		return pair(v.Find(n.namespace, core.ListQuery{Prefix: n.path, Most: 10}))
	},
	"Definition":  func(v core.View, n names) any { return pair(v.Definition(n.namespace, n.path)) },
	"Definitions": func(v core.View, n names) any { return pair(v.Definitions(n.namespace, n.path, "", 10)) },
	"Pool": func(v core.View, n names) any {
		status, ok := v.Pool(n.namespace, n.path, core.PoolQuery{Most: 10, Waiters: 10})
		return []any{status, ok}
	},
	"Task": func(v core.View, n names) any { return pair(v.Task(n.namespace, n.path)) },
	"Tasks": func(v core.View, n names) any {
		return pair(v.Tasks(n.namespace, core.TaskQuery{Prefix: n.path, Most: 10}))
	},
	"Pools":  func(v core.View, n names) any { return pair(v.Pools(n.namespace, n.path, "", 10)) },
	"Advice": func(v core.View, n names) any { return v.Advice(n.namespace, n.path) },
	"Kinds":  func(v core.View, n names) any { return v.Kinds(n.namespace, n.path, "") },
	"Alarms": func(v core.View, n names) any {
		return pair(v.Alarms(n.namespace, core.AlarmQuery{Prefix: n.path, Most: 10}))
	},
	"Claim":   func(v core.View, n names) any { return v.Claim(n.namespace, n.id) },
	"Claims":  func(v core.View, n names) any { return v.Claims(&core.Acquire{Namespace: n.namespace, ID: n.id}) },
	"Ended":   func(v core.View, n names) any { return v.Ended(n.namespace, n.ended) },
	"EndedAs": func(v core.View, n names) any { return pair(v.EndedAs(n.namespace, n.ended)) },
	"Session": func(v core.View, n names) any { return pair(v.Session(n.namespace, n.session)) },
	"Sessions": func(v core.View, n names) any {
		return pair(v.Sessions(n.namespace, n.session, "", 10))
	},
	"Record":  func(v core.View, n names) any { return pair(v.Record(n.namespace, n.path, 0)) },
	"Version": func(v core.View, n names) any { return pair(v.Version(n.namespace, n.path, 9)) },
	"Records": func(v core.View, n names) any {
		page, failure := v.Records(n.namespace, core.RecordQuery{From: n.path, To: n.path + "\x00", Count: true})
		page.Revision = 0 // it is shared in a namespace
		return pair(page, failure)
	},
	"Versions":       func(v core.View, n names) any { return pair(v.Versions(n.namespace, n.path, 0, 10)) },
	"Keeps":          func(v core.View, n names) any { return v.Keeps(n.namespace, n.path) },
	"OwnerOfClaim":   func(v core.View, n names) any { return v.OwnerOfClaim(n.namespace, n.id) },
	"OwnerOfSession": func(v core.View, n names) any { return v.OwnerOfSession(n.namespace, n.session) },
	"OwnerOfRecord":  func(v core.View, n names) any { return v.OwnerOfRecord(n.namespace, n.path) },
	"StandsFor":      func(v core.View, n names) any { return pair(v.StandsFor(n.namespace, n.path, n.id)) },
	"Reservations": func(v core.View, n names) any {
		return pair(v.Reservations(n.namespace, core.ReservationQuery{Prefix: n.path, Most: 10}))
	},
	"Reservation": func(v core.View, n names) any {
		r, owner, ok := v.Reservation(n.namespace, "reserved-"+n.id)
		return []any{r, owner, ok}
	},
	"PathOfClaim": func(v core.View, n names) any { return v.PathOfClaim(n.namespace, n.id) },
}

func pair(a, b any) any { return []any{a, b} }

func TestEachReadShowsWhatMayBeSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.populate()
		time.Sleep(2 * time.Minute) // there are alarms now: the leases are held for longer than expected
		mine, hidden, absent := of("a"), of("b"), of("c")
		plain := strings.NewReplacer("b/x", "PATH", "c/x", "PATH", "-b", "ID", "-c", "ID", "other", "SPACE", "absent", "SPACE")
		for method, look := range perPath {
			as := func(n names) func(core.View) any { return func(v core.View) any { return look(v, n) } }
			if seen, err := w.see("ann", as(mine)); err != nil || seen != w.seeAll(as(mine)) {
				t.Errorf("%s: ann sees of her own\n%s (%v), and there is\n%s", method, seen, err, w.seeAll(as(mine)))
			}
			seen, err := w.see("ann", as(hidden))
			none, same := w.see("ann", as(absent))
			if plain.Replace(seen) != plain.Replace(none) || errorText(plain, err) != errorText(plain, same) {
				t.Errorf("%s: ann sees of bob's\n%s (%v), and of nothing\n%s (%v)", method, seen, err, none, same)
			}
			for _, secret := range []string{"bob", "value of", "reason of", "label of"} {
				if strings.Contains(seen, secret) {
					t.Errorf("%s: ann sees %q in %s", method, secret, seen)
				}
			}
			other, gone := names{"other", "b/x", "id-other", "id-other", "s"}, names{"absent", "b/x", "id-other", "id-other", "s"}
			seen, err = w.see("ann", as(other))
			none, same = w.see("ann", as(gone))
			if plain.Replace(seen) != plain.Replace(none) || errorText(plain, err) != errorText(plain, same) {
				t.Errorf("%s: ann sees of another namespace\n%s (%v), and of none\n%s (%v)", method, seen, err, none, same)
			}
			if seen, err := w.see("op", as(hidden)); err != nil || seen != w.seeAll(as(hidden)) {
				t.Errorf("%s: an operator sees\n%s (%v), and there is\n%s", method, seen, err, w.seeAll(as(hidden)))
			}
		}
	})
}

func errorText(plain *strings.Replacer, err error) string {
	if err == nil {
		return ""
	}
	return plain.Replace(err.Error())
}

// whole are the reads that name nothing, or what no prefix covers, with who may and who may not.
var whole = map[string]struct {
	look        func(core.View) any
	sees, hides string // who sees all of it; who sees less
}{
	"Level":         {func(v core.View) any { return v.Level() }, "ann", ""},
	"Work":          {func(v core.View) any { return v.Work() }, "ann", ""},
	"Forgot":        {func(v core.View) any { return v.Forgot() }, "ann", ""},
	"Namespaces":    {func(v core.View) any { return v.Namespaces() }, "root", "ann"},
	"Counts":        {func(v core.View) any { return v.Counts() }, "op", "ann"},
	"Caps":          {func(v core.View) any { return pair(v.Caps()) }, "op", "ann"},
	"Quarantine":    {func(v core.View) any { return pair(v.Quarantine()) }, "ann", ""},
	"Policy":        {func(v core.View) any { p := v.Policy(); return p.Items() }, "ann", ""},
	"UseOf":         {func(v core.View) any { return v.UseOf(&policy.Quota{Namespace: space}) }, "root", "ann"},
	"NewestToken":   {func(v core.View) any { return v.NewestToken() }, "op", "ann"},
	"NewestTokenIn": {func(v core.View) any { return v.NewestTokenIn("other") }, "bob", "ann"},
	"NamesLarge":    {func(v core.View) any { return v.NamesLarge(leasehold.Digest{}) }, "root", ""},
	"History": {func(v core.View) any {
		h := v.History("other")
		return pair(h.All(), h.Revision)
	}, "bob", "ann"},
	"Date":   {func(v core.View) any { return v.Date() }, "ann", ""},
	"Series": {func(v core.View) any { return v.Series(space, nil) }, "op", "ann"},
	"Held":   {func(v core.View) any { return v.Held(space, "b/x") }, "bob", "ann"},
}

func TestReadsOfTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.populate()
		for method, c := range whole {
			all := w.seeAll(c.look)
			if seen, err := w.see(c.sees, c.look); err != nil || seen != all {
				t.Errorf("%s: %s sees %s (%v), and there is %s", method, c.sees, seen, err, all)
			}
			if c.hides == "" {
				continue
			}
			if seen, _ := w.see(c.hides, c.look); seen == all || strings.Contains(seen, "bob") {
				t.Errorf("%s: %s sees %s", method, c.hides, seen)
			}
		}
	})
}

// A new method of the view needs a case.
func TestEachMethodOfTheViewIsTested(t *testing.T) {
	view := reflect.TypeFor[core.View]()
	for i := range view.NumMethod() {
		name := view.Method(i).Name
		if _, named := perPath[name]; !named && whole[name].look == nil {
			t.Errorf("%s has no case", name)
		}
	}
}

func TestWhoSeesNothingOfWhatItAsksForIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.populate()
		_, err := w.see("ann", func(v core.View) any { return v.Status(space, "b/x", 0) })
		want := "ann may not read b/x: that needs the verb read there; ask an admin, or see leasehold access can-i read b/x"
		if !errors.Is(err, leasehold.ErrDenied) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		// What a door looks up beside does not spoil the rest.
		if _, err := w.see("ann", func(v core.View) any { return pair(v.Status(space, "a/x", 0), v.Keeps(space, "b/x")) }); err != nil {
			t.Error(err)
		}
		if err := w.guard.Read(t.Context(), func(core.View) { t.Error("nobody was let in") }); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("nobody: %v", err)
		}
		if _, err := w.guard.Do(t.Context(), &core.Release{Namespace: space, ID: "x"}); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("nobody: %v", err)
		}
		w.change(policy.Keys{Tokens: []string{"t-ann"}}, policy.Items{})
		if _, err := w.see("ann", func(v core.View) any { return v.Level() }); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("a revoked token: %v", err)
		}
	})
}

// A history is read after the view is gone: it shows no more than the view did, also after others have read.
func TestAHistoryOutlivesItsView(t *testing.T) {
	w := newWorld(t)
	w.acquire("bob", space, "b/x", "1")
	var history core.History
	if err := w.guard.Read(as("ann"), func(v core.View) { history = v.History(space) }); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"bob", "op"} {
		if err := w.guard.Read(as(who), func(v core.View) { v.Status(space, "b/x", 0) }); err != nil {
			t.Fatal(err)
		}
	}
	if events := history.All(); len(events) != 0 {
		t.Errorf("ann sees %v", events)
	}
}
