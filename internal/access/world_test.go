package access

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const space = leasehold.DefaultNamespace

// A world is a guarded engine with a policy: ann is a member on a/, bob on b/ and of the namespace other, own may see and
// do to its own only, op is an operator of everything, root the admin.
type world struct {
	t     testing.TB
	bare  *memory.Engine
	guard *Guard
}

func token(name string) *policy.Token {
	return &policy.Token{ID: "t-" + name, Principal: name, Hash: fmt.Sprintf("%-32s", "secret of "+name)}
}

func bind(name, role, namespace, prefix string) *policy.Binding {
	return &policy.Binding{Name: name + namespace + prefix, Role: role, Principal: name, Namespace: namespace, Prefix: prefix}
}

func newWorld(t testing.TB) *world {
	e := memory.Start(engine.NewGoClock())
	w := &world{t, e, New(e)}
	t.Cleanup(func() {
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		_ = e.Close()
	})
	w.change(policy.Keys{}, policy.Items{
		Tokens: []*policy.Token{token("root"), token("ann"), token("bob"), token("own"), token("op")},
		Roles: []*policy.Role{{Name: "own", Any: policy.Of(policy.Acquire, policy.Share, policy.RecordWrite),
			Own: policy.Of(policy.Read, policy.List, policy.Watch, policy.RecordRead, policy.Renew, policy.Release)}},
		Bindings: []*policy.Binding{
			bind("root", "admin", policy.AllNamespaces, ""), bind("op", "operator", policy.AllNamespaces, ""),
			bind("ann", "member", space, "a/"), bind("bob", "member", space, "b/"), bind("bob", "member", "other", ""),
			bind("own", "own", space, ""),
		},
	})
	return w
}

// as is the context of somebody's request.
func as(name string) context.Context {
	ctx := engine.WithOrigin(context.Background(), leasehold.Origin{Address: "10.0.0.1:1", Door: "native"})
	return engine.WithAsker(ctx, &policy.Asker{Principal: name, Token: "t-" + name})
}

// change changes the policy as an admin.
func (w *world) change(remove policy.Keys, put policy.Items) {
	w.t.Helper()
	if _, err := w.bare.Do(as("root"), &command.ChangeAccess{Remove: remove, Put: put}); err != nil {
		w.t.Fatal(err)
	}
}

// do has somebody carry out a command.
func (w *world) do(who string, c core.Command) core.Answer {
	w.t.Helper()
	answer, err := w.guard.Do(as(who), c)
	if err != nil {
		w.t.Fatalf("%s: %+v: %v", who, c, err)
	}
	return answer
}

func (w *world) acquire(who, namespace, path, id string) {
	w.t.Helper()
	w.do(who, &core.Acquire{Namespace: namespace, Resource: path, ID: id, Holder: who + "-holder", TTL: time.Hour,
		Reason: "reason of " + who, Labels: leasehold.Labels{{Key: "k", Value: "label of " + who}}})
}

func (w *world) put(who, namespace, path, value string) {
	w.t.Helper()
	w.do(who, &core.PutRecord{Namespace: namespace, Path: path, Value: value})
}

func (w *world) session(who, namespace, id string) {
	w.t.Helper()
	w.do(who, &core.OpenSession{Namespace: namespace, ID: id, TTL: time.Hour,
		Labels: leasehold.Labels{{Key: "k", Value: "session label of " + who}}})
}

// see reads as somebody, and returns what was seen as text.
func (w *world) see(who string, look func(core.View) any) (string, error) {
	w.t.Helper()
	var seen any
	err := w.guard.Read(as(who), func(v core.View) { seen = look(v) })
	return text(w.t, seen), err
}

// seeAll reads everything.
func (w *world) seeAll(look func(core.View) any) string {
	w.t.Helper()
	var seen any
	if err := w.bare.Read(context.Background(), func(v core.View) { seen = look(v) }); err != nil {
		w.t.Fatal(err)
	}
	return text(w.t, seen)
}

func text(t testing.TB, seen any) string {
	t.Helper()
	out, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
