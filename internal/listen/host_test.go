package listen

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shouting is a protocol whose lines begin with "!", and are answered in capitals. "!wait" is
// answered when the test says so.
type shouting struct{ begun, goOn chan struct{} }

func (s *shouting) protocol() *Protocol {
	return &Protocol{
		Name: "shouting", ALPN: "shout", Serve: s.serve,
		Matches: func(first []byte) bool { return first[0] == '!' },
		Refuse:  func(c net.Conn, err error) { fmt.Fprintln(c, "!NO:", err) },
	}
}

func (s *shouting) serve(ctx context.Context, c net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) })()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		Proven(c)
		if lines.Text() == "!panic" {
			panic("nobody foresaw this")
		}
		if lines.Text() == "!wait" {
			s.begun <- struct{}{}
			<-s.goOn
		}
		fmt.Fprintln(c, strings.ToUpper(lines.Text()))
	}
}

type house struct {
	t       *testing.T
	address string
	state   *State
	stop    func() error
	shout   *shouting
}

// build serves HTTP and shouting on a port.
func build(t *testing.T, c Config) *house {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, address: l.Addr().String(), state: NewState(), shout: &shouting{make(chan struct{}), make(chan struct{})}}
	c.State, c.Protocols = h.state, append([]*Protocol{h.shout.protocol()}, c.Protocols...)
	c.HTTP = []HTTP{{Routes: []Route{
		{Pattern: "/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s tls=%v", r.Proto, r.TLS != nil)
		})},
		{Pattern: "/livez", Early: true, Late: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "alive")
		})},
	}}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- NewHost(c).Serve(ctx, l) }()
	stopped := false
	h.stop = func() error {
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if !stopped {
			if err := h.stop(); err != nil {
				t.Error(err)
			}
		}
	})
	return h
}

