package etcd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// client returns a client of the gateway, by HTTP/1.1.
func (w *world) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: w.pipe.Dial}}
}

// post asks the gateway, and returns the lines of its answer.
func post(c *http.Client, url, body string) ([]string, error) {
	answer, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

// Clients such as Patroni renew a lease by one request, and take all that is answered for one value: a second line would
// be an error to them. The answer is written while the end of the body may not have been read yet.
func TestGatewayKeepAliveAnswersOneLine(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	server := httptest.NewServer(routesOf(New(door.NewBackend(e, door.Options{}), Config{}).gatewayRoutes()))
	defer server.Close()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for n := range 500 {
				lines, err := post(server.Client(), server.URL+"/v3/lease/keepalive", `{"ID":"7"}`)
				if err != nil || len(lines) != 1 || !strings.Contains(lines[0], `"ID":"7"`) {
					t.Errorf("keep-alive %d is answered by %q, %v", n, lines, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func routesOf(routes []door.Route) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.Pattern, r.Handler)
	}
	return mux
}

// A client may send the next keep-alive after the answer to the last one, also over HTTP/1.1, and use the connection
// again after that.
func TestGatewayStreamsBothWays(t *testing.T) {
	inWorld(t, func(w *world) {
		client := w.client()
		defer client.CloseIdleConnections()
		lease := w.grant(60)
		body, send := io.Pipe()
		ask := func() { fmt.Fprintf(send, `{"ID":"%d"}`+"\n", lease) }
		go ask()
		answer, err := client.Post("http://server/v3/lease/keepalive", "application/json", body)
		w.must(err)
		lines := bufio.NewReader(answer.Body)
		for n := range 3 {
			if n > 0 {
				ask()
			}
			line, err := lines.ReadString('\n')
			w.must(err)
			if !strings.Contains(line, `"TTL":"60"`) {
				t.Errorf("keep-alive %d is answered by %s", n, line)
			}
		}
		w.must(send.Close())
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("after the last one comes %q, %v", rest, err)
		}
		w.must(answer.Body.Close())
	})
}

// A stream ends with the server, also one whose client may still send more.
func TestGatewayStreamEndsWithTheServer(t *testing.T) {
	inWorld(t, func(w *world) {
		client := w.client()
		defer client.CloseIdleConnections()
		body, send := io.Pipe()
		defer send.Close()
		go fmt.Fprintln(send, `{"create_request":{"key":"Yg=="}}`)
		answer, err := client.Post("http://server/v3/watch", "application/json", body)
		w.must(err)
		defer answer.Body.Close()
		lines := bufio.NewReader(answer.Body)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"created":true`) {
			t.Fatalf("the watch begins with %s, %v", line, err)
		}
		w.stop()
		if rest, err := io.ReadAll(lines); err != nil || !strings.Contains(string(rest), `"error"`) {
			t.Errorf("it ends with %q, %v", rest, err)
		}
	})
}

// A client that goes away in the middle of what it sends ends its stream.
func TestGatewayClientLeaves(t *testing.T) {
	inWorld(t, func(w *world) {
		client := w.client()
		defer client.CloseIdleConnections()
		body, send := io.Pipe()
		defer send.Close()
		go fmt.Fprintln(send, `{"create_request":{"key":"Yg=="}}`)
		ctx, leave := context.WithCancel(w.ctx)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server/v3/watch", body)
		w.must(err)
		answer, err := client.Do(r)
		w.must(err)
		defer answer.Body.Close()
		if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil {
			t.Fatalf("the watch begins with %s, %v", line, err)
		}
		if n := w.door.streams.Load(); n != 1 {
			t.Errorf("%d streams watch, want 1", n)
		}
		leave()
		w.settle()
		if n := w.door.streams.Load(); n != 0 {
			t.Errorf("%d streams watch after the client left", n)
		}
	})
}

// A client that leaves before there is anything to tell it ends its stream too, however it sent its request: here in
// chunks, of which the last one, which is empty, says that nothing follows.
func TestGatewayObserverLeaves(t *testing.T) {
	inWorldWith(t, door.Options{MaxStay: 1}, func(w *world) {
		client := w.client()
		defer client.CloseIdleConnections()
		ctx, leave := context.WithCancel(w.ctx)
		defer leave()
		body := struct{ io.Reader }{strings.NewReader(`{"name":"bm9ib2R5"}`)}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server/v3/election/observe", body)
		w.must(err)
		left := make(chan error, 1)
		go func() {
			_, err := client.Do(r)
			left <- err
		}()
		w.settle()
		leave()
		if err := <-left; err == nil {
			t.Error("an election that nobody leads is answered")
		}
		w.settle()
		w.follow(w.watch, &pb.WatchCreateRequest{Key: []byte("a")}) // in the place that the other one had
	})
}

// onlyRoot lets nobody in but one who has a token.
var onlyRoot = access.Items{Tokens: []*access.Token{{ID: "t", Hash: strings.Repeat("h", 32), Principal: "root"}},
	Bindings: []*access.Binding{{Name: "b", Role: "admin", Principal: "root", Namespace: access.AllNamespaces}}}

// Nobody holds memory for a body who has not said who it is: the call is refused before it is read.
func TestGatewayJudgesBeforeTheBody(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	if _, err := e.Do(t.Context(), &core.ChangeAccess{Put: onlyRoot}); err != nil {
		t.Fatal(err)
	}
	routes := routesOf(New(door.NewBackend(e, door.Options{}), Config{}).gatewayRoutes())
	for path, most := range map[string]int{
		"/v3/kv/range": 0, "/v3/kv/put": 0, "/v3/election/observe": 0, "/v3/auth/authenticate": maxAnonymous + 1,
	} {
		body := &counted{rest: 3 << 20}
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, httptest.NewRequest("POST", path, body))
		if w.Code < 400 || body.read > most {
			t.Errorf("%s: %d after %d bytes, want a refusal after %d", path, w.Code, body.read, most)
		}
	}
}

// A call of gRPC on the port that doors share is judged before its message is read, too.
func TestCallsAreJudgedBeforeTheMessage(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	if _, err := e.Do(t.Context(), &core.ChangeAccess{Put: onlyRoot}); err != nil {
		t.Fatal(err)
	}
	d := New(door.NewBackend(e, door.Options{}), Config{})
	d.Door()
	body := &counted{rest: 2 << 20}
	r := httptest.NewRequest("POST", "/etcdserverpb.KV/Txn", body)
	r.ProtoMajor, r.ProtoMinor = 2, 0
	r.Header.Set("Content-Type", "application/grpc")
	w := httptest.NewRecorder()
	overHTTP{d}.ServeHTTP(w, r)
	if code := w.Header().Get("Grpc-Status"); code == "" || code == "0" || body.read > 0 {
		t.Errorf("status %q after %d bytes", code, body.read)
	}
}

// counted is a body that counts what is read of it.
type counted struct{ rest, read int }

func (c *counted) Read(b []byte) (int, error) {
	n := min(len(b), c.rest)
	c.read, c.rest = c.read+n, c.rest-n
	if n == 0 {
		return 0, io.EOF
	}
	return copy(b, strings.Repeat("x", n)), nil
}
