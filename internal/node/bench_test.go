package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/config"
)

// The benchmarks here go the whole way: HTTP over loopback, JSON, the log synced to
// disk, and back. Clients and server share the machine's cores.

// alone are the settings of one server.
func alone(tb testing.TB) config.Server {
	return config.Server{
		Listen: "127.0.0.1:0", Data: filepath.Join(tb.TempDir(), "data"), DrainTimeout: 10 * time.Second,
		SegmentSize: 64 << 20, SnapshotEvery: 64 << 20, JournalSize: 256 << 20, LogFormat: "text", LogLevel: slog.LevelError,
	}
}

// startServer runs a server until the benchmark ends and returns its URL.
func startServer(tb testing.TB, settings config.Server) string {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended, address := make(chan error, 1), make(chan string, 1)
	go func() {
		ended <- Run(ctx, Config{Server: settings, Log: os.Stderr}, func(s Serving) { address <- s.Address })
	}()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	select {
	case at := <-address:
		return "http://" + at
	case err := <-ended:
		ended <- err
		tb.Fatal(err)
	}
	return ""
}

// A poster is one client with one connection.
type poster struct {
	client http.Client
	body   bytes.Buffer
}

func newPoster() *poster {
	return &poster{client: http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1, DialContext: new(net.Dialer).DialContext}}}
}

