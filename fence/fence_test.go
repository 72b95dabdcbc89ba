package fence_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
)

func pass(token, floor leasehold.Token) fence.Pass { return fence.Pass{Token: token, Floor: floor} }

func nothing(context.Context) error { return nil }

func TestMemoryRefusesWhoIsLate(t *testing.T) {
	g := fence.NewMemory()
	for _, step := range []struct {
		resource string
		pass     fence.Pass
		floor    leasehold.Token // of the refusal; 0: it is let in
		refused  bool
	}{
		{"a", pass(0, 0), 0, true},
		{"a", pass(5, 0), 0, false},
		{"a", pass(5, 5), 0, false},
		{"b", pass(3, 0), 0, false}, // another resource
		{"a", pass(4, 0), 5, true},
		{"a", pass(8, 6), 0, false}, // shared: 6 and 7 are alive too
		{"a", pass(6, 6), 0, false},
		{"a", pass(7, 6), 0, false},
		{"a", pass(5, 5), 6, true},
		{"a", pass(9, 10), 0, false}, // a floor can not be above its token
		{"a", pass(8, 6), 9, true},
		{"a", pass(0, 0), 9, true},
	} {
		err := g.Do(t.Context(), step.resource, step.pass, nothing)
		var late *fence.LateError
		if errors.As(err, &late) != step.refused || step.refused && (late.Token != step.pass.Token || late.Floor != step.floor || !errors.Is(err, leasehold.ErrLost)) {
			t.Errorf("%s with %+v: %v", step.resource, step.pass, err)
		}
	}
	if g.Floor("a") != 9 || g.Floor("unknown") != 0 {
		t.Errorf("the floor is %d", g.Floor("a"))
	}
}

// A holder that is inside when a newer one comes is told to stop, and the newer one
// waits until it has: what the older one writes last is before what the newer one does.
func TestMemoryWaitsForWhoIsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fence.NewMemory()
		order := make(chan string, 3)
		go func() {
			_ = g.Do(t.Context(), "r", pass(1, 0), func(ctx context.Context) error {
				<-ctx.Done()
				var late *fence.LateError
				if !errors.As(context.Cause(ctx), &late) || late.Token != 1 || late.Floor != 2 {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				order <- "old"
				return nil
			})
		}()
		synctest.Wait()
		if err := g.Do(t.Context(), "r", pass(2, 0), func(context.Context) error { order <- "new"; return nil }); err != nil {
			t.Fatal(err)
		}
		if first := <-order; first != "old" {
			t.Errorf("%s came first", first)
		}
		// One that does not leave keeps the next one out, but not for longer than that wishes.
		stay := make(chan struct{})
		go func() {
			_ = g.Do(t.Context(), "r", pass(3, 0), func(context.Context) error { <-stay; return nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		tired := errors.New("tired")
		cancel(tired)
		if err := g.Do(ctx, "r", pass(4, 0), nothing); !errors.Is(err, tired) {
			t.Errorf("the error is %v", err)
		}
		close(stay)
		synctest.Wait()
		if err := g.Do(t.Context(), "r", pass(4, 0), nothing); err != nil {
			t.Errorf("after it left: %v", err)
		}
	})
}

func TestHandler(t *testing.T) {
	var served int
	h := fence.Handler(fence.NewMemory(), func(r *http.Request) string {
		if r.Method == http.MethodGet {
			return ""
		}
		return r.URL.Path
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served++ }))
	for _, step := range []struct {
		name, method, token, floor string
		status                     int
		says                       string
	}{
		{"a read", "GET", "", "", 200, ""},
		{"no token", "PUT", "", "", 428, "or was never acquired; acquire the resource"},
		{"the first", "PUT", "5", "", 200, ""},
		{"no token after one", "PUT", "", "", 428, "the largest token seen is 5"},
		{"a newer one", "PUT", "7", "6", 200, ""},
		{"one that shares", "PUT", "6", "6", 200, ""},
		{"a late one", "PUT", "5", "", 412, `token 5 is late: token 6 was seen`},
		{"both tokens as numbers", "PUT", "5", "", 412, `"token":5,"floor":6`},
		{"rubbish", "PUT", "five", "", 400, "not a token"},
		{"too large", "PUT", "9007199254740992", "", 400, "not a token"},
	} {
		r := httptest.NewRequest(step.method, "/disk", nil)
		if step.token != "" {
			r.Header.Set(fence.TokenHeader, step.token)
		}
		if step.floor != "" {
			r.Header.Set(fence.FloorHeader, step.floor)
		}
		w := httptest.NewRecorder()
		before := served
		h.ServeHTTP(w, r)
		if w.Code != step.status || !strings.Contains(w.Body.String(), step.says) || (served > before) != (step.status == 200) {
			t.Errorf("%s: %d %s", step.name, w.Code, w.Body)
		}
	}
}

