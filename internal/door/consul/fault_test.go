package consul

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
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
	after  func(core.Command) // once
	lose   int                // answers
	drop   int                // commands, and the answers too
	full   bool               // nothing can be written
	down   atomic.Bool        // nothing can be read
	reads  atomic.Int64
	asked  atomic.Int64   // reads that ask other servers
	behind *memory.Engine // what this server has; nil: all that there is
}

func (f *faulty) Read(ctx context.Context, fn func(core.View)) error {
	if f.reads.Add(1); f.down.Load() {
		return engine.Unavailable("no leader")
	}
	switch {
	case !engine.IsStale(ctx):
		f.asked.Add(1)
	case f.behind != nil:
		return f.behind.Read(ctx, fn)
	}
	return f.Engine.Read(ctx, fn)
}

func (f *faulty) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if before := f.before; before != nil {
		f.before = nil
		before(c)
	}
	switch c.(type) {
	case *core.PutRecord, *core.Txn:
		if f.full {
			return core.Answer{}, &leasehold.Error{Code: leasehold.Limited, Message: "the disk is nearly full"}
		}
	}
	if f.drop > 0 {
		f.drop--
		return core.Answer{}, engine.Undecided("nobody can tell")
	}
	answer, err := f.Engine.Do(ctx, c)
	if after := f.after; after != nil {
		f.after = nil
		after(c)
	}
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

// Nobody could tell whether a release happened. Who never had the lock, or lost it, has released nothing, also if
// somebody else has it by now; who had it has.
func TestUndecidedReleases(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		ann, bob := b.open(short), b.open(short)
		b.ask("PUT /v1/kv/a?acquire="+ann, "ann").is("true")
		f.lose = 1
		b.ask("PUT /v1/kv/a?release="+bob, "late").is("false")
		if e := b.get("a"); e.Session != ann || string(e.Value) != "ann" {
			t.Fatalf("the key is %+v", e)
		}
		f.lose = 1
		f.after = func(core.Command) { b.ask("PUT /v1/kv/a?acquire="+bob, "bob").is("true") }
		b.ask("PUT /v1/kv/a?release="+ann, "late").is("true")
		f.lose, f.drop = 0, 1
		f.before = func(core.Command) {
			s := b.status("a")
			_, _ = f.Engine.Do(t.Context(), &core.Break{Namespace: "default", Resource: "a", Token: s.Holders[0].Token, Reason: "r"})
		}
		b.ask("PUT /v1/kv/a?release="+bob, "late").is("false")
		if e := b.get("a"); e.Session != "" || string(e.Value) != "bob" {
			t.Errorf("the key is %+v", e)
		}
	})
}

// When a disk is full a lock can be given back all the same. The value that comes with it is not written, and the answer
// says so.
func TestReleaseOnAFullDisk(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		ann, bob := b.open(short), b.open(short)
		b.ask("PUT /v1/kv/a?acquire="+ann, "ann").is("true")
		f.full = true
		b.ask("PUT /v1/kv/a?release="+bob, "late").is("false")
		got := b.ask("PUT /v1/kv/a?release="+ann, "done").is("true")
		if reason := got.header.Get(reasonHeader); !strings.Contains(reason, "value was not written: the disk is nearly full") {
			t.Errorf("the reason is %q", reason)
		}
		if e := b.get("a"); e.Session != "" || string(e.Value) != "ann" || b.status("a").Last.How != leasehold.Released {
			t.Errorf("released, the key is %+v", e)
		}
		b.ask("PUT /v1/kv/a?release="+ann, "done").is("false")
	})
}

// A key that was there when it was to be created, and is deleted before anybody looks again, was there.
func TestOvertakenCreate(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		b.ask("PUT /v1/kv/a", "x").is("true")
		f.after = func(core.Command) { b.ask("DELETE /v1/kv/a", "").is("true") }
		b.ask("PUT /v1/kv/a?cas=0", "y").is("false")
		b.ask("PUT /v1/kv/a?cas=0", "z").is("true")
	})
}

// A key shows a lease of another door by the id of that, in the place of a session. That is nobody's to unlock.
func TestUnlockOfAnotherDoor(t *testing.T) {
	b := newBench(t, Config{})
	s := b.open(short)
	b.ask("PUT /v1/kv/a?acquire="+s, "x").is("true")
	b.ask("PUT /v1/kv/a?release="+s, "x").is("true")
	_, err := b.engine.Do(t.Context(), &core.Acquire{Namespace: "default", Resource: "a", ID: "own", Holder: "worker-7", TTL: time.Minute})
	if err != nil || b.get("a").Session != "own" {
		t.Fatalf("the key is %+v: %v", b.get("a"), err)
	}
	b.ask("PUT /v1/kv/a?release=own", "y").is("false")
	b.txn("unlock a own").refused(0, `failed to unlock key "a", lock isn't held, or is held by another session`)
	b.txn("lock a "+s).refused(0, `failed to lock key "a", lock is already held`)
	b.ask("PUT /v1/kv/a", "z").is("true")
	if e := b.get("a"); e.Session != "own" || string(e.Value) != "z" || b.status("a").Holding != 1 {
		t.Errorf("the key is %+v", e)
	}
}