// post sends a body and wants a 200.
func (p *poster) post(url, format string, args ...any) error {
	p.body.Reset()
	fmt.Fprintf(&p.body, format, args...)
	response, err := p.client.Post(url, "application/json", &p.body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return err
}

// many does b.N things with so many clients at once and reports the rate and how
// long each took.
func many(b *testing.B, clients int, do func(client int, p *poster, n int64) error) []time.Duration {
	b.Helper()
	var n atomic.Int64
	took := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range clients {
		wg.Go(func() {
			p := newPoster()
			defer p.client.CloseIdleConnections()
			for {
				k := n.Add(1)
				if k > int64(b.N) {
					return
				}
				began := time.Now()
				if err := do(i, p, k); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	return all
}

func BenchmarkHTTP(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("cycle/clients=%d", clients), func(b *testing.B) {
			url := startServer(b, alone(b))
			many(b, clients, func(i int, p *poster, n int64) error {
				err := p.post(url+"/v1/acquire", `{"resource":"bench/r%d","holder":"worker-%d","id":"id-%d","ttl":"30s"}`, i, i, n)
				if err != nil {
					return err
				}
				return p.post(url+"/v1/release", `{"id":"id-%d"}`, n)
			})
		})
		b.Run(fmt.Sprintf("renew/clients=%d", clients), func(b *testing.B) {
			url := startServer(b, alone(b))
			p := newPoster()
			for i := range clients {
				if err := p.post(url+"/v1/acquire", `{"resource":"bench/r%d","holder":"worker-%d","id":"id-%d","ttl":"1h"}`, i, i, i); err != nil {
					b.Fatal(err)
				}
			}
			many(b, clients, func(i int, p *poster, _ int64) error {
				return p.post(url+"/v1/renew", `{"id":"id-%d"}`, i)
			})
		})
	}
}

// startThree runs a cluster until the benchmark ends and returns the URLs of its servers,
// the leader's first.
func startThree(b *testing.B) []string {
	b.Helper()
	var members []config.Member
	for i := range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		members = append(members, config.Member{Name: fmt.Sprintf("n%d", i+1), Peer: listener.Addr().String()})
		_ = listener.Close()
	}
	urls := make([]string, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		settings := alone(b)
		settings.Name, settings.PeerListen, settings.PeerAdvertise, settings.InitialCluster, settings.Insecure = m.Name, m.Peer, m.Peer, members, true
		wg.Go(func() { urls[i] = startServer(b, settings) })
	}
	wg.Wait()
	caller, err := v1.NewCaller(v1.CallerConfig{Servers: urls})
	if err != nil {
		b.Fatal(err)
	}
	// The address is known before the server takes part: the first answer says that it does.
	for {
		outlook, err := caller.Cluster(b.Context())
		for i, m := range outlook.Servers {
			if err == nil && m.Name == outlook.Leader {
				urls[0], urls[i] = urls[i], urls[0]
				return urls
			}
		}
		if b.Context().Err() != nil {
			b.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// BenchmarkThreeHTTP is BenchmarkHTTP on three servers, which share the machine's cores with
// the clients: asked at the leader, at another server, and at all of them.
func BenchmarkThreeHTTP(b *testing.B) {
	const clients = 64
	for _, at := range []struct {
		name  string
		count int
		first int
	}{{"leader", 1, 0}, {"follower", 1, 1}, {"all", 3, 0}} {
		b.Run("cycle/"+at.name, func(b *testing.B) {
			urls := startThree(b)
			many(b, clients, func(i int, p *poster, n int64) error {
				url := urls[at.first+i%at.count]
				err := p.post(url+"/v1/acquire", `{"resource":"bench/r%d","holder":"worker-%d","id":"id-%d","ttl":"30s"}`, i, i, n)
				if err != nil {
					return err
				}
				return p.post(url+"/v1/release", `{"id":"id-%d"}`, n)
			})
		})
		b.Run("renew/"+at.name, func(b *testing.B) {
			urls := startThree(b)
			p := newPoster()
			for i := range clients {
				if err := p.post(urls[0]+"/v1/acquire", `{"resource":"bench/r%d","holder":"worker-%d","id":"id-%d","ttl":"1h"}`, i, i, i); err != nil {
					b.Fatal(err)
				}
			}
			many(b, clients, func(i int, p *poster, _ int64) error {
				return p.post(urls[at.first+i%at.count]+"/v1/renew", `{"id":"id-%d"}`, i)
			})
		})
	}
}

// BenchmarkOneClient says what a renewal costs one client beyond a request that does
// nothing, in units of what a sync costs. A sync that comes after a pause, as between
// two requests of one client, takes longer than one in a loop: both are reported,
// and the unit is the one that a request would meet.
func BenchmarkOneClient(b *testing.B) {
	for b.Loop() {
		write := blockWriter(b)
		loop := median(b, write)
		noop := plainPost(b, func() error { return nil })
		synced := plainPost(b, write)
		url := startServer(b, alone(b))
		p := newPoster()
		if err := p.post(url+"/v1/acquire", `{"resource":"r","holder":"h","id":"id","ttl":"1h"}`); err != nil {
			b.Fatal(err)
		}
		renew := median(b, func() error { return p.post(url+"/v1/renew", `{"id":"id"}`) })
		b.ReportMetric(float64(loop.Microseconds()), "sync-in-a-loop-µs")
		b.ReportMetric(float64(noop.Microseconds()), "noop-µs")
		b.ReportMetric(float64(synced.Microseconds()), "noop+sync-µs")
		b.ReportMetric(float64(renew.Microseconds()), "renew-µs")
		b.ReportMetric(float64(renew-noop)/float64(synced-noop), "syncs-beyond-noop")
	}
}

func median(b *testing.B, do func() error) time.Duration {
	b.Helper()
	const times = 2000
	took := make([]time.Duration, times)
	for i := range took {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[times/2]
}

// plainPost is a POST to a server that does nothing but one thing.
func plainPost(b *testing.B, do func() error) time.Duration {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		if err = errors.Join(err, do()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "{}\n")
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	p := newPoster()
	return median(b, func() error { return p.post("http://"+listener.Addr().String(), `{"id":"id"}`) })
}

// blockWriter returns a small write and sync to a file that has its room already, as
// the log's files do.
func blockWriter(b *testing.B) func() error {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 64<<20); err != nil {
		b.Fatal(err)
	}
	block := make([]byte, 256)
	return func() error {
		if _, err := f.Write(block); err != nil {
			return err
		}
		return unix.Fdatasync(int(f.Fd()))
	}
}
