package consul

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A faulty engine lets something happen before a command, or loses its answer.
type faulty struct {
	*memory.Engine
	before func(core.Command) // once
	lose   int                // answers
	drop   int                // commands, and the answers too
}

func (f *faulty) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if before := f.before; before != nil {
		f.before = nil
		before(c)
	}
	if f.drop > 0 {
		f.drop--
		return core.Answer{}, engine.Undecided("nobody can tell")
	}
	answer, err := f.Engine.Do(ctx, c)
	if f.lose > 0 {
		f.lose--
		return core.Answer{}, engine.Undecided("nobody can tell")
	}
	return answer, err
}

func (f *faulty) Submit(batch []engine.Submission) { engine.SubmitEach(f.Do, batch) }

// inTrouble is inTime with an engine that can be troubled.
func inTrouble(t *testing.T, test func(*testing.T, *bench, *faulty)) {
	inTime(t, func(t *testing.T, b *bench) {
		f := &faulty{Engine: b.engine}
		b.backend = door.NewBackend(f, door.Options{})
		b.door = New(b.backend, Config{})
		test(t, b, f)
	})
}

// The session ends between the look at it and the acquire: nothing is held by a session that is not there.
func TestSessionEndsInAnAcquire(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		for _, ask := range []func(string) told{
			func(s string) told { return b.ask("PUT /v1/kv/a?acquire="+s, "x") },
			func(s string) told { return b.txn("lock a " + s) },
		} {
			s := b.open(short)
			f.before = func(core.Command) { time.Sleep(21 * time.Second) }
			got := ask(s)
			if got.status == 200 || !strings.Contains(got.body, "invalid session") {
				t.Errorf("a session that ended in between got %d %s", got.status, got.body)
			}
			if n := b.status("a").Holding; n != 0 {
				t.Errorf("%d hold", n)
			}
			b.ask("GET /v1/kv/a", "").expect(404)
		}
	})
}

// Somebody else is faster between the look and the command.
func TestOvertakenAcquire(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		ann, bob := b.open(short), b.open(short)
		steal := func(core.Command) { b.ask("PUT /v1/kv/a?acquire="+bob, "bob").is("true") }
		f.before = steal
		b.ask("PUT /v1/kv/a?acquire="+ann, "ann").is("false")
		b.ask("DELETE /v1/kv/a", "").is("true")
		f.before = steal
		b.txn("lock a "+ann).refused(0, `failed to lock key "a", lock is already held`)
		// The lock is lost between the look and the write of who has it.
		f.before = func(core.Command) {
			b.ask("DELETE /v1/kv/a", "").is("true")
			b.ask("PUT /v1/kv/a?acquire="+ann, "").is("true")
		}
		b.ask("PUT /v1/kv/a?acquire="+bob, "late").is("false")
		if e := b.get("a"); e.Session != ann || len(e.Value) != 0 {
			t.Errorf("the key is %+v", e)
		}
		f.before = func(core.Command) { b.ask("DELETE /v1/kv/a", "").is("true") }
		b.ask("PUT /v1/kv/a?release="+ann, "late").is("false")
		b.ask("GET /v1/kv/a", "").expect(404)
	})
}

// Nobody could tell whether a command happened. What may be done twice is asked again; of the rest the client is told.
func TestUndecidedCommands(t *testing.T) {
	for _, fault := range []string{"done", "not done"} {
		t.Run(fault, func(t *testing.T) {
			inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
				trouble := func() {
					if f.lose, f.drop = 1, 0; fault == "not done" {
						f.lose, f.drop = 0, 1
					}
				}
				trouble()
				s := b.open(short)
				trouble()
				b.ask("PUT /v1/kv/a?acquire="+s, "x").is("true")
				if st := b.status("a"); st.Holding != 1 || b.get("a").LockIndex != 1 {
					t.Errorf("%d hold, and the lock index is %d", st.Holding, b.get("a").LockIndex)
				}
				trouble()
				b.ask("PUT /v1/session/renew/"+s, "").expect(200)
				trouble()
				b.ask("PUT /v1/kv/a?release="+s, "y").is("true")
				if e := b.get("a"); e.Session != "" || string(e.Value) != "y" {
					t.Errorf("released, the key is %+v", e)
				}
				index := b.get("a").ModifyIndex
				trouble()
				b.ask(fmt.Sprintf("PUT /v1/kv/a?cas=%d", index), "z").expect(500, "leadership lost while committing log")
				trouble()
				b.txn("set b  1", "cas c 0 1").expect(500, "leadership lost while committing log")
				trouble()
				b.ask("PUT /v1/kv/a", "w").expect(500)
				trouble()
				b.ask("DELETE /v1/kv/a", "").expect(500)
				trouble()
				b.ask("PUT /v1/session/destroy/"+s, "").is("true")
				b.ask("GET /v1/session/info/"+s, "").is("[]")
			})
		})
	}
}

// Tokens of ours are those of Consul, wherever they are sent.
func TestTokens(t *testing.T) {
	b := newBench(t, Config{})
	secret, hash := credential.NewToken()
	_, other := credential.NewToken()
	_, err := b.engine.Do(engine.WithAsker(t.Context(), &access.System), &core.ChangeAccess{Put: access.Items{
		Tokens: []*access.Token{{ID: "t", Hash: hash, Principal: "ann"}, {ID: "r", Hash: other, Principal: "root"}},
		Bindings: []*access.Binding{
			{Name: "b", Role: "member", Principal: "ann", Namespace: leasehold.DefaultNamespace, Prefix: "a/"},
			{Name: "r", Role: "admin", Principal: "root", Namespace: access.AllNamespaces},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.ask("GET /v1/kv/a/x", "").expect(403, "Permission denied")
	b.ask("GET /v1/kv/a/x", "", "X-Consul-Token", secret).expect(404)
	b.ask("GET /v1/kv/a/x", "", "Authorization", "Bearer "+secret).expect(404)
	b.ask("GET /v1/kv/a/x?token="+secret, "").expect(404)
	b.ask("GET /v1/kv/a/x", "", "X-Consul-Token", "lh_wrong").expect(403, "ACL not found")
	b.ask("GET /v1/kv/b/x", "", "X-Consul-Token", secret).expect(403, "Permission denied")
	if got := b.ask("PUT /v1/kv/a/x", "v", "X-Consul-Token", secret).is("true"); got.header.Get("X-Consul-Default-Acl-Policy") != "deny" {
		t.Errorf("the default policy is %q", got.header.Get("X-Consul-Default-Acl-Policy"))
	}
}
