package console

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/door/terraform"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/web"
)

// built is a console that is small enough to be read here.
var built = fstest.MapFS{
	"index.html":       {Data: []byte("<!doctype html><title>Leasehold</title>")},
	"assets/app-1a.js": {Data: []byte(strings.Repeat("console.log(1);\n", 100))},
	"favicon.svg":      {Data: []byte("<svg/>")},
}

// A server is a port with all doors that share one.
type server struct {
	*httptest.Server
	t       testing.TB
	engine  engine.Engine
	backend *door.Backend
}

func start(t testing.TB, options door.Options) *server {
	t.Helper()
	e := memory.Start(engine.NewGoClock())
	options.Version = v1.Version{Version: "1.2.3"}
	s := &server{t: t, engine: e, backend: door.NewBackend(e, options)}
	d, err := New(s.backend, built, clients)
	if err != nil {
		t.Fatal(err)
	}
	doors := []door.Door{native.New(s.backend).Door(), terraform.New(s.backend, terraform.Config{}).Door(), d.Door()}
	s.Server = httptest.NewServer(door.NewHost(s.backend, door.HostConfig{}, doors...))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		e.Close()
	})
	return s
}

// A got is an answer that was read.
type got struct {
	*http.Response
	body string
}

// ask sends a request. Headers are pairs of name and value.
func (s *server) ask(method, path, body string, headers ...string) got {
	s.t.Helper()
	r, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return got{answer, string(text)}
}

func (s *server) expect(g got, status int, texts ...string) got {
	s.t.Helper()
	if g.StatusCode != status {
		s.t.Fatalf("the answer is %s, want %d: %s", g.Status, status, g.body)
	}
	for _, text := range texts {
		if !strings.Contains(g.body, text) {
			s.t.Errorf("the answer has no %q: %s", text, g.body)
		}
	}
	return g
}

const browser = "text/html,application/xhtml+xml,*/*;q=0.8"

func TestPages(t *testing.T) {
	s := start(t, door.Options{})
	for _, path := range append([]string{"/", "/?ns=prod&q=holder:ci/*", "/timeline?from=1"}, pages...) {
		g := s.expect(s.ask("GET", path, "", "Accept", browser), 200, "<title>Leasehold</title>")
		for name, want := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Content-Security-Policy": policy,
			"Cross-Origin-Opener-Policy": "same-origin", "Access-Control-Allow-Origin": "",
		} {
			if got := g.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		head := s.expect(s.ask("HEAD", path, "", "Accept", browser), 200)
		if head.body != "" || head.ContentLength != int64(len(g.body)) {
			t.Errorf("%s: HEAD has %d bytes: %q", path, head.ContentLength, head.body)
		}
		s.expect(s.ask("GET", path, "", "Accept", browser, "If-None-Match", g.Header.Get("ETag")), 304)
	}
	for _, loose := range []string{"unsafe-inline", "unsafe-eval", "http:", "https:", "*"} {
		if strings.Contains(policy, loose) {
			t.Errorf("the policy has %s", loose)
		}
	}
}

func TestAssets(t *testing.T) {
	s := start(t, door.Options{})
	const path = "/assets/app-1a.js"
	g := s.expect(s.ask("GET", path, ""), 200, "console.log")
	if got := g.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("it may be kept: %s", got)
	}
	if got := g.Header.Get("Content-Type"); got != "text/javascript; charset=utf-8" {
		t.Errorf("the type is %s", got)
	}
	short := s.expect(s.ask("GET", path, "", "Accept-Encoding", "br;q=1, gzip;q=0.8"), 200)
	if short.Header.Get("Content-Encoding") != "gzip" || short.Header.Get("ETag") == g.Header.Get("ETag") {
		t.Errorf("compressed, the headers are %v", short.Header)
	}
	r, err := gzip.NewReader(strings.NewReader(short.body))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != g.body {
		t.Errorf("compressed, it is %q, %v", text, err)
	}
	for _, refuses := range []string{"gzip;q=0", "gzip;q=0.0", "br", ""} {
		if e := s.ask("GET", path, "", "Accept-Encoding", refuses).Header.Get("Content-Encoding"); e != "" {
			t.Errorf("%q is answered in %s", refuses, e)
		}
	}
	s.expect(s.ask("GET", path, "", "Range", "bytes=0-6"), 206, "console")
	s.expect(s.ask("GET", path, "", "Range", "bytes=99999-"), 416)
	icon := s.expect(s.ask("GET", "/favicon.svg", "", "Accept-Encoding", "gzip"), 200, "<svg/>")
	if icon.Header.Get("Cache-Control") != "no-cache" || icon.Header.Get("Content-Encoding") != "" {
		t.Errorf("the icon has %v", icon.Header)
	}
}

