package native

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/internal/listen"
)

// slow is an engine that takes its time.
type slow struct {
	stub
	begun chan struct{}
	go_   chan struct{}
}

func (s *slow) Do(ctx context.Context, _ core.Command) (core.Answer, error) {
	s.begun <- struct{}{}
	select {
	case <-s.go_:
		return core.Answer{}, nil
	case <-ctx.Done():
		return core.Answer{}, engine.Undecided("the caller went away")
	}
}

// Submit does commands one after the other.
func (s *slow) Submit(batch []engine.Submission) { engine.SubmitEach(s.Do, batch) }

func (s *slow) Read(ctx context.Context, _ func(core.View)) error {
	<-ctx.Done()
	return engine.Unavailable("the read took too long")
}

// raw opens a connection by hand.
func (h *house) raw(text string) net.Conn {
	h.t.Helper()
	conn, err := h.pipe.Dial(h.t.Context(), "", "")
	if err != nil {
		h.t.Fatal(err)
	}
	if text != "" {
		if _, err := io.WriteString(conn, text); err != nil {
			h.t.Fatal(err)
		}
	}
	return conn
}

// greeted opens a connection on which a request was answered.
func (h *house) greeted() net.Conn {
	h.t.Helper()
	conn := h.raw("GET /v1/tasks HTTP/1.1\r\nHost: x\r\n\r\n")
	answers(h.t, conn)
	return conn
}

// answers reads one answer by hand.
func answers(t testing.TB, conn net.Conn) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// A request that does not come is not waited for.
func TestSlowRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		began := time.Now()

		conn := h.raw("POST /v1/acquire HTTP/1.1\r\nHost: x\r\n")
		if _, err := io.ReadAll(conn); err != nil || time.Since(began) != headerTime {
			t.Errorf("half a header: after %v, %v", time.Since(began), err)
		}

		began = time.Now()
		conn = h.raw("POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"resource\"")
		response, body := answers(t, conn)
		if response.StatusCode != http.StatusRequestTimeout || !strings.Contains(body, "did not arrive within 20s") || time.Since(began) != readTime {
			t.Errorf("half a body: after %v, %v %s", time.Since(began), response, body)
		}
		conn.Close()

		conn = h.raw("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		answers(t, conn)
		began = time.Now()
		if _, err := io.ReadAll(conn); err != nil || time.Since(began) != idleTime {
			t.Errorf("no second request: after %v, %v", time.Since(began), err)
		}
	})
}

func TestLargeHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		conn, err := h.pipe.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\nX-Large: "+strings.Repeat("x", 32<<10)+"\r\n\r\n")
		if response, body := answers(t, conn); response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%v %s", response, body)
		}
		conn.Close()
	})
}

// One connection too many is told so at once, and there is room again afterwards.
func TestTooManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{MaxConnections: 2})
		defer h.close()
		one, two := h.greeted(), h.greeted()
		synctest.Wait()
		began := time.Now()
		three := h.raw("GET /livez HTTP/1.1\r\n")
		response, body := answers(t, three)
		if response.StatusCode != 503 || response.Header.Get("Retry-After") == "" || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), response)
		}
		var p v1.Problem
		if err := json.Unmarshal([]byte(body), &p); err != nil || p.Code != "unavailable" || p.Type != "urn:leasehold:problem:unavailable" {
			t.Errorf("the third is told %s", body)
		}
		one.Close()
		two.Close()
		three.Close()
		synctest.Wait()
		h.hold("r", "a")
	})
}

