package grpcconn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

const (
	testRead  = 5 * time.Second
	testWrite = 10 * time.Second
)

// plain answers requests that are not gRPC.
func (e *echo) plain(s *Stream, w http.ResponseWriter, r *http.Request) {
	if FromContext(r.Context()) != nil {
		panic("it looks like a call")
	}
	control := http.NewResponseController(w)
	switch r.URL.Path {
	case "/what":
		w.Header().Set("Connection", "close")
		w.Header().Set("A", r.Header.Get("A"))
		fmt.Fprintf(w, "%s %s %s %s %d", r.Method, r.Host, r.RequestURI, r.Proto, r.ContentLength)
	case "/body":
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, testMost))
		e.mu.Lock()
		e.bodies = append(e.bodies, err)
		e.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(body)
	case "/large":
		n, _ := strconv.Atoi(r.URL.RawQuery)
		_, err := w.Write(make([]byte, n))
		e.mu.Lock()
		e.bodies = append(e.bodies, err)
		e.mu.Unlock()
	case "/lines":
		_, _ = control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			fmt.Fprintln(w, lines.Text())
			_ = control.Flush()
		}
	case "/wait":
		<-r.Context().Done()
		e.mu.Lock()
		e.ended++
		e.mu.Unlock()
	case "/slow":
		time.Sleep(2 * testWrite)
		_ = control.SetWriteDeadline(time.Now().Add(testWrite))
		_, _ = io.WriteString(w, "late")
	case "/abort":
		_, _ = io.WriteString(w, "half")
		_ = control.Flush()
		panic(http.ErrAbortHandler)
	case "/head":
		w.Header().Set("X", strings.Repeat("x", 20<<10))
		w.WriteHeader(http.StatusOK)
	case "/proven":
		s.Proven()
	default:
		http.NotFound(w, r)
	}
}

// browser returns a client of net/http that speaks HTTP/2 alone.
func (s *site) browser() *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.connect(), nil }}
	transport.Protocols.SetUnencryptedHTTP2(true)
	s.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask makes a request, and returns the answer in a few words.
func (s *site) ask(c *http.Client, method, path string, body io.Reader) (string, http.Header) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, "http://server"+path, body)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("A", "b")
	answer, err := c.Do(r)
	if err != nil {
		return "failed: " + err.Error(), nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Sprintf("%d, %d bytes, then %v", answer.StatusCode, len(text), err), answer.Header
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, text), answer.Header
}

// A request that is not gRPC is answered as net/http would.
func TestPlainRequests(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.browser()
		defer c.CloseIdleConnections()
		for _, test := range []struct{ method, path, body, want string }{
			{"GET", "/what?x=1", "", "200 GET server /what?x=1 HTTP/2.0 0"},
			{"PUT", "/what", "abc", "200 PUT server /what HTTP/2.0 3"},
			{"HEAD", "/what", "", "200 "},
			{"POST", "/body", "", "200 "},
			{"POST", "/body", "abc", "200 abc"},
			{"POST", "/slow", "", "200 late"},
			{"GET", "/nothing", "", "404 404 page not found\n"},
			{"GET", "/head", "", "500 "},
		} {
			got, header := s.ask(c, test.method, test.path, strings.NewReader(test.body))
			if got != test.want || header.Get("Date") == "" && !strings.HasPrefix(test.want, "500") {
				t.Errorf("%s %s is answered %q with %v, want %q", test.method, test.path, got, header, test.want)
			}
			if test.path == "/what" && (header.Get("A") != "b" || header.Get("Connection") != "") {
				t.Errorf("%s has the header %v", test.path, header)
			}
		}
		large := strings.Repeat("x", testMost)
		if got, _ := s.ask(c, "POST", "/body", strings.NewReader(large)); got != "200 "+large {
			t.Errorf("a large body is answered by %d bytes", len(got))
		}
		parts := io.MultiReader(strings.NewReader("a"), strings.NewReader("b"))
		if got, _ := s.ask(c, "POST", "/body", parts); got != "200 ab" {
			t.Errorf("a body of unknown length is answered %q", got)
		}
		if got, _ := s.ask(c, "GET", "/abort", nil); !strings.HasPrefix(got, "200, 4 bytes, then ") {
			t.Errorf("an answer that was given up: %q", got)
		}
		if got, _ := s.ask(c, "GET", "/what?"+strings.Repeat("x", plainHeader), nil); !strings.HasPrefix(got, "431 ") {
			t.Errorf("a header too large: %q", got)
		}
	})
}