// What the console does not have, it leaves to others.
func TestOtherPathsAreNotTheConsoles(t *testing.T) {
	s := start(t, door.Options{})
	for _, path := range []string{"/nothing", "/assets/", "/assets/none.js", "/timeline/", "/index.html", "/v1/nothing",
		"/v1", "/console", "/leases"} {
		g := s.expect(s.ask("GET", path, "", "Accept", browser), 404)
		if kind := g.Header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("%s is answered with %s", path, kind)
		}
	}
	s.expect(s.ask("GET", "/v1/resources", "", "Accept", browser), 200, `"items"`)
	s.expect(s.ask("GET", "/readyz", "", "Accept", browser), 200, "ok")
	s.expect(s.ask("GET", "/terraform/none", "", "Accept", browser), 204)
	for _, path := range append([]string{"/", "/favicon.svg"}, pages...) {
		g := s.expect(s.ask("POST", path, "x=1"), 405, `"code":"invalid"`)
		if g.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s allows %q", path, g.Header.Get("Allow"))
		}
	}
	s.expect(s.ask("GET", "/assets/../v1/resources", "", "Accept", browser), 400)
}

// Who asks without a browser gets a text, as before there was a console.
func TestGreeting(t *testing.T) {
	s := start(t, door.Options{})
	for _, accept := range []string{"*/*", ""} {
		g := s.expect(s.ask("GET", "/", "", "Accept", accept), 200, "This is Leasehold 1.2.3", "leasehold acquire",
			"curl "+s.URL+"/v1/acquire")
		if g.Header.Get("Vary") != "Accept" || g.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("the headers are %v", g.Header)
		}
	}
	off := httptest.NewRecorder()
	opened, err := Kind.Open(s.backend, door.Settings{"console": "false"})
	if err != nil {
		t.Fatal(err)
	}
	host := door.NewHost(s.backend, door.HostConfig{}, native.New(s.backend).Door(), opened)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", browser)
	host.ServeHTTP(off, r)
	if !strings.Contains(off.Body.String(), "This is Leasehold") {
		t.Errorf("turned off, it answers %s", off.Body)
	}
	off = httptest.NewRecorder()
	host.ServeHTTP(off, httptest.NewRequest("GET", "/timeline", nil))
	if off.Code != 404 {
		t.Errorf("turned off, the timeline is answered with %d", off.Code)
	}
}

// A browser gets the page while the server starts; the page then says so.
func TestPagesWhileStarting(t *testing.T) {
	b := door.NewStarting(door.Options{})
	d, err := New(b, built, nil)
	if err != nil {
		t.Fatal(err)
	}
	host := door.NewHost(b, door.HostConfig{}, native.New(b).Door(), d.Door())
	for path, want := range map[string]int{"/timeline": 200, "/assets/app-1a.js": 200, "/v1/resources": 503} {
		w := httptest.NewRecorder()
		host.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s is answered with %d, want %d", path, w.Code, want)
		}
	}
}

// What was built can be served, and is in nobody's way.
func TestWhatWasBuilt(t *testing.T) {
	b := door.NewStarting(door.Options{})
	d, err := New(b, web.Files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	door.NewHost(b, door.HostConfig{}, native.New(b).Door(), terraform.New(b, terraform.Config{}).Door(), d.Door())
	total := 0
	for name, f := range d.files {
		if strings.HasPrefix(name, "v1/") || strings.HasPrefix(name, "terraform") || strings.HasPrefix(name, "console/") {
			t.Errorf("%s is at the path of another door", name)
		}
		size := len(f.plain)
		if short := f.zipped(); short != nil {
			size = len(short)
		}
		total += size
	}
	if total > 150_000 {
		t.Errorf("a browser has to fetch %d bytes, and should at most 150,000", total)
	}
	if _, err := New(b, fstest.MapFS{}, nil); err == nil {
		t.Error("a console without a page is served")
	}
	if _, err := New(b, fstest.MapFS{"index.html": {}, "x.exe": {}}, nil); err == nil {
		t.Error("a file of an unknown type is served")
	}
}
