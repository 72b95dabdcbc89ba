package access

import (
	"context"
	"fmt"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// still is an engine that does nothing, so that what is measured is the guard.
type still struct {
	*memory.Engine
	view core.View
}

func (s *still) Do(context.Context, core.Command) (core.Answer, error) { return core.Answer{}, nil }
func (s *still) Read(_ context.Context, fn func(core.View)) error      { fn(s.view); return nil }

// bench returns a still engine, with a policy or without.
func bench(b testing.TB, put *policy.Items) *still {
	e := memory.Start(engine.NewGoClock())
	b.Cleanup(func() { _ = e.Close() })
	if put != nil {
		for put.Len() > 0 {
			n := min(len(put.Tokens), 1000)
			c := &command.ChangeAccess{Put: policy.Items{Tokens: put.Tokens[:n], Bindings: put.Bindings}}
			if _, err := e.Do(as("root"), c); err != nil {
				b.Fatal(err)
			}
			put.Tokens, put.Bindings = put.Tokens[n:], nil
		}
	}
	s := &still{Engine: e}
	_ = e.Read(b.Context(), func(v core.View) { s.view = v })
	return s
}

// large is a policy of 10,000 tokens and 1,000 bindings.
func large() *policy.Items {
	put := &policy.Items{Tokens: []*policy.Token{token("root"), token("ann")},
		Bindings: []*policy.Binding{bind("root", "admin", policy.AllNamespaces, ""), bind("ann", "member", leasehold.DefaultNamespace, "a/")}}
	for i := range 9998 {
		put.Tokens = append(put.Tokens, token(fmt.Sprint("user-", i)))
	}
	for i := range 998 {
		put.Bindings = append(put.Bindings, bind(fmt.Sprint("user-", i), "member", leasehold.DefaultNamespace, fmt.Sprintf("team-%d/", i)))
	}
	return put
}

func BenchmarkGuard(b *testing.B) {
	renew := &core.Renew{Namespace: space, ID: "id"}
	look := func(v core.View) { _ = v.Status(space, "a/x", 0) }
	for _, c := range []struct {
		name   string
		engine engine.Engine
		ctx    context.Context
	}{
		{"bare", bench(b, nil), context.Background()},
		{"no-policy", New(bench(b, nil)), context.Background()},
		{"policy", New(bench(b, large())), as("ann")},
	} {
		b.Run("Do/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.engine.Do(c.ctx, renew); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Read/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.engine.Read(c.ctx, look); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Without a policy the guard allocates nothing, and with one nothing but the view of a read. (A sync.Pool drops some of
// what it keeps under the race detector.)
func TestWhatTheGuardAllocates(t *testing.T) {
	renew, look := &core.Renew{Namespace: space, ID: "id"}, func(v core.View) { _ = v.Status(space, "a/x", 0) }
	measure := func(e engine.Engine, ctx context.Context) float64 {
		return testing.AllocsPerRun(1000, func() { _, _ = e.Do(ctx, renew); _ = e.Read(ctx, look) })
	}
	for _, c := range []struct {
		name  string
		still *still
		more  float64
	}{{"no policy", bench(t, nil), 0}, {"policy", bench(t, large()), 1}} {
		if bare, guarded := measure(c.still, as("ann")), measure(New(c.still), as("ann")); guarded > bare+c.more {
			t.Errorf("%s: %v allocations, and %v without the guard", c.name, guarded, bare)
		}
	}
}
