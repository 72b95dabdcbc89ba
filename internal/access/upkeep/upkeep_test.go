package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	guard "github.com/leasehold/leasehold/internal/access"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A troubled engine does something around each command.
type troubled struct {
	engine.Engine
	do func(ctx context.Context, next func() (core.Answer, error)) (core.Answer, error)
}

func (e *troubled) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	return e.do(ctx, func() (core.Answer, error) { return e.Engine.Do(ctx, c) })
}

func newEngine(t *testing.T) *memory.Engine {
	t.Helper()
	e := memory.Start(engine.NewGoClock())
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// started returns a keeper that has started.
func started(t *testing.T, e engine.Engine, c Config) *Keeper {
	t.Helper()
	k := New(c)
	if _, err := k.Start(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return k
}

func policyOf(t *testing.T, e engine.Engine) (p *access.Policy) {
	t.Helper()
	if err := e.Read(t.Context(), func(v core.View) { p = v.Policy() }); err != nil {
		t.Fatal(err)
	}
	return p
}

// hasSecret reports whether a directory has the secret of an admin token that is in force, and checks its mode.
func hasSecret(t *testing.T, dir string, p *access.Policy) bool {
	t.Helper()
	b, err := os.ReadFile(TokenFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(TokenFile(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file has mode %v, %v", info.Mode(), err)
	}
	token, ok := p.TokenOf(credential.Hash(strings.TrimSpace(string(b))))
	return ok && p.Permit(&access.Asker{Principal: token.Principal, Token: token.ID}).MayCluster(access.Admin)
}

// files returns the names in a directory.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

func TestServersThatStartTogetherMakeOnePolicy(t *testing.T) {
	for range 20 {
		e := newEngine(t)
		dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		start := func() {
			var all sync.WaitGroup
			for i, dir := range dirs {
				all.Go(func() {
					k := New(Config{Dir: dir, Server: "n" + string(rune('1'+i)), Begin: true})
					if on, err := k.Start(t.Context(), e); !on || err != nil {
						t.Errorf("access is on: %v, %v", on, err)
					}
				})
			}
			all.Wait()
		}
		start()
		first := policyOf(t, e)
		start() // again changes nothing
		p, having := policyOf(t, e), 0
		if p.Revision != first.Revision || len(p.Items().Tokens) != 1 || len(p.Items().Bindings) != 1 {
			t.Errorf("the policy has revision %d and %+v", p.Revision, p.Items())
		}
		for _, dir := range dirs {
			if hasSecret(t, dir, p) {
				having++
			} else if left := files(t, dir); len(left) > 0 {
				t.Errorf("a server without a token has the files %v", left)
			}
		}
		if having != 1 {
			t.Errorf("%d servers have the token", having)
		}
	}
}

func TestNobodyIsLockedOutByACrash(t *testing.T) {
	died := errors.New("killed")
	for name, do := range map[string]func(ctx context.Context, next func() (core.Answer, error)) (core.Answer, error){
		"before the change": func(context.Context, func() (core.Answer, error)) (core.Answer, error) {
			return core.Answer{}, died
		},
		"after it": func(_ context.Context, next func() (core.Answer, error)) (core.Answer, error) {
			if _, err := next(); err != nil {
				return core.Answer{}, err
			}
			return core.Answer{}, died
		},
	} {
		e, dir := newEngine(t), t.TempDir()
		k := New(Config{Dir: dir, Server: "n1", Begin: true})
		if _, err := k.Start(t.Context(), &troubled{e, do}); !errors.Is(err, died) {
			t.Fatalf("%s: %v", name, err)
		}
		started(t, e, Config{Dir: dir, Server: "n1", Begin: true})
		if p := policyOf(t, e); !hasSecret(t, dir, p) || len(p.Items().Tokens) != 1 {
			t.Errorf("killed %s, nobody has the token; files %v", name, files(t, dir))
		}
	}
}

func TestALostReplyIsAskedForAgain(t *testing.T) {
	e, dir, tries := newEngine(t), t.TempDir(), 0
	started(t, &troubled{e, func(_ context.Context, next func() (core.Answer, error)) (core.Answer, error) {
		if tries++; tries == 1 {
			return core.Answer{}, engine.Unavailable("there is no leader")
		}
		answer, err := next()
		if tries == 2 {
			return core.Answer{}, engine.Undecided("the leader is gone")
		}
		return answer, err
	}}, Config{Dir: dir, Server: "n1", Begin: true})
	if p := policyOf(t, e); !hasSecret(t, dir, p) || p.Revision != 1 && p.Revision != 2 {
		t.Errorf("after %d tries the policy is at %d", tries, p.Revision)
	}
}

// Without --access a server obeys the policy that there is, and makes none.
func TestAccessIsNotBegunByItself(t *testing.T) {
	e, dir := newEngine(t), t.TempDir()
	if on, err := New(Config{Dir: dir}).Start(t.Context(), e); on || err != nil || policyOf(t, e) != nil {
		t.Errorf("access is on: %v, %v", on, err)
	}
	started(t, e, Config{Dir: t.TempDir(), Begin: true})
	if on, err := New(Config{Dir: dir}).Start(t.Context(), e); !on || err != nil || len(files(t, dir)) > 0 {
		t.Errorf("access is on: %v, %v; files %v", on, err, files(t, dir))
	}
}

// A token that was revoked does not come back when access is begun once more.
func TestAccessThatWasOffBeginsWithAnotherToken(t *testing.T) {
	e, dir := newEngine(t), t.TempDir()
	started(t, e, Config{Dir: dir, Begin: true})
	old := policyOf(t, e).Items().Tokens[0]
	if _, err := e.Do(asSystem(t.Context()), &core.ChangeAccess{Off: true}); err != nil {
		t.Fatal(err)
	}
	started(t, e, Config{Dir: dir, Begin: true})
	p := policyOf(t, e)
	if _, is := p.TokenOf(old.Hash); is || !hasSecret(t, dir, p) {
		t.Error("the old token is good again, or the new one is not in the file")
	}
}

func TestRecover(t *testing.T) {
	e, first, dir := newEngine(t), t.TempDir(), t.TempDir()
	started(t, e, Config{Dir: first, Server: "n1", Begin: true})
	// Somebody else is the admin now, and nobody has that token.
	hash := strings.Repeat("x", 32)
	old := policyOf(t, e).Items()
	keys := old.Keys()
	if _, err := e.Do(asSystem(t.Context()), &core.ChangeAccess{Remove: keys, Put: access.Items{
		Tokens:   []*access.Token{{ID: "t", Hash: hash, Principal: "root"}},
		Bindings: []*access.Binding{{Name: "b", Role: "admin", Principal: "root", Namespace: "*"}},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := Mark(dir); err != nil {
		t.Fatal(err)
	}
	started(t, e, Config{Dir: dir, Server: "n2"})
	p := policyOf(t, e)
	if !hasSecret(t, dir, p) || hasSecret(t, first, p) || Marked(dir) {
		t.Errorf("nobody was let in: %v", files(t, dir))
	}
	if _, is := p.TokenOf(hash); !is {
		t.Error("the other admin was locked out")
	}
	if _, err := New(Config{Dir: dir, Server: "n2"}).Start(t.Context(), e); err != nil || policyOf(t, e) != p {
		t.Errorf("the next start lets somebody in once more: %v", err)
	}
}

// What cannot be done leaves the mark for the next start, and a warning; the server goes on.
func TestRecoverThatFailsIsTriedAgain(t *testing.T) {
	e, dir := newEngine(t), t.TempDir()
	started(t, e, Config{Dir: t.TempDir(), Begin: true})
	if err := Mark(dir); err != nil {
		t.Fatal(err)
	}
	full := &troubled{e, func(context.Context, func() (core.Answer, error)) (core.Answer, error) {
		return core.Answer{}, &leasehold.Error{Code: leasehold.Limited, Message: "the disk is full"}
	}}
	k := started(t, full, Config{Dir: dir})
	if w := k.Warnings(); len(w) != 1 || !strings.Contains(w[0], "the disk is full") || !Marked(dir) {
		t.Errorf("it warns of %q, with the files %v", w, files(t, dir))
	}
	if k = started(t, e, Config{Dir: dir}); len(k.Warnings()) > 0 || !hasSecret(t, dir, policyOf(t, e)) {
		t.Errorf("it warns of %q", k.Warnings())
	}
}

// A server that fails before the secret has its name makes one token all the same.
func TestRecoverThatCrashesMakesOneToken(t *testing.T) {
	e, dir := newEngine(t), t.TempDir()
	started(t, e, Config{Dir: t.TempDir(), Begin: true})
	if err := errors.Join(Mark(dir), os.MkdirAll(filepath.Join(TokenFile(dir), "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	started(t, e, Config{Dir: dir})
	if Marked(dir) {
		t.Error("the next start would make another token")
	}
	p := policyOf(t, e)
	if err := os.RemoveAll(TokenFile(dir)); err != nil {
		t.Fatal(err)
	}
	if started(t, e, Config{Dir: dir}); !hasSecret(t, dir, policyOf(t, e)) || policyOf(t, e) != p {
		t.Errorf("the next start made another token, with the files %v", files(t, dir))
	}
}

func TestRecoverWithoutAccessRemovesTheMark(t *testing.T) {
	e, dir := newEngine(t), t.TempDir()
	if err := Mark(dir); err != nil {
		t.Fatal(err)
	}
	if on, err := New(Config{Dir: dir}).Start(t.Context(), e); on || err != nil || Marked(dir) {
		t.Errorf("access is on: %v, %v", on, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// declared is a file with a binding for each principal, and for admin.
func declared(name string, principals ...string) *File {
	return &File{Name: name + ".yaml", Hash: strings.Join(principals, ","), Items: func(*access.Policy, time.Time) (all access.Items, err error) {
		if len(principals) == 0 {
			return all, nil
		}
		all.Bindings = append(all.Bindings, adminBinding())
		for _, p := range principals {
			all.Bindings = append(all.Bindings, &access.Binding{Name: p, Role: "member", Principal: p, Namespace: "default"})
		}
		return all, nil
	}}
}

func bound(t *testing.T, e engine.Engine, name string) bool {
	t.Helper()
	_, ok := policyOf(t, e).Binding(name)
	return ok
}

// An operator is let in also where there are as many tokens as there may be; nobody else may add one.
func TestRecoverWithAsManyTokensAsThereMayBe(t *testing.T) {
	e, dir := newEngine(t), t.TempDir()
	started(t, e, Config{Dir: dir, Server: "n1", Begin: true})
	made := 1
	fill := func(n int, asker *access.Asker) error {
		change := &core.ChangeAccess{}
		for range n {
			made++
			change.Put.Tokens = append(change.Put.Tokens, &access.Token{ID: fmt.Sprint(made), Hash: fmt.Sprintf("%032d", made),
				Principal: "ann"})
		}
		_, err := e.Do(engine.WithAsker(t.Context(), asker), change)
		return err
	}
	admin := &access.Asker{Principal: "admin", Token: policyOf(t, e).Items().Tokens[0].ID}
	for made < access.MaxTokens {
		if err := fill(min(access.MaxChange, access.MaxTokens-made), admin); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(TokenFile(dir)); err != nil {
		t.Fatal(err)
	}
	if err := Mark(dir); err != nil {
		t.Fatal(err)
	}
	k := started(t, e, Config{Dir: dir, Server: "n1"})
	if w := k.Warnings(); len(w) > 0 || !hasSecret(t, dir, policyOf(t, e)) {
		t.Fatalf("the operator is not let in: %q", w)
	}
	if err := fill(1, admin); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "at most 20000 are allowed") {
		t.Errorf("another token: %v", err)
	}
	for _, change := range []*core.ChangeAccess{
		{Put: access.Items{Roles: []*access.Role{{Name: "some", Any: access.Verbs(1)}}}},
		{Remove: access.Keys{Tokens: []string{"7", "8"}}},
	} {
		if _, err := e.Do(engine.WithAsker(t.Context(), admin), change); err != nil {
			t.Errorf("the admin cannot go on: %v", err)
		}
	}
	if err := fill(1, admin); err != nil {
		t.Errorf("where there is room again: %v", err)
	}
	for range access.SpareTokens + 2 { // whatever happens, there is an end to it
		if err := fill(1, &access.System); errors.Is(err, leasehold.ErrRefused) {
			return
		}
	}
	t.Error("servers may make any number of tokens")
}

func TestFilesThatDifferDoNotAlternate(t *testing.T) {
	e := newEngine(t)
	dirs := map[string]string{"n1": t.TempDir(), "n2": t.TempDir()}
	start := func(server string, file *File) *Keeper {
		return started(t, e, Config{Dir: dirs[server], Server: server, Begin: true, File: file})
	}
	start("n1", declared("a", "ann"))
	if !bound(t, e, "ann") {
		t.Fatal("the file was not applied")
	}
	at := policyOf(t, e).Revision
	second := start("n2", declared("a", "ann"))
	if len(second.Warnings()) > 0 || policyOf(t, e).Revision != at {
		t.Errorf("the same file is applied again; warnings %q", second.Warnings())
	}
	for range 3 {
		second = start("n2", declared("b", "bob"))
		w := second.Warnings()
		if len(w) != 1 || !strings.Contains(w[0], "b.yaml differs from the one that server n1 applied") || bound(t, e, "bob") {
			t.Fatalf("another file was applied, or nobody was told: %q", w)
		}
		if w := start("n1", declared("a", "ann")).Warnings(); len(w) > 0 || policyOf(t, e).Revision != at {
			t.Fatalf("n1 has the warnings %q", w)
		}
	}
	// The new file on all servers: it counts, and the warning ends without another start.
	start("n1", declared("b", "bob"))
	if second.look(asSystem(t.Context())); len(second.Warnings()) > 0 || !bound(t, e, "bob") || bound(t, e, "ann") {
		t.Errorf("the new file does not count: %q", second.Warnings())
	}
	// What somebody changed by hand, the next start changes back.
	if _, err := e.Do(asSystem(t.Context()), &core.ChangeAccess{Remove: access.Keys{Bindings: []string{"bob"}}}); err != nil {
		t.Fatal(err)
	}
	start("n2", declared("b", "bob"))
	if !bound(t, e, "bob") {
		t.Error("the file is not in force")
	}
}

func TestTwoFilesAtOnceMakeOnePolicy(t *testing.T) {
	for range 20 {
		e := newEngine(t)
		var all sync.WaitGroup
		var warned atomic.Int32
		for _, name := range []string{"ann", "bob"} {
			all.Go(func() {
				k := New(Config{Dir: t.TempDir(), Server: name, Begin: true, File: declared(name, name)})
				if _, err := k.Start(t.Context(), e); err != nil {
					t.Error(err)
				}
				warned.Add(int32(len(k.Warnings())))
			})
		}
		all.Wait()
		if bound(t, e, "ann") == bound(t, e, "bob") || warned.Load() != 1 {
			t.Errorf("%d servers were warned", warned.Load())
		}
	}
}

func TestAFileThatLocksEverybodyOutIsRefused(t *testing.T) {
	e := newEngine(t)
	k := started(t, e, Config{Dir: t.TempDir(), Server: "n1", Begin: true, File: declared("empty")})
	if w := k.Warnings(); len(w) != 1 || !strings.Contains(w[0], "nobody could change access any more") {
		t.Errorf("it warns of %q", w)
	}
	if p := policyOf(t, e); len(p.Items().Bindings) != 1 {
		t.Error("the admin is gone")
	}
}

func TestTokensThatEndSoonAreToldByNumberAlone(t *testing.T) {
	e, now := newEngine(t), time.Now()
	k := started(t, e, Config{Dir: t.TempDir(), Begin: true, Now: func() time.Time { return now }})
	for i, left := range []time.Duration{-time.Hour, time.Hour, guard.Soon - time.Hour, guard.Soon + time.Hour} {
		id := "secret" + string(rune('a'+i))
		if _, err := e.Do(asSystem(t.Context()), &core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{
			{ID: id, Hash: strings.Repeat(id[6:], 32), Principal: "ann", ExpiresWall: now.Add(left).UnixNano()},
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	k.look(asSystem(t.Context()))
	w := k.Warnings()
	if len(w) != 1 || !strings.HasPrefix(w[0], "2 tokens end within 7 days") || strings.Contains(w[0], "secret") || k.Ending() != 2 {
		t.Errorf("it warns of %q, %v", w, k.Ending())
	}
	now = now.Add(2 * time.Hour)
	if k.look(asSystem(t.Context())); k.Ending() != 2 {
		t.Errorf("two hours later %v end", k.Ending())
	}
	if now = now.Add(30 * 24 * time.Hour); true {
		k.look(asSystem(t.Context()))
	}
	if len(k.Warnings()) > 0 || k.Ending() != 0 {
		t.Errorf("after all ended it warns of %q", k.Warnings())
	}
}
