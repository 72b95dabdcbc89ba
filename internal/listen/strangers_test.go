package listen

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/leasehold/leasehold/internal/limit"
)

// Requests over HTTP/2 on a connection on which nothing was proven have few places, which they give back when they end
// or something is proven. Those on other connections have as many as before.
func TestStrangersShareRequests(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shared := &limit.Budget{Most: 20 * strangeCost, Alone: 10 * strangeCost}
	h := NewHost(Config{Strangers: shared, HTTP: []HTTP{{Routes: []Route{
		{Pattern: "/", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		})},
		{Pattern: "/login", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ProvenIn(r.Context())
			_, _ = io.Copy(io.Discard, r.Body)
		})},
	}}}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	client := func() func(path string) (status chan int, end func() error) {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(transport.CloseIdleConnections)
		return func(path string) (chan int, func() error) {
			body, rest := io.Pipe()
			r, _ := http.NewRequest("POST", "http://"+l.Addr().String()+path, body)
			status := make(chan int, 1)
			go func() {
				answer, err := transport.RoundTrip(r)
				if err != nil {
					t.Error(err)
					status <- 0
					return
				}
				_ = answer.Body.Close()
				status <- answer.StatusCode
			}()
			return status, rest.Close
		}
	}
	await := func(what string, n int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); shared.Now() != n*strangeCost; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d bytes are taken, want those of %d requests", what, shared.Now(), n)
			}
		}
	}
	stranger, known := client(), client()
	status, end := known("/login")
	_ = end()
	if got := <-status; got != 200 {
		t.Fatalf("it is answered %d", got)
	}
	await("after a login", 0)
	var halves []func() error
	var answers []chan int
	for n := range 11 { // the first is free
		status, end := stranger("/")
		halves, answers = append(halves, end), append(answers, status)
		await("half requests", n)
	}
	status, _ = stranger("/")
	if got := <-status; got != http.StatusTooManyRequests {
		t.Errorf("one more is answered %d", got)
	}
	for range 20 {
		status, end := known("/")
		halves, answers = append(halves, end), append(answers, status)
	}
	_ = halves[0]()
	await("one of them has ended", 9)
	status, end = stranger("/login")
	await("something was proven", 0)
	halves, answers = append(halves, end), append(answers, status)
	for _, end := range halves {
		_ = end()
	}
	for i, status := range answers {
		if got := <-status; got != 200 {
			t.Errorf("request %d is answered %d", i, got)
		}
	}
	await("at the end", 0)
}

// An answer that its client does not take has its place until then, and so has the word that there is none. Beyond so
// many of those, requests are reset.
func TestStrangersTakeTheirAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shared := &limit.Budget{Most: 20 * strangeCost, Alone: 10 * strangeCost}
	h := NewHost(Config{Strangers: shared,
		HTTP: []HTTP{{Routes: []Route{{Pattern: "/", Handler: http.NotFoundHandler()}}}}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ctx, l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		stop()
		<-ended
	})
	_, _ = io.WriteString(c, xhttp2.ClientPreface)
	framer := xhttp2.NewFramer(c, c)
	_ = framer.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 0})
	const requests = 30
	for i := range uint32(requests) {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		encoder.SetMaxDynamicTableSizeLimit(0)
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"},
			{Name: ":authority", Value: l.Addr().String()}, {Name: ":path", Value: "/"},
		} {
			_ = encoder.WriteField(f)
		}
		_ = framer.WriteHeaders(xhttp2.HeadersFrameParam{
			StreamID: 2*i + 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
	}
	resets, headers := 0, 0
	for _ = c.SetReadDeadline(time.Now().Add(10 * time.Second)); resets+headers < requests; {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("%d answers and %d resets came, then %v", headers, resets, err)
		}
		switch f.(type) {
		case *xhttp2.HeadersFrame:
			headers++
		case *xhttp2.RSTStreamFrame:
			resets++
		}
	}
	if want := 1 + 10 + 2; headers != want { // one is free, and of a quarter more half is for one client
		t.Errorf("%d are answered, want %d, and %d reset", headers, want, resets)
	}
	if n := shared.Now(); n != 12*strangeCost {
		t.Errorf("%d bytes are taken", n)
	}
}