// Requests and calls share a connection.
func TestPlainRequestsBesideCalls(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings()
		c.send(message(0)...)
		c.call(3, true, ":method", "GET", ":scheme", "http", ":path", "/what", "grpc-timeout", "soon")
		c.call(5, true, ":method", "GET", ":scheme", "http", ":path", "what")
		c.call(7, true, ":method", "POST", ":scheme", "http", ":path", "/what", "content-type", "application/grpc+json")
		if got := c.came(); strings.Count(got, "HEADERS") != 5 || strings.Count(got, "DATA") != 5 {
			t.Errorf("the answers are %q", got)
		}
		_ = c.Close()
		synctest.Wait()
		if n := s.server.Strangers.Now(); n != 0 {
			t.Errorf("%d bytes stay counted", n)
		}
	})
}

// A body may have so many bytes, and so much time.
func TestPlainBodies(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.browser()
		defer c.CloseIdleConnections()
		got, _ := s.ask(c, "POST", "/body", io.LimitReader(zeros{}, testMost+1))
		if !strings.Contains(got, "400 http: request body too large") {
			t.Errorf("an oversized body: %q", got)
		}
		began := time.Now()
		endless, _ := io.Pipe()
		defer endless.Close()
		if got, _ = s.ask(c, "POST", "/body", endless); !strings.Contains(got, "400 i/o timeout") {
			t.Errorf("a body that never ends: %q", got)
		}
		if took := time.Since(began); took != testRead {
			t.Errorf("it took %v", took)
		}
		if got, _ := s.ask(c, "GET", "/what", nil); !strings.HasPrefix(got, "200 ") {
			t.Errorf("after that: %q", got)
		}
		for what, length := range map[string]string{"more": "1", "less": "100"} {
			raw := s.raw(true)
			_ = raw.WriteSettings()
			raw.call(1, false, ":method", "POST", ":scheme", "http", ":path", "/body", "content-length", length)
			_ = raw.WriteData(1, true, []byte("abc"))
			raw.came()
			if err := s.echo.bodies[len(s.echo.bodies)-1]; err == nil || !strings.Contains(err.Error(), "length") {
				t.Errorf("a body that has %s than it says: %v", what, err)
			}
			_ = raw.Close()
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// A client that waits for a word before it sends a body gets one, when somebody reads it.
func TestPlainBodiesThatWait(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings()
		c.call(1, false, ":method", "POST", ":scheme", "http", ":path", "/body", "expect", "100-continue")
		if got := c.came(); got != "HEADERS" {
			t.Errorf("it is told %q", got)
		}
		_ = c.WriteData(1, true, []byte("abc"))
		if got := c.came(); got != "HEADERS,DATA,DATA" {
			t.Errorf("it is answered %q", got)
		}
		_ = c.Close()
	})
}

// What is written is sent when it is flushed, and the client may answer that.
func TestPlainStreams(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.browser()
		defer c.CloseIdleConnections()
		body, send := io.Pipe()
		go fmt.Fprintln(send, "first")
		answer, err := c.Post("http://server/lines", "", body)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(answer.Body)
		for _, want := range []string{"first", "second", "third"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("the line is %q, %v", lines.Text(), lines.Err())
			}
			time.Sleep(2 * testWrite)
			go fmt.Fprintln(send, map[string]string{"first": "second", "second": "third"}[want])
		}
		_ = send.Close()
		_ = answer.Body.Close()
	})
}