// Those who never take their refusal do not keep others from theirs.
func TestManyTooManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{MaxConnections: 1})
		defer h.close()
		one := h.greeted()
		synctest.Wait()
		silent := h.raw("")
		began := time.Now()
		if response, _ := answers(t, silent); response.StatusCode != 503 || time.Since(began) != turnAwayTime/2 {
			t.Errorf("who asks nothing: after %v, %v", time.Since(began), response)
		}
		deaf := []net.Conn{silent}
		for range maxTurnAway + 10 {
			deaf = append(deaf, h.raw(""))
		}
		last := h.raw("")
		if _, err := io.ReadAll(last); err != nil {
			t.Errorf("beyond all limits: %v", err)
		}
		time.Sleep(turnAwayTime)
		synctest.Wait()
		next := h.raw("GET /livez HTTP/1.1\r\n")
		if response, _ := answers(t, next); response.StatusCode != 503 {
			t.Errorf("a moment later: %v", response)
		}
		for _, conn := range append(deaf, one, last, next) {
			conn.Close()
		}
	})
}

// Whoever connects and says nothing, or does not finish, makes room for whoever does.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		gates := &listen.Gates{}
		h := build(t, Config{MaxConnections: 4, Gates: gates, Log: slog.New(slog.NewTextHandler(log, nil))})
		defer h.close()
		known := h.greeted()
		defer known.Close()
		var silent []net.Conn
		for range 10 {
			silent = append(silent, h.raw(""), h.raw("GET /livez HTTP/1.1\r\nHost: x\r\n")) // which does not end
			synctest.Wait()
		}
		for range 5 {
			conn := h.greeted()
			conn.Close()
			synctest.Wait()
		}
		if _, err := io.WriteString(known, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if response, _ := answers(t, known); response.StatusCode != 200 {
			t.Errorf("who had greeted is told %v", response)
		}
		if n := gates.Open(); n > 4 {
			t.Errorf("%d connections are open", n)
		}
		if n := strings.Count(log.String(), "as many connections as there can be"); n != 1 {
			t.Errorf("the log says it %d times:\n%s", n, log)
		}
		for _, conn := range silent {
			conn.Close()
		}
	})
}

// Whoever only asks what anybody may makes room, too; whoever asks for something real is kept.
func TestPingsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{MaxConnections: 3})
		defer h.close()
		ask := func(text, want string) net.Conn {
			conn := h.raw(text)
			answer := make([]byte, len(want))
			if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != want {
				t.Fatalf("%q, %v", answer, err)
			}
			return conn
		}
		defer ask("*2\r\n$7\r\nLH.TASK\r\n$4\r\nLIST\r\n*1\r\n$4\r\nPING\r\n", "*").Close()
		for range 3 {
			defer ask("*1\r\n$4\r\nPING\r\n", "+PONG\r\n").Close()
			defer ask("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n").Close()
			synctest.Wait()
		}
		defer h.greeted().Close()
		synctest.Wait()
		defer h.greeted().Close()
		synctest.Wait()
		full := h.raw("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		defer full.Close()
		if response, _ := answers(t, full); response.StatusCode != 503 {
			t.Errorf("there is room beside those who asked for something real: %v", response)
		}
	})
}

// Over a real network the refusal arrives although the request was sent first.
func TestTooManyConnectionsOverTCP(t *testing.T) {
	base, stop := openLoopback(t, newDoor(t, Config{MaxConnections: 1}))
	defer stop()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/tasks HTTP/1.1\r\nHost: x\r\n\r\n")
	answers(t, conn)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 50 {
		response, err := client.Post(base+"/v1/acquire", "application/json", strings.NewReader(`{"resource":"r","holder":"h"}`))
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != 503 {
			t.Errorf("%v", response)
		}
		response.Body.Close()
	}
}

// What is under way when the server stops is finished.
func TestDrainFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &slow{begun: make(chan struct{}), go_: make(chan struct{})}
		pipe := doortest.NewPipe()
		door := open(e, Config{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- door.Serve(ctx, pipe) }()
		transport := &http.Transport{DialContext: pipe.Dial}
		defer transport.CloseIdleConnections()
		caller, _ := v1.NewCaller(v1.CallerConfig{Server: "http://pipe", Client: &http.Client{Transport: transport}})
		done := make(chan error, 1)
		go func() { done <- caller.Release(t.Context(), v1.ReleaseRequest{ID: "a"}) }()
		<-e.begun
		stop()
		time.Sleep(5 * time.Second)
		select {
		case <-ended:
			t.Fatal("the server ended with a request under way")
		default:
		}
		close(e.go_)
		if err := <-done; err != nil {
			t.Errorf("the request under way: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the server: %v", err)
		}
	})
}

