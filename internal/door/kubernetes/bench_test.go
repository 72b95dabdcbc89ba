package kubernetes

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

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

// An idle watch costs what net/http needs for a connection, two thirds of all, and a few kilobytes.
func TestIdleWatchesAreCheap(t *testing.T) {
	address, stop := serve(t)
	const n = 400
	open := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s?watch=true HTTP/1.1\r\nHost: %s\r\n\r\n", leases, address)
		if _, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil); err != nil {
			t.Fatal(err)
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
	if each > 40<<10 {
		t.Errorf("an idle watch costs %d bytes", each)
	}
}

// Watches that share connections, as those of one client do over HTTP/2, cost about as much, with their clients: what
// counts is the goroutine that net/http has for each, and its stack.
func TestIdleWatchesOnSharedConnections(t *testing.T) {
	address, stop := serve(t)
	const conns, each = 10, 100
	watching, leave := context.WithCancel(context.Background())
	var clients []*http.Transport
	open := func(n int) {
		client := &http.Transport{Protocols: new(http.Protocols)}
		client.Protocols.SetUnencryptedHTTP2(true)
		clients = append(clients, client)
		for range n {
			r, err := http.NewRequestWithContext(watching, "GET", "http://"+address+leases+"?watch=true", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.RoundTrip(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(each)
	before := inUse()
	for range conns {
		open(each)
	}
	cost := (inUse() - before) / (conns * each)
	t.Logf("an idle watch on a connection of %d costs %d bytes, with its client", each, cost)
	leave()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
	stop()
	if cost > 40<<10 {
		t.Errorf("an idle watch costs %d bytes", cost)
	}
}

// serve lets a server answer at a port of the machine, until it is told to stop.
func serve(t *testing.T) (address string, stop func()) {
	t.Helper()
	backend := door.NewBackend(newBench(t, Config{}).engine, door.Options{})
	host := door.NewHost(backend, door.HostConfig{}, New(backend, Config{}).Door())
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
	return int64(m.HeapInuse + m.StackInuse)
}
