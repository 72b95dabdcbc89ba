package azure

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A lossy proxy stands before a server, under the same certificate, and can lose the
// answer to one request: the server has done it, and the client never hears of it.
type lossy struct {
	address string

	mu    sync.Mutex
	calls []string
	lose  func(n int, what string) bool
	lost  string
	down  func() // done before a request, once, instead of losing its answer
}

// called describes a request as the tests speak of it.
func called(r *http.Request) string {
	what := r.Method
	if comp := r.URL.Query().Get("comp"); comp != "" {
		what += " " + comp
	}
	if action := r.Header.Get("x-ms-lease-action"); action != "" {
		what += " " + action
	}
	return what
}

func startLossy(t *testing.T, s *server) *lossy {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem"))
	check(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &lossy{address: l.Addr().String()}
	target := &url.URL{Scheme: "https", Host: s.azure}
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		Transport: s.client().Transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.loses(r) {
			forward.ServeHTTP(discard{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}))
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return p
}

// loses reports whether the answer to a request is to be lost. Only one is.
func (p *lossy) loses(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, "/metadata/") || strings.HasPrefix(r.URL.Path, "/login/") || strings.HasPrefix(r.URL.Path, "/subscriptions/") {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	what := called(r)
	p.calls = append(p.calls, what)
	if p.lost != "" || p.lose == nil || !p.lose(len(p.calls)-1, what) {
		return false
	}
	p.lost = what
	if p.down != nil {
		p.down()
		return false
	}
	return true
}

// begin counts anew, and says which answer is to be lost.
func (p *lossy) begin(lose func(n int, what string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.lost, p.lose = nil, "", lose
}

// end loses nothing more.
func (p *lossy) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = nil
}

func (p *lossy) which() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header       { return d.h }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// through makes a stack reach its server by a proxy.
func (k *stack) through(p *lossy) *stack {
	k.t.Helper()
	other := *k
	other.dir = k.t.TempDir()
	text, err := os.ReadFile(filepath.Join(k.dir, "main.tf"))
	check(k.t, err)
	check(k.t, os.WriteFile(filepath.Join(other.dir, "main.tf"), []byte(strings.ReplaceAll(string(text), k.azure, p.address)), 0o600))
	other.ok("init")
	return &other
}

// Each answer of a run is lost once. Whatever it was: the state is never one that nobody
// wrote, what was done is kept, and the lock, if it stays, is unlocked with the id that
// everybody is told.
func TestAzurermLostAnswers(t *testing.T) {
	t.Parallel()
	terraform(t)
	s := startServer(t)
	s.leasehold(t, "azure", "container", "create", accountName, "tfstate")
	direct := s.newStack(t, byAddress, "lossy.tfstate", one)
	direct.ok("init")
	direct.ok(direct.apply("first")...)
	p := startLossy(t, s)
	k := direct.through(p)
	if *full {
		for n := 0; ; n++ {
			p.begin(func(i int, _ string) bool { return i == n })
			recovers(t, p, k, direct, fmt.Sprintf("%d", n))
			if p.which() == "" {
				t.Logf("%d answers were lost, one at a time", n)
				return
			}
		}
	}
	for _, what := range []string{"PUT lease acquire", "PUT", "PUT lease release"} {
		p.begin(func(_ int, called string) bool { return called == what })
		recovers(t, p, k, direct, strings.ReplaceAll(what, " ", "-"))
		if p.which() != what {
			t.Errorf("no answer to %q was lost", what)
		}
	}
}

// recovers applies while an answer may be lost, does what a person would do then, and
// goes on.
func recovers(t *testing.T, p *lossy, k, direct *stack, value string) {
	t.Helper()
	before := direct.serial()
	out, err := k.run(k.apply(value)...)
	p.end()
	errored := filepath.Join(k.dir, "errored.tfstate")
	_, kept := os.Stat(errored)
	if now := direct.serial(); now < before {
		t.Fatalf("%s: the state went back from %d to %d", value, before, now)
	}
	if err == nil && kept == nil {
		t.Errorf("%s: a run that was fine left an errored.tfstate", value)
	}
	// First what is kept, then the rest: the lock, if it is in the way, is unlocked by the
	// id that Terraform tells.
	if kept == nil {
		if said, err := k.run("state", "push", "errored.tfstate"); err != nil {
			direct.unlockIf(said, out)
			k.ok("state", "push", "errored.tfstate")
		}
		check(t, os.Remove(errored))
	}
	if said, err := direct.run(direct.apply(value)...); err != nil {
		direct.unlockIf(said, out)
		direct.ok(direct.apply(value)...)
	}
	k.ok(k.apply(value)...)
}

// unlockIf unlocks the state if Terraform says that it is locked.
func (k *stack) unlockIf(said, before string) {
	k.t.Helper()
	if !strings.Contains(said, "already locked") {
		return
	}
	id := lockID.FindStringSubmatch(said)
	if id == nil {
		k.t.Fatalf("an orphan that nobody can unlock:\n%s\n%s", before, said)
	}
	k.ok("force-unlock", "-force", id[1])
}

// The server is killed, and comes back, at each request of a run. The run goes on.
func TestAzurermServerKilled(t *testing.T) {
	if !*full {
		t.Skip("left to: make compat")
	}
	t.Parallel()
	terraform(t)
	s := startServer(t)
	s.leasehold(t, "azure", "container", "create", accountName, "tfstate")
	direct := s.newStack(t, byAddress, "killed.tfstate", one)
	direct.ok("init")
	direct.ok(direct.apply("first")...)
	p := startLossy(t, s)
	k := direct.through(p)
	p.down = func() {
		s.kill()
		s.start()
	}
	for n := 0; ; n++ {
		p.begin(func(i int, _ string) bool { return i == n })
		k.ok(k.apply(fmt.Sprint(n))...)
		if p.which() == "" {
			t.Logf("the server was killed %d times", n)
			return
		}
	}
}
