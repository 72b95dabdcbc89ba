package etcd

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A secured server has the door's own port, with TLS, and a client that speaks HTTP/2 there.
type secured struct {
	*testing.T
	engine  *memory.Engine
	address string
	client  *http.Client
	secure  *tls.Config // of clients
	stop    func()      // drains
	ended   chan error
}

func newSecured(t *testing.T) *secured {
	s := &secured{T: t, engine: memory.Start(engine.NewGoClock()), ended: make(chan error, 1)}
	t.Cleanup(func() { _ = s.engine.Close() })
	some := httptest.NewTLSServer(nil) // it has a certificate
	s.secure = some.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	own := &tls.Config{Certificates: some.TLS.Certificates}
	some.Close()
	b := door.NewBackend(s.engine, door.Options{})
	host := door.NewOwnHost(b, door.HostConfig{TLS: own, DrainTimeout: 5 * time.Second}, New(b, Config{}).Port(""))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.ended <- host.Serve(ctx, l) }()
	transport := &http.Transport{TLSClientConfig: s.secure, ForceAttemptHTTP2: true}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
	})
	return s
}

// ask makes a request over HTTP/2, and returns status and body of the answer.
func (s *secured) ask(method, path string, body io.Reader) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, "https://"+s.address+path, body)
	if err != nil {
		s.Fatal(err)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.Fatalf("%s: %v", path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.ProtoMajor != 2 {
		s.Errorf("%s: %s, %v", path, answer.Proto, err)
	}
	return answer.StatusCode, string(text)
}

// All that the door's own port answers over HTTP/1.1 it answers over HTTP/2, on the same connection as calls.
func TestGatewayOverHTTP2(t *testing.T) {
	s := newSecured(t)
	for path, want := range map[string]string{
		"/health": `{"health":"true","reason":""}`, "/version": `"etcdserver":"3.7.3"`, "/livez": "ok\n", "/readyz": "ok\n",
		"/readyz?verbose": "[+]linearizable_read ok\n",
	} {
		if code, text := s.ask("GET", path, nil); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	for _, c := range []struct{ path, body, want string }{
		{"/v3/kv/put", `{"key":"YQ==","value":"Yg=="}`, `"revision":"2"`},
		{"/v3/kv/range", `{"key":"YQ=="}`, `"value":"Yg=="`},
		{"/v3/lease/grant", `{"ID":"7","TTL":"60"}`, `"TTL":"60"`},
		{"/v3/lease/keepalive", `{"ID":"7"}`, `"TTL":"60"`},
	} {
		if code, text := s.ask("POST", c.path, strings.NewReader(c.body)); code != 200 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", c.path, code, text)
		}
	}
	if code, text := s.ask("POST", "/v3/kv/put", strings.NewReader(strings.Repeat(" ", maxJSON+1))); code != 400 ||
		!strings.Contains(text, "too large") {
		t.Errorf("an oversized body: %d %s", code, text)
	}
	if code, text := s.ask("GET", "/v3/kv/range", nil); code != http.StatusNotImplemented {
		t.Errorf("another method: %d %s", code, text)
	}
	if code, text := s.ask("GET", "/nothing", nil); code != http.StatusNotFound {
		t.Errorf("an unknown path: %d %s", code, text)
	}
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(credentials.NewTLS(s.secure)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer, err := pb.NewKVClient(conn).Range(t.Context(), &pb.RangeRequest{Key: []byte("a")})
	if err != nil || len(answer.Kvs) != 1 {
		t.Errorf("a call finds %v, %v", answer, err)
	}
}

// A stream of the gateway carries values both ways, and is told when the server stops; so is a request after that.
func TestGatewayStreamsOverHTTP2(t *testing.T) {
	s := newSecured(t)
	body, send := io.Pipe()
	defer send.Close()
	go fmt.Fprintln(send, `{"create_request":{"key":"YQ=="}}`)
	answer, err := s.client.Post("https://"+s.address+"/v3/watch", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i, want := range []string{`"created":true`, `"value":"Yg=="`, `"value":"Yw=="`} {
		if i > 0 {
			s.ask("POST", "/v3/kv/put", strings.NewReader([]string{"", `{"key":"YQ==","value":"Yg=="}`,
				`{"key":"YQ==","value":"Yw=="}`}[i]))
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("line %d is %q, %v", i, lines.Text(), lines.Err())
		}
	}
	s.stop()
	if !lines.Scan() || !strings.Contains(lines.Text(), `"error"`) {
		t.Errorf("it ends with %q, %v", lines.Text(), lines.Err())
	}
	if code, text := s.ask("GET", "/health", nil); code != http.StatusServiceUnavailable ||
		!strings.Contains(text, "stop") {
		t.Errorf("after that: %d %s", code, text)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// Where access is on, requests over HTTP/2 are judged by their token before their body is read.
func TestGatewayOverHTTP2IsJudged(t *testing.T) {
	s := newSecured(t)
	if _, err := s.engine.Do(t.Context(), &core.ChangeAccess{Put: onlyRoot}); err != nil {
		t.Fatal(err)
	}
	endless, _ := io.Pipe()
	defer endless.Close()
	if code, text := s.ask("POST", "/v3/kv/range", endless); code != http.StatusBadRequest ||
		!strings.Contains(text, "user name is empty") {
		t.Errorf("without a token: %d %s", code, text)
	}
	if code, text := s.ask("GET", "/version", nil); code != http.StatusOK {
		t.Errorf("what anybody may know: %d %s", code, text)
	}
}
