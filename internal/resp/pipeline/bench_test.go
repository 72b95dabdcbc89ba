//go:build unix

package pipeline

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/resp"
)

// BenchmarkDo says what a command costs, in processor time of both ends: that of the other end is the same for all ways
// to use a connection.
func BenchmarkDo(b *testing.B) {
	for _, load := range []struct{ conns, callers int }{{1, 1}, {64, 1}, {1, 64}} {
		b.Run(fmt.Sprintf("conns=%d/callers=%d", load.conns, load.callers), func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			go answerOK(l)
			var all []*Conn
			for range load.conns {
				conn, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					b.Fatal(err)
				}
				c := New(conn, Config{})
				c.Start()
				defer c.Close()
				all = append(all, c)
			}
			also, cancel := context.WithCancel(b.Context())
			defer cancel()
			command := resp.AppendCommand(nil, "LH.SESSION", "RENEW", "abcdefghijklmnopqrstuvwxyz")
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			began := processorTime()
			var wg sync.WaitGroup
			for i := range load.conns * load.callers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						ctx := limit.After(limit.Both(b.Context(), also), time.Minute)
						if err := all[i%len(all)].Do(ctx, Request{Command: command, Answer: &reply{}}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(processorTime()-began)/float64(b.N)/1000, "cpu-µs/op")
		})
	}
}

// answerOK answers each command by +OK: as many as there are lines with the number of words.
func answerOK(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			in, out := make([]byte, 64<<10), []byte(nil)
			for {
				n, err := conn.Read(in)
				if err != nil {
					return
				}
				out = out[:0]
				for _, c := range in[:n] {
					if c == '*' {
						out = append(out, "+OK\r\n"...)
					}
				}
				_, _ = conn.Write(out)
			}
		}()
	}
}

func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
