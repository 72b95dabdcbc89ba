package consul

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/leasehold/leasehold/internal/door"
)

// BenchmarkLock takes a lock and gives it back with the requests of Consul's own library: a session for it, a look at
// the key before and after it is taken, and the end of the session.
func BenchmarkLock(b *testing.B) {
	w := newBench(b, Config{})
	w.ask("PUT /v1/kv/lock", "").is("true")
	b.ReportAllocs()
	for b.Loop() {
		created := w.ask("PUT /v1/session/create", `{"Name":"Consul API Lock","TTL":"15s","LockDelay":1000000}`).body
		id := strings.TrimSuffix(strings.TrimPrefix(created, `{"ID":"`), `"}`)
		w.ask("GET /v1/kv/lock?wait=15000ms", "").expect(200)
		w.ask("PUT /v1/kv/lock?acquire="+id+"&flags=3304740253564472344", "").is("true")
		w.ask("GET /v1/kv/lock?consistent=", "").expect(200, id)
		w.ask("PUT /v1/kv/lock?flags=3304740253564472344&release="+id, "").is("true")
		w.ask("PUT /v1/session/destroy/"+id, "").is("true")
	}
}

// A request that waits for a change has a connection of its own, and costs what net/http needs for that, two thirds of
// all, and a few kilobytes.
func TestIdleQueriesAreCheap(t *testing.T) {
	b := newBench(t, Config{})
	b.ask("PUT /v1/kv/a", "v").is("true")
	index := b.ask("GET /v1/kv/a", "").header.Get("X-Consul-Index")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- door.NewOwnHost(b.backend, door.HostConfig{}, b.door.Port("")).Serve(ctx, l) }()
	var conns []net.Conn
	open := func(n int) {
		for range n {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "GET /v1/kv/a?index=%s&wait=10m HTTP/1.1\r\nHost: x\r\n\r\n", index)
			conns = append(conns, c)
		}
		for b.waiting() < len(conns) {
			time.Sleep(time.Millisecond)
		}
	}
	open(1)
	before := inUse()
	const n = 400
	open(n)
	each := (inUse() - before) / n
	t.Logf("an idle query costs %d bytes", each)
	for _, c := range conns {
		c.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if each > 48<<10 {
		t.Errorf("an idle query costs %d bytes", each)
	}
}

// waiting returns how many requests wait for a change.
func (b *bench) waiting() int {
	b.t.Helper()
	var m dto.Metric
	if err := b.backend.Metrics().Watches.Write(&m); err != nil {
		b.t.Fatal(err)
	}
	return int(m.GetGauge().GetValue())
}

func inUse() int64 {
	for range 6 { // each shrinks stacks by half at most
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
