package native

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// The handler alone: no sockets, no disk.
func BenchmarkHandler(b *testing.B) {
	for _, verb := range []string{"renew", "acquire+release"} {
		b.Run(verb, func(b *testing.B) {
			e := memory.Start(engine.NewGoClock())
			defer e.Close()
			door := open(e, Config{})
			post := func(path, body string) *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				r := httptest.NewRequest("POST", path, strings.NewReader(body))
				door.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("%s answered %d: %s", path, w.Code, w.Body)
				}
				return w
			}
			post("/v1/acquire", `{"resource":"r","holder":"bench","id":"l","ttl":"30s"}`)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if verb == "renew" {
					post("/v1/renew", `{"id":"l"}`)
					continue
				}
				id := fmt.Sprint("id", i)
				post("/v1/acquire", `{"resource":"jobs/nightly","holder":"bench","ttl":"30s","id":"`+id+`"}`)
				post("/v1/release", `{"id":"`+id+`"}`)
			}
		})
	}
}

// Over loopback with 64 connections, client and server in one process.
func BenchmarkLoopback(b *testing.B) {
	const connections = 64
	for _, verb := range []string{"renew", "acquire+release"} {
		b.Run(verb, func(b *testing.B) {
			e := memory.Start(engine.NewGoClock())
			defer e.Close()
			base, stop := openLoopback(b, open(e, Config{}))
			defer stop()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}}
			defer client.CloseIdleConnections()
			post := func(path, body string) error {
				answer, err := client.Post(base+path, "application/json", strings.NewReader(body))
				if err != nil {
					return err
				}
				defer answer.Body.Close()
				text, err := io.ReadAll(answer.Body)
				if answer.StatusCode != http.StatusOK {
					return fmt.Errorf("%s answered %d: %s", path, answer.StatusCode, text)
				}
				return err
			}
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for worker := range connections {
				wg.Go(func() {
					if err := post("/v1/acquire", fmt.Sprintf(`{"resource":"mine/%d","holder":"bench","id":"l%[1]d","ttl":"30s"}`, worker)); err != nil {
						b.Error(err)
					}
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						var err error
						if verb == "renew" {
							err = post("/v1/renew", fmt.Sprintf(`{"id":"l%d"}`, worker))
						} else {
							err = post("/v1/acquire", fmt.Sprintf(`{"resource":"jobs/%d","holder":"bench","ttl":"30s","id":"c%d"}`, worker, n))
							if err == nil {
								err = post("/v1/release", fmt.Sprintf(`{"id":"c%d"}`, n))
							}
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), verb+"/s")
		})
	}
}

// What watchers cost those who do not watch: cycles over loopback by 16 clients
// while every event goes to so many readers.
func BenchmarkWatchers(b *testing.B) {
	for _, watchers := range []int{0, 100, 1000} {
		b.Run(fmt.Sprint(watchers), func(b *testing.B) {
			e := memory.Start(engine.NewGoClock())
			defer e.Close()
			base, stop := openLoopback(b, open(e, Config{}))
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
			var readers, clients sync.WaitGroup
			var read atomic.Int64
			for range watchers {
				answer, err := client.Get(base + "/v1/watch")
				if err != nil {
					b.Fatal(err)
				}
				readers.Go(func() {
					defer answer.Body.Close()
					n, _ := io.Copy(io.Discard, answer.Body)
					read.Add(n)
				})
			}
			caller, err := v1.NewCaller(v1.CallerConfig{Server: base, Client: client})
			if err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			b.ResetTimer()
			for worker := range 16 {
				clients.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						id := fmt.Sprint("c", n)
						_, err := caller.Acquire(b.Context(), v1.AcquireRequest{Resource: fmt.Sprint("jobs/", worker), Holder: "bench", ID: id})
						if err == nil {
							err = caller.Release(b.Context(), v1.ReleaseRequest{ID: id})
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			clients.Wait()
			b.StopTimer()
			stop()
			readers.Wait()
			client.CloseIdleConnections()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
			b.ReportMetric(float64(read.Load())/1e6/b.Elapsed().Seconds(), "MB/s-read")
		})
	}
}

func openLoopback(t testing.TB, door *opened) (base string, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- door.Serve(ctx, l) }()
	return "http://" + l.Addr().String(), func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