// get asks by HTTP.
func (h *house) get(url string, protocols *http.Protocols, secure *tls.Config) string {
	h.t.Helper()
	transport := &http.Transport{Protocols: protocols, TLSClientConfig: secure}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// tell sends a line over a connection and returns the next one.
func tell(t *testing.T, c net.Conn, line string) string {
	t.Helper()
	if _, err := io.WriteString(c, line); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(c).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return strings.TrimSpace(said)
}

func (h *house) dial() net.Conn {
	h.t.Helper()
	c, err := net.Dial("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

func only(set func(*http.Protocols, bool)) *http.Protocols {
	p := new(http.Protocols)
	set(p, true)
	return p
}

var (
	http1    = only((*http.Protocols).SetHTTP1)
	http2    = only((*http.Protocols).SetHTTP2)
	plain2   = only((*http.Protocols).SetUnencryptedHTTP2)
	trusting = &tls.Config{InsecureSkipVerify: true}
)

// What a connection speaks is told by its first bytes.
func TestPlainPortTellsProtocols(t *testing.T) {
	h := build(t, Config{})
	h.state.Open()
	if got := h.get("http://"+h.address+"/", http1, nil); got != "200 HTTP/1.1 tls=false" {
		t.Errorf("HTTP/1.1: %s", got)
	}
	if got := h.get("http://"+h.address+"/", plain2, nil); got != "200 HTTP/2.0 tls=false" {
		t.Errorf("HTTP/2: %s", got)
	}
	c := h.dial()
	for range 2 {
		if got := tell(t, c, "!hello\n"); got != "!HELLO" {
			t.Errorf("shouting: %q", got)
		}
	}
	if got := tell(t, h.dial(), "?hello, hello, hello\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("unknown bytes: %q", got)
	}
}

// In TLS it is told by the handshake, and by the first bytes where that says nothing.
func TestSecurePortTellsProtocols(t *testing.T) {
	h := build(t, Config{TLS: selfSigned(t)})
	h.state.Open()
	if got := h.get("https://"+h.address+"/", http1, trusting.Clone()); got != "200 HTTP/1.1 tls=true" {
		t.Errorf("HTTP/1.1: %s", got)
	}
	if got := h.get("https://"+h.address+"/", http2, trusting.Clone()); got != "200 HTTP/2.0 tls=true" {
		t.Errorf("HTTP/2: %s", got)
	}
	for name, offered := range map[string][]string{"named": {"shout"}, "not named": nil} {
		c := tls.Client(h.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: offered})
		if got := tell(t, c, "!hello\n"); got != "!HELLO" {
			t.Errorf("shouting, %s: %q", name, got)
		}
	}
	c := tls.Client(h.dial(), trusting.Clone())
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if all, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(all), "HTTP/1.1 tls=true") {
		t.Errorf("HTTP that the handshake does not name: %s, %v", all, err)
	}
	if got := tell(t, h.dial(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); got != "HTTP/1.0 400 Bad Request" {
		t.Errorf("HTTP without TLS: %q", got)
	}
}

// A protocol that is known by one byte need not wait for those that take more.
func TestShortMessageBesideLongerProtocols(t *testing.T) {
	h := build(t, Config{HeaderTime: time.Hour, Protocols: []*Protocol{{
		Name: "long", First: 64, Matches: func([]byte) bool { return false },
	}}})
	h.state.Open()
	if got := tell(t, h.dial(), "!\n"); got != "!" {
		t.Errorf("shouting: %q", got)
	}
	if got := h.get("http://"+h.address+"/", http1, nil); got != "200 HTTP/1.1 tls=false" {
		t.Errorf("HTTP/1.1: %s", got)
	}
}

// A protocol that panics ends its connection and no other.
func TestPanicEndsOneConnection(t *testing.T) {
	var log strings.Builder
	h := build(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	h.state.Open()
	other := h.dial()
	if got := tell(t, other, "!hello\n"); got != "!HELLO" {
		t.Fatalf("shouting: %q", got)
	}
	if got := tell(t, h.dial(), "!panic\n"); got != "" {
		t.Errorf("the one that panicked: %q", got)
	}
	if got := tell(t, other, "!hello\n"); got != "!HELLO" {
		t.Errorf("another one: %q", got)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "nobody foresaw this") {
		t.Errorf("the log has %q", log.String())
	}
}

// A refusal arrives although the client sent more than was read of it.
func TestRefusalArrives(t *testing.T) {
	h := build(t, Config{})
	c := h.dial()
	if got := tell(t, c, "!"+strings.Repeat("x", 100_000)+"\n"); !strings.HasPrefix(got, "!NO: the server is starting") {
		t.Errorf("shouting: %q", got)
	}
}

// Each protocol says in its own words that the server is not there yet.
func TestStarting(t *testing.T) {
	h := build(t, Config{})
	if got := tell(t, h.dial(), "!hello\n"); !strings.HasPrefix(got, "!NO: the server is starting") {
		t.Errorf("shouting: %q", got)
	}
	if got := h.get("http://"+h.address+"/", nil, nil); !strings.HasPrefix(got, "503 the server is starting") {
		t.Errorf("HTTP: %s", got)
	}
	if got := h.get("http://"+h.address+"/livez", nil, nil); got != "200 alive" {
		t.Errorf("what needs no engine: %s", got)
	}
	h.state.Open()
	if got := tell(t, h.dial(), "!hello\n"); got != "!HELLO" {
		t.Errorf("shouting, afterwards: %q", got)
	}
}

// What a protocol has under way is finished when the server drains, and those who come
// meanwhile are sent away.
func TestDrainFinishesProtocols(t *testing.T) {
	h := build(t, Config{Linger: time.Minute})
	h.state.Open()
	c := h.dial()
	io.WriteString(c, "!wait\n")
	<-h.shout.begun
	ended := make(chan error, 1)
	go func() { ended <- h.stop() }()
	<-h.state.Stopping().Done()
	if got := tell(t, h.dial(), "!hello\n"); !strings.HasPrefix(got, "!NO: the server is stopping") {
		t.Errorf("a newcomer: %q", got)
	}
	close(h.shout.goOn)
	if got := tell(t, c, ""); got != "!WAIT" {
		t.Errorf("what was under way: %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the port ended with %v", err)
	}
}

// What a protocol does not finish is cut off in time.
func TestDrainGivesUpOnProtocols(t *testing.T) {
	h := build(t, Config{DrainTimeout: 50 * time.Millisecond})
	h.state.Open()
	c := h.dial()
	io.WriteString(c, "!wait\n")
	<-h.shout.begun
	if err := h.stop(); err == nil || !strings.Contains(err.Error(), "not finished within 50ms") {
		t.Errorf("the port ended with %v", err)
	}
	close(h.shout.goOn)
	if rest, _ := io.ReadAll(c); len(rest) != 0 {
		t.Errorf("it says %q after its end", rest)
	}
}

// Who says nothing is not waited for longer than for the headers of a request.
func TestSilentConnectionsEnd(t *testing.T) {
	h := build(t, Config{HeaderTime: 50 * time.Millisecond})
	h.state.Open()
	if rest, err := io.ReadAll(h.dial()); err != nil || len(rest) != 0 {
		t.Errorf("it gets %q, %v", rest, err)
	}
}

// One too many learns it in the words of its protocol.
func TestFullPort(t *testing.T) {
	h := build(t, Config{MaxConnections: 1})
	h.state.Open()
	first := h.dial()
	tell(t, first, "!hello\n")
	if got := tell(t, h.dial(), "!hello\n"); !strings.HasPrefix(got, "!NO: the server has as many connections as it can") {
		t.Errorf("shouting: %q", got)
	}
	if got := h.get("http://"+h.address+"/livez", nil, nil); !strings.HasPrefix(got, "503 the server has as many connections") {
		t.Errorf("HTTP: %s", got)
	}
}

// A door without words of its own has those of the port's first door that has some.
func TestFirstDoorRefuses(t *testing.T) {
	said := ""
	refuse := func(w http.ResponseWriter, _ *http.Request, err error) {
		said = err.Error()
		w.WriteHeader(http.StatusTeapot)
	}
	nothing := http.NotFoundHandler()
	h := NewHost(Config{State: NewState(), HTTP: []HTTP{
		{Routes: []Route{{Pattern: "/a", Handler: nothing}}},
		{Routes: []Route{{Pattern: "/b", Handler: nothing}}, Refuse: refuse},
	}})
	for _, path := range []string{"/a", "/b", "/a//b"} {
		w := &recorder{header: http.Header{}}
		r, _ := http.NewRequest("GET", path, nil)
		if h.ServeHTTP(w, r); w.status != http.StatusTeapot {
			t.Errorf("%s is answered with %d: %s", path, w.status, said)
		}
	}
	var e *leasehold.Error
	if !errors.As(errFull, &e) || e.Code != leasehold.Unavailable {
		t.Errorf("no room is %v", errFull)
	}
}

// selfSigned makes a certificate that nobody trusts.
func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