func TestAPassTravels(t *testing.T) {
	for _, p := range []fence.Pass{pass(7, 0), pass(7, 6), pass(leasehold.MaxToken, 1),
		{Token: 7, Resource: "reports/nightly"}, {Token: 7, Floor: 6, Resource: "with space/ünï\ncode?#%"}} {
		h := http.Header{}
		p.Set(h)
		if got, err := fence.PassOf(h); err != nil || got != p {
			t.Errorf("%+v arrives as %+v, %v", p, got, err)
		}
	}
}

// Headers that had another pass before, such as those of a request that is made again, keep nothing of it: with the
// floor of an older pass, a guard would go on to let older holders in.
func TestAPassReplacesAnother(t *testing.T) {
	h := http.Header{}
	fence.Pass{Token: 8, Floor: 6, Resource: "r"}.Set(h)
	pass(9, 0).Set(h)
	if got, err := fence.PassOf(h); err != nil || got != pass(9, 0) {
		t.Errorf("it arrives as %+v, %v", got, err)
	}
}

// A pass that was issued for another resource is refused before it changes anything: otherwise
// a mistyped name would shut the real holder out.
func TestAPassOfAnotherResourceIsRefused(t *testing.T) {
	g := fence.NewMemory()
	p := fence.Pass{Token: 9, Resource: "a"}
	var mismatch *fence.MismatchError
	if err := g.Do(t.Context(), "b", p, nothing); !errors.As(err, &mismatch) || !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("the error is %v", err)
	}
	if g.Floor("b") != 0 {
		t.Errorf("the floor of b is %d", g.Floor("b"))
	}
	for resource, p := range map[string]fence.Pass{"a": p, "a/1": p.For("a/1")} {
		if err := g.Do(t.Context(), resource, p, nothing); err != nil {
			t.Error(err)
		}
	}
	r := httptest.NewRequest("PUT", "/", nil)
	p.Set(r.Header)
	w := httptest.NewRecorder()
	fence.Handler(g, func(*http.Request) string { return "b" }, http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "the pass is for a") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func FuzzPassOf(f *testing.F) {
	f.Add("7", "6", "reports%2Fnightly")
	f.Add("-1", "9007199254740992", "%")
	f.Fuzz(func(t *testing.T, token, floor, resource string) {
		p, err := fence.PassOf(http.Header{fence.TokenHeader: {token}, fence.FloorHeader: {floor},
			fence.ResourceHeader: {resource}})
		if err == nil && (p.Token > leasehold.MaxToken || p.Floor > leasehold.MaxToken) {
			t.Errorf("%q and %q are %+v", token, floor, p)
		}
	})
}

func TestNewSQLChecksItsArguments(t *testing.T) {
	if _, err := fence.NewSQL(nil, fence.SQLite, "x; DROP TABLE y"); err == nil {
		t.Error("a table with a strange name")
	}
	if _, err := fence.NewSQL(nil, 0, ""); err == nil {
		t.Error("a dialect that nobody knows")
	}
}
