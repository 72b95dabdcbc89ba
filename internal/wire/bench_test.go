package wire

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

// manyLeases returns a state with so many leases, each with a ttl of its own.
func manyLeases(t testing.TB, n int) *core.State {
	t.Helper()
	const batch = 512 // no more than an entry has work for
	state := core.New()
	stamp, wall := core.Time(3600*time.Second), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC).UnixNano()
	for from := 0; from < n; from += batch {
		var commands []core.Command
		for i := from; i < min(n, from+batch); i++ {
			commands = append(commands, &core.Acquire{
				Namespace: "default", Resource: fmt.Sprintf("reports/daily-%08d", i), ID: fmt.Sprintf("%016x", uint64(i)*0x9E3779B97F4A7C15),
				Holder: fmt.Sprintf("worker-%d", i%1000), TTL: 24 * time.Hour,
			})
		}
		stamp += core.Time(time.Millisecond)
		if _, err := state.Apply(stamp, wall+int64(stamp), commands); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

func BenchmarkWriteSnapshot(b *testing.B) {
	const leases = 1000000
	state := manyLeases(b, leases)
	var sum Summary
	for b.Loop() {
		var err error
		if sum, err = WriteSnapshot(io.Discard, state); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(sum.Bytes)
	b.ReportMetric(float64(sum.Bytes)/leases, "bytes/lease")
}

func BenchmarkReadSnapshot(b *testing.B) {
	const leases = 1000000
	var snapshot bytes.Buffer
	if _, err := WriteSnapshot(&snapshot, manyLeases(b, leases)); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(snapshot.Len()))
	b.ReportAllocs()
	for b.Loop() {
		state, _, err := ReadSnapshot(bytes.NewReader(snapshot.Bytes()))
		if err != nil || state.View(0).Counts().Leases != leases {
			b.Fatal("the snapshot was not read", err)
		}
	}
}

var benchAcquire = &core.Acquire{
	Namespace: "default", Resource: "reports/daily-00000001", ID: "0123456789abcdef", Holder: "worker-7", TTL: 30 * time.Second,
	Request: core.Request{Key: "fedcba9876543210"},
}

func BenchmarkAppendCommand(b *testing.B) {
	for name, c := range map[string]core.Command{"acquire": benchAcquire, "renew": &core.Renew{Namespace: "default", ID: "0123456789abcdef"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 1024)
			for b.Loop() {
				encoded, err := AppendCommand(buf, c)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(encoded)))
			}
		})
	}
}

// benchEntry returns the encoded commands of an entry as large as an engine makes it.
func benchEntry(b *testing.B, c core.Command) [][]byte {
	b.Helper()
	encoded, err := AppendCommand(nil, c)
	if err != nil {
		b.Fatal(err)
	}
	return slices.Repeat([][]byte{encoded}, 4096)
}

func BenchmarkAppendEncoded(b *testing.B) {
	encoded := benchEntry(b, benchAcquire)
	b.ReportAllocs()
	for b.Loop() {
		entry, err := AppendEncoded(nil, Header{Term: 7, Stamp: 3600e9, Wall: goldenWall}, encoded)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(entry)))
	}
}

func BenchmarkDecodeEntry(b *testing.B) {
	for name, c := range map[string]core.Command{"acquire": benchAcquire, "renew": &core.Renew{Namespace: "default", ID: "0123456789abcdef"}} {
		b.Run(name, func(b *testing.B) {
			entry, err := AppendEncoded(nil, Header{Term: 7, Stamp: 3600e9, Wall: goldenWall}, benchEntry(b, c))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(entry)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeEntry(entry); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/command")
		})
	}
}
