package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// A heartbeat of a kubelet: the whole object in protobuf, and the same back.
func BenchmarkHeartbeat(b *testing.B) {
	for _, form := range []struct{ name, contentType string }{{"protobuf", object.Protobuf}, {"json", jsonType}} {
		b.Run(form.name, func(b *testing.B) {
			w := newBench(b, Config{})
			l := w.ask("POST", leases, `{"metadata":{"name":"node-1","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"node-1","uid":"u"}]},`+
				`"spec":{"holderIdentity":"node-1","leaseDurationSeconds":40,"renewTime":"2026-01-02T03:04:05.678901Z"}}`).expect(201).lease()
			b.ReportAllocs()
			for b.Loop() {
				l.Spec.RenewTime.Time = l.Spec.RenewTime.Add(1000)
				body, _ := l.JSON()
				if form.contentType == object.Protobuf {
					body = object.Envelope(object.APIVersion, object.Kind, l.Marshal())
				}
				r := httptest.NewRequest("PUT", leases+"/node-1", strings.NewReader(string(body)))
				r.Header["Content-Type"], r.Header["Accept"] = []string{form.contentType}, []string{form.contentType}
				answer := httptest.NewRecorder()
				w.door.ServeHTTP(answer, r)
				if answer.Code != http.StatusOK {
					b.Fatal(answer.Body)
				}
				if form.contentType == object.Protobuf {
					_, _, message, _ := object.Open(answer.Body.Bytes())
					_ = l.Unmarshal(message)
				} else {
					l = told{b, 200, nil, answer.Body.String()}.lease()
				}
			}
		})
	}
}

// mostIdle is what an idle watch may cost the server, in bytes: ten thousand of them less than 100 MB.
const mostIdle = 10_000

// Idle watches, each with a connection of its own, also where the credential of each has to be watched.
func TestIdleWatchesAreCheap(t *testing.T) {
	t.Run("access off", func(t *testing.T) { idle(t, newBench(t, Config{}), "") })
	t.Run("access on", func(t *testing.T) {
		w := newBench(t, Config{})
		root, _ := w.govern()
		idle(t, w, "Authorization: "+root+"\r\n")
	})
}

func idle(t *testing.T, w *bench, header string) {
	t.Helper()
	address, stop := serve(t, w, nil)
	const n = 1000
	open := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s?watch=true&allowWatchBookmarks=true HTTP/1.1\r\nHost: %s\r\nUser-Agent: kubectl/1.36\r\n%s\r\n", leases, address, header)
		if r, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil); err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(r, err)
		}
		return c
	}
	conns := []net.Conn{open()}
	before := inUse()
	for range n {
		conns = append(conns, open())
	}
	each := (inUse() - before) / n
	t.Logf("an idle watch costs %d bytes", each)
	for _, c := range conns {
		c.Close()
	}
	stop()
	if each > mostIdle {
		t.Errorf("an idle watch costs %d bytes, which is more than %d", each, mostIdle)
	}
}

// Watches that share connections with TLS, as those of one client do over HTTP/2: a hundred on each.
// net/http keeps a goroutine with a stack of 4 KiB and a buffer of 4 KiB for each.
func TestIdleWatchesOnSharedConnections(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	certified.Close()
	address, stop := serve(t, newBench(t, Config{}), &tls.Config{Certificates: certified.TLS.Certificates})
	const conns, each = 40, 100
	var all []net.Conn
	open := func() { all = append(all, watchMany(t, address, each)) }
	open()
	before := inUse()
	for range conns - 1 {
		open()
	}
	cost := (inUse() - before) / ((conns - 1) * each)
	t.Logf("each of %d idle watches on %d connections costs %d bytes", conns*each, conns, cost)
	for _, c := range all {
		c.Close()
	}
	stop()
	if cost > 24<<10 { // with the race detector, it is 20
		t.Errorf("an idle watch costs %d bytes", cost)
	}
}

// watchMany opens watches on one connection, by hand: the library of Go has a goroutine for each in the client, too.
func watchMany(t *testing.T, address string, n int) net.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	encoder, frames := hpack.NewEncoder(&head), http2.NewFramer(c, c)
	if err := frames.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		head.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", address},
			{":path", leases + "?watch=true"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		err := frames.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: head.Bytes(),
			EndStream: true, EndHeaders: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	for answered := 0; answered < n; {
		frame, err := frames.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := frame.(*http2.HeadersFrame); ok {
			answered++
		}
	}
	return c
}

// serve lets a server answer at a port of the machine, until it is told to stop.
func serve(t *testing.T, w *bench, secure *tls.Config) (address string, stop func()) {
	t.Helper()
	backend := door.NewBackend(w.engine, door.Options{})
	host := door.NewHost(backend, door.HostConfig{TLS: secure}, New(backend, Config{}).Door())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Serve(ctx, l) }()
	return l.Addr().String(), func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func inUse() int64 {
	for range 6 { // each shrinks stacks by half at most
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
