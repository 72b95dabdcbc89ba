package server

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// A journal makes what is written to it durable, many at a time: what an engine does.
type journal struct {
	mu    sync.Mutex
	some  sync.Cond
	calls []*Call
	over  bool
	syncs int
	file  *os.File
}

func openJournal(b *testing.B) *journal {
	f, err := os.Create(filepath.Join(b.TempDir(), "journal"))
	if err != nil {
		b.Fatal(err)
	}
	j := &journal{file: f}
	j.some.L = &j.mu
	go j.run()
	b.Cleanup(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.over = true
		j.some.Signal()
	})
	return j
}

func (j *journal) run() {
	defer j.file.Close()
	var taken []*Call
	var block []byte
	for {
		j.mu.Lock()
		for len(j.calls) == 0 && !j.over {
			j.some.Wait()
		}
		if j.over {
			j.mu.Unlock()
			return
		}
		taken, j.calls = j.calls, taken[:0]
		j.syncs++
		j.mu.Unlock()
		block = block[:0]
		for _, c := range taken {
			block = append(block, c.Args[0]...)
		}
		_, _ = j.file.Write(block)
		_ = syscall.Fdatasync(int(j.file.Fd()))
		for _, c := range taken {
			c.Done()
		}
	}
}

// An entry is what one batch adds to a journal.
type entries struct {
	journal *journal
	calls   []*Call
}

func (e *entries) Submit() {
	e.journal.mu.Lock()
	e.journal.calls = append(e.journal.calls, e.calls...)
	e.journal.some.Signal()
	e.journal.mu.Unlock()
	e.calls = e.calls[:0]
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Both drivers, with a command that has to be durable: on 64 connections, on one, and by 64
// callers that share one. The processor time is that of server and clients together.
func BenchmarkDrivers(b *testing.B) {
	for _, shape := range []struct {
		name             string
		conns, pipelined int
	}{{"64conns", 64, 1}, {"1conn", 1, 1}, {"1conn64callers", 1, 64}} {
		for _, driver := range []string{"goroutines", "loop"} {
			b.Run(shape.name+"/"+driver, func(b *testing.B) {
				benchDriver(b, driver == "goroutines", shape.conns, shape.pipelined)
			})
		}
	}
}

func benchDriver(b *testing.B, noLoop bool, conns, pipelined int) {
	j := openJournal(b)
	crowd := 1
	if noLoop {
		crowd = -1
	}
	s := &bench{Server: New(Config{
		Crowd:    crowd,
		NewBatch: func() Batch { return &entries{journal: j} },
		Commands: []*Command{{
			Name: "KEEP",
			Begin: func(c *Call) {
				e := c.Batch().(*entries)
				e.calls = append(e.calls, c)
			},
			Answer: func(_ *Call, w *resp.Writer) { w.OK() },
		}},
	})}
	var clients []*client
	for range conns {
		c := s.dial(b, b.Context())
		_ = c.SetDeadline(time.Time{})
		clients = append(clients, c)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	begun := processorTime()
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() { ask(c, &left, pipelined) })
	}
	all.Wait()
	b.ReportMetric(float64((processorTime()-begun).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(b.N)/float64(max(1, j.syncs)), "op/sync")
}

// ask sends commands and reads their answers, some at a time, until there are none left.
func ask(c *client, left *atomic.Int64, pipelined int) {
	one := resp.AppendCommand(nil, "KEEP", "reports/nightly held by ci-1234 until noon")
	var sent []byte
	answers := bufio.NewReader(c)
	for {
		n := int(min(int64(pipelined), left.Add(-int64(pipelined))+int64(pipelined)))
		if n <= 0 {
			return
		}
		sent = sent[:0]
		for range n {
			sent = append(sent, one...)
		}
		if _, err := c.Write(sent); err != nil {
			c.t.Error(err)
			return
		}
		if _, err := answers.Discard(n * len("+OK\r\n")); err != nil && err != io.EOF {
			c.t.Error(err)
			return
		}
	}
}