// A client that reads nothing is not waited for longer than so, whether it is the stream that has no room or the
// connection.
func TestPlainReadersThatAreSlow(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings(window(10))
		began := time.Now()
		c.call(1, true, ":method", "GET", ":scheme", "http", ":path", "/large?1000000")
		c.call(3, true, ":method", "GET", ":scheme", "http", ":path", "/large?100")
		if got := c.came(); got != "HEADERS,DATA,HEADERS,DATA" {
			t.Errorf("at first it got %q", got)
		}
		time.Sleep(testWrite)
		if got := c.came(); got != "RST_STREAM INTERNAL_ERROR,RST_STREAM INTERNAL_ERROR" {
			t.Errorf("after %v it got %q", time.Since(began), got)
		}
		if err := s.echo.bodies[len(s.echo.bodies)-1]; err == nil {
			t.Error("the handler does not know")
		}
		c.call(5, true, ":method", "GET", ":scheme", "http", ":path", "/proven")
		if got := c.came(); got != "HEADERS" {
			t.Errorf("after that it got %q", got)
		}
		_ = c.Close()
		deaf := s.raw(false)
		_ = deaf.WriteSettings(window(1 << 20))
		_ = deaf.WriteWindowUpdate(0, 1<<20)
		deaf.call(1, true, ":method", "GET", ":scheme", "http", ":path", "/large?1000000")
		time.Sleep(2 * testSlow)
		_ = deaf.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := deaf.Write(make([]byte, 9)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection is there: %v", err)
		}
		_ = deaf.Close()
	})
}

// A request ends when its client gives it up, or leaves.
func TestPlainRequestsEnd(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings()
		wait := []string{":method", "POST", ":scheme", "http", ":path", "/wait"}
		c.call(1, true, wait...)
		c.call(3, false, wait...)
		_ = c.WriteRSTStream(1, http2.ErrCodeCancel)
		c.came()
		if s.echo.ended != 1 {
			t.Errorf("%d requests ended, want 1", s.echo.ended)
		}
		_ = c.Close()
		synctest.Wait()
		if s.echo.ended != 2 {
			t.Errorf("%d requests ended, want 2", s.echo.ended)
		}
	})
}

// A server that stops finishes requests that are under way.
func TestPlainDrain(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.browser()
		body, send := io.Pipe()
		done := make(chan string)
		go func() {
			got, _ := s.ask(c, "POST", "/body", body)
			done <- got
		}()
		_, _ = io.WriteString(send, "abc")
		s.stop()
		time.Sleep(2 * testDrain)
		_, _ = io.WriteString(send, "def")
		_ = send.Close()
		if got := <-done; got != "200 abcdef" {
			t.Errorf("it is answered %q", got)
		}
		s.served.Wait()
	})
}

// What requests hold counts among what the connection, and all together, may hold.
func TestPlainRequestsAreCounted(t *testing.T) {
	inBubble(t, func(s *site) {
		s.server.MaxStreams = 8192
		c := s.raw(true)
		_ = c.WriteSettings()
		const calls = 4500 // a place each, and a little
		for id := uint32(1); id < 2*calls; id += 2 {
			c.call(id, false, ":method", "POST", ":scheme", "http", ":path", "/wait")
		}
		most := s.server.Strangers.Most / (streamCost + plainCost)
		if n := strings.Count(c.came(), "HEADERS"); n < calls-most || n > calls/4 {
			t.Errorf("of %d requests, %d were refused", calls, n)
		}
		_ = c.Close()
		synctest.Wait()
		if n := s.server.Strangers.Now(); n != 0 {
			t.Errorf("%d bytes stay counted", n)
		}
		s.exhaust() // by others
		c = s.raw(true)
		_ = c.WriteSettings()
		c.call(1, false, ":method", "POST", ":scheme", "http", ":path", "/body")
		for range 2 {
			_ = c.WriteData(1, false, bytes.Repeat([]byte("x"), 16<<10))
		}
		if got := c.came(); got == "" {
			t.Error("a body for which there is no room is waited for")
		} else if err := s.echo.bodies[0]; err == nil || !strings.HasPrefix(err.Error(), "more than ") {
			t.Errorf("a body for which there is no room: %v", err)
		}
		_ = c.Close()
	})
}

// A call of gRPC costs no more because requests are answered, too.
func TestCallsAllocateNoMore(t *testing.T) {
	s, r := &Stream{}, request{path: "/x/y", method: "POST", scheme: "http", contentType: "application/grpc"}
	if n := testing.AllocsPerRun(100, func() { s.beginPlain(&r) }); n > 0 || s.plain != nil {
		t.Errorf("%v allocations", n)
	}
}