// govern turns access on, and returns the token of ann, who may use what begins with a/, and that of root.
func (b *bench) govern() (ann, root string) {
	b.t.Helper()
	ann, hash := credential.NewToken()
	root, other := credential.NewToken()
	_, err := b.engine.Do(engine.WithAsker(b.t.Context(), &access.System), &core.ChangeAccess{Put: access.Items{
		Tokens: []*access.Token{{ID: "t", Hash: hash, Principal: "ann"}, {ID: "r", Hash: other, Principal: "root"}},
		Bindings: []*access.Binding{
			{Name: "b", Role: "member", Principal: "ann", Namespace: leasehold.DefaultNamespace, Prefix: "a/"},
			{Name: "r", Role: "admin", Principal: "root", Namespace: access.AllNamespaces},
		},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	return ann, root
}

// Tokens of ours are those of Consul, wherever they are sent.
func TestTokens(t *testing.T) {
	b := newBench(t, Config{})
	secret, _ := b.govern()
	b.ask("GET /v1/kv/a/x", "").expect(403, "CONSUL_HTTP_TOKEN")
	b.ask("GET /v1/kv/a/x", "", "X-Consul-Token", secret).expect(404)
	b.ask("GET /v1/kv/a/x", "", "Authorization", "Bearer "+secret).expect(404)
	b.ask("GET /v1/kv/a/x?token="+secret, "").expect(404)
	b.ask("GET /v1/kv/a/x", "", "X-Consul-Token", "lh_wrong").expect(403, "ACL not found")
	b.ask("GET /v1/kv/b/x", "", "X-Consul-Token", secret).expect(403, "Permission denied")
	if got := b.ask("PUT /v1/kv/a/x", "v", "X-Consul-Token", secret).is("true"); got.header.Get("X-Consul-Default-Acl-Policy") != "deny" {
		t.Errorf("the default policy is %q", got.header.Get("X-Consul-Default-Acl-Policy"))
	}
}

// A neighbour sees and touches nothing beside what it may, and is told so: a key that it may not read is not shown as
// one that is not there.
func TestNeighbours(t *testing.T) {
	b := newBench(t, Config{})
	ann, root := b.govern()
	as := func(who, what, body string) told { return b.ask(what, body, "X-Consul-Token", who) }
	txn := func(ops ...string) told {
		for i := range ops {
			ops[i] = op(ops[i])
		}
		return as(ann, "PUT /v1/txn", "["+strings.Join(ops, ",")+"]")
	}
	as(root, "PUT /v1/kv/a/x", "x").is("true")
	as(root, "PUT /v1/kv/b/x", "hidden").is("true")
	held := strings.Split(as(root, "PUT /v1/session/create", short).expect(200).body, `"`)[3]
	as(root, "PUT /v1/kv/a/lock?acquire="+held, "").is("true")

	as(ann, "GET /v1/kv/?keys&separator=/", "").is(`["a/"]`)
	if got := as(ann, "GET /v1/kv/?recurse", "").expect(200, "a/x"); strings.Contains(got.body, "b/x") {
		t.Errorf("the list shows %s", got.body)
	}
	for _, what := range []string{
		"GET /v1/kv/b/x", "GET /v1/kv/b/?recurse", "GET /v1/kv/b/?keys", "GET /v1/kv/b/x?index=1",
		"GET /v1/kv/b/?recurse&index=1", "GET /v1/kv/a/../b/x", "GET /v1/kv/a%2F..%2Fb/x", "PUT /v1/kv/b/y",
		"DELETE /v1/kv/b/x", "DELETE /v1/kv/?recurse", "PUT /v1/kv/a/lock?release=" + held, "DELETE /v1/kv/a/lock",
	} {
		as(ann, what, "").expect(403, "Permission denied")
	}
	for _, op := range []string{
		"get b/x", "get-or-empty b/x", "check-not-exists b/x", "check-index b/x 2", "check-session b/x s", "get-tree b/",
		"set b/x  y", "delete b/x", "delete-tree b/", "delete-cas b/x 2", "unlock a/lock " + held,
	} {
		txn("get a/x", op).expect(403, "Permission denied")
	}
	as(ann, "PUT /v1/kv/a/x?acquire="+held, "").expect(500, "invalid session")
	as(ann, "GET /v1/session/list", "").is("[]")
	as(ann, "GET /v1/session/info/"+held, "").is("[]")
	as(ann, "PUT /v1/session/renew/"+held, "").expect(404)
	as(ann, "PUT /v1/session/destroy/"+held, "")
	as(root, "GET /v1/session/info/"+held, "").expect(200, held)
}

// Where access is on, watches end while there is no leader. A blocking query waits an election out: its client would
// take an error for the loss of its lock.
func TestBlockingOutlastsAnElection(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		ann, _ := b.govern()
		b.ask("PUT /v1/kv/a/x", "1", "X-Consul-Token", ann).is("true")
		index := b.ask("GET /v1/kv/a/x?token="+ann, "").index()
		key := b.later("GET /v1/kv/a/x?index=" + index + "&token=" + ann)
		tree := b.later("GET /v1/kv/a/?recurse&index=" + index + "&token=" + ann)
		for range 3 {
			time.Sleep(time.Minute)
			f.down.Store(true)
			time.Sleep(2500 * time.Millisecond)
			f.down.Store(false)
			time.Sleep(time.Second)
		}
		pending(t, key)
		pending(t, tree)
		b.ask("PUT /v1/kv/a/x", "2", "X-Consul-Token", ann).is("true")
		(<-key).expect(200, `"Value":"Mg=="`)
		(<-tree).expect(200, `"Value":"Mg=="`)
		// Without a leader for longer, it is told.
		key = b.later("GET /v1/kv/a/x?index=" + b.ask("GET /v1/kv/a/x?token="+ann, "").index() + "&token=" + ann)
		f.down.Store(true)
		(<-key).expect(500, "No cluster leader")
	})
}