// A request that never ends does not keep the server from ending.
func TestDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &slow{begun: make(chan struct{}), go_: make(chan struct{})}
		pipe := doortest.NewPipe()
		door := open(e, Config{DrainTimeout: 3 * time.Second})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- door.Serve(ctx, pipe) }()
		transport := &http.Transport{DialContext: pipe.Dial}
		caller, _ := v1.NewCaller(v1.CallerConfig{Server: "http://pipe", Client: &http.Client{Transport: transport}})
		done := make(chan error, 1)
		go func() { done <- caller.Release(t.Context(), v1.ReleaseRequest{ID: "a"}) }()
		<-e.begun
		stop()
		began := time.Now()
		if err := <-ended; err == nil || time.Since(began) != 3*time.Second {
			t.Errorf("after %v the server ended with %v", time.Since(began), err)
		}
		if err := <-done; !errors.Is(err, leasehold.ErrUndecided) {
			t.Errorf("the request under way: %v", err)
		}
	})
}

// An engine that hangs makes a server unready within five seconds, and does not make
// the question hang.
func TestReadyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := open(&slow{}, Config{})
		began := time.Now()
		ask(t, door, "GET", "/readyz", "").expect(503, "[-]engine failed: nothing could be read within 5s: ")
		ask(t, door, "GET", "/metrics", "").expect(200).without("leasehold_leases")
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A listener that fails ends the server.
func TestServeWithoutListener(t *testing.T) {
	pipe := doortest.NewPipe()
	pipe.Close()
	if err := newDoor(t, Config{}).Serve(t.Context(), pipe); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server ended with %v", err)
	}
}

// A door without an engine says so at once, and lets in whoever comes afterwards.
func TestStartingDoor(t *testing.T) {
	var log bytes.Buffer
	door := open(nil, Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	ask(t, door, "GET", "/livez", "").expect(200)
	ask(t, door, "GET", "/version", "").expect(200)
	ask(t, door, "GET", "/metrics", "").expect(200)
	ask(t, door, "GET", "/readyz", "").expect(503, "[-]engine failed: the server is starting")
	for _, path := range []string{"/v1/resources", "/v1/audit", "/v1/watch", "/v1/cluster", "/v1/cluster/backup"} {
		a := ask(t, door, "GET", path, "").expect(503, "the server is starting", `"code":"unavailable"`)
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s: nobody says when to try again", path)
		}
	}
	ask(t, door, "GET", "/v1/resources?namespace=ns7", "").expect(503)
	if !strings.Contains(log.String(), "namespace=ns7") || strings.Contains(log.String(), "took=0s") {
		t.Errorf("the log does not say of which namespace a refused request was, or how long it took:\n%s", log.String())
	}
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	door.backend.Open(e)
	ask(t, door, "GET", "/readyz", "").expect(200)
	ask(t, door, "GET", "/v1/resources", "").expect(200)
}

// The paths of another door never say that there is nothing, only because it is not there
// yet; and no page of another site can ask it.
func TestOtherDoorOnThePort(t *testing.T) {
	other := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "other "+r.Method) })
	door := open(nil, Config{}, door.Door{HTTP: door.HTTP{Routes: []door.Route{{Pattern: "/other/", Handler: other}}}})
	send := func(method string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/other/x", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w
	}
	if w := send("GET"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("before there is an engine it says %d, %v", w.Code, w.Header())
	}
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	door.backend.Open(e)
	if w := send("LOCK"); w.Code != 200 || w.Body.String() != "other LOCK" {
		t.Errorf("afterwards it says %d, %s", w.Code, w.Body)
	}
	if w := send("POST", "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
		t.Errorf("a page of another site is answered with %d", w.Code)
	}
}
