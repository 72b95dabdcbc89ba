//go:build linux

// Package pool sends jobs of real processes through the cards of a pool, and kills some of them and the server.
package pool

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/test/process"
)

const (
	pool = "gpu"
	jobs = 200
	ttl  = 4 * time.Second
)

// hosts are the cards of each host, and their model.
var hosts = map[string][]string{
	"H100": {"GPU-a1", "GPU-a2", "GPU-a3", "GPU-a4"},
	"A100": {"GPU-b1", "GPU-b2", "GPU-b3", "GPU-b4"},
}

// Two hundred jobs want one to three of four cards of one of two hosts. Some fail, some are killed in the queue or at
// work, some vanish with their host, and the server is killed twice. No card is ever in two jobs, every job gets all of
// its cards or none, in the order in which the jobs came, and in the end all cards are free.
//
// POOL_TEST_SEED=N plays the jobs of another seed.
func TestJobs(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("POOL_TEST_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	s := &server{binary: process.BuildTree(t, dir), data: filepath.Join(dir, "data"), listen: process.Reserve(t)}
	s.start(t)
	caller, err := v1.NewCaller(v1.CallerConfig{Server: "http://" + s.listen})
	if err != nil {
		t.Fatal(err)
	}
	cards := makeCards(t, caller, dir)
	seen := watch(t, caller)

	list := plan(seed)
	var running sync.WaitGroup
	for i, j := range list {
		if i == jobs/3 || i == 2*jobs/3 {
			s.End(syscall.SIGKILL)
			s.start(t)
		}
		j.start(t, s.binary, s.listen, cards)
		seen.wait(t, "queued or acquired "+j.holder, func() bool { return slices.Contains(seen.came, j.holder) })
		running.Go(func() { j.play(t) })
	}
	running.Wait()
	seen.wait(t, "the end of every lease", func() bool { return len(seen.ended)+len(seen.left) == jobs })

	judge(t, list, seen)
	p, err := pools.Get(t.Context(), caller, pool, pools.Query{Limit: 100, Queue: 1})
	if err != nil || p.Free != 8 || p.Total != 8 || p.Waiting != 0 {
		t.Errorf("in the end %d of %d cards are free, and %d wait (%v): want 8, 8, 0", p.Free, p.Total, p.Waiting, err)
	}
}

// judge compares what was seen with what is promised.
func judge(t *testing.T, list []*job, seen *log) {
	t.Helper()
	order := map[string][]string{} // of grants, by model
	for i, holder := range seen.acquired {
		n, _ := strconv.Atoi(strings.TrimPrefix(holder, "job-"))
		order[list[n].model] = append(order[list[n].model], holder)
		if i > 0 && seen.tokens[i] <= seen.tokens[i-1] {
			t.Errorf("%s has the token %d after %d", holder, seen.tokens[i], seen.tokens[i-1])
		}
	}
	for model, holders := range order {
		if !slices.IsSorted(holders) {
			t.Errorf("the jobs for %s were not granted in the order in which they came: %v", model, holders)
		}
	}
	count := map[string]int{}
	for _, j := range list {
		how, granted := seen.ended[j.holder]
		count[fmt.Sprintf("%v: %s", j.fate, cmp.Or(how, "left"))]++
		want := [...]string{"released", "released", "abandoned", "session expired"}[j.fate]
		if !granted && !j.early || granted && how != want {
			t.Errorf("%s (%v): its lease ended as %q, want %q", j.holder, j.fate, how, want)
		}
		if !j.early {
			j.judgeCards(t)
		}
	}
	t.Log(count)
}

// judgeCards checks that the job had as many cards as it asked for, each once, of the host that has the model.
func (j *job) judgeCards(t *testing.T) {
	t.Helper()
	slices.Sort(j.has)
	ok := len(j.has) == j.units && len(slices.Compact(slices.Clone(j.has))) == j.units
	for _, card := range j.has {
		ok = ok && slices.Contains(hosts[j.model], card)
	}
	if !ok {
		t.Errorf("%s wanted %d cards %s and got %v", j.holder, j.units, j.model, j.has)
	}
}

// A server is one process after the other on the same data.
type server struct {
	binary, data, listen string
	*process.Process
	said bytes.Buffer
}

func (s *server) start(t *testing.T) {
	t.Helper()
	p, err := process.Start(&s.said, s.binary, "serve", "--listen", s.listen, "--data", s.data, "--min-free", "0")
	if err != nil {
		t.Fatal(err)
	}
	s.Process = p
	caller, err := v1.NewCaller(v1.CallerConfig{Server: "http://" + s.listen})
	if err != nil {
		t.Fatal(err)
	}
	defer caller.CloseIdle()
	for {
		if _, err := caller.Ready(t.Context()); err == nil {
			return
		}
		if !p.Runs() {
			t.Fatalf("the server ended with %d:\n%s", p.Code(), s.said.String())
		}
		time.Sleep(5 * time.Millisecond) // a server that starts answers at once that it does
	}
}

// makeCards puts the cards into the pool, and returns a directory with a file for each.
func makeCards(t *testing.T, caller *v1.Caller, dir string) string {
	t.Helper()
	cards := filepath.Join(dir, "cards")
	if err := os.Mkdir(cards, 0o700); err != nil {
		t.Fatal(err)
	}
	for model, names := range hosts {
		r := pools.UnitsRequest{Host: "host-of-" + model}
		for _, name := range names {
			r.Units = append(r.Units, pools.HostUnit{Name: name, Labels: map[string]string{"model": model}})
			if err := os.WriteFile(filepath.Join(cards, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := pools.SetUnits(t.Context(), caller, pool, r); err != nil {
			t.Fatal(err)
		}
	}
	return cards
}

// A log is what a watch of the pool has seen.
type log struct {
	mu   sync.Mutex // guards what follows
	more *sync.Cond // one more event, or the end
	over bool

	came     []string // that are in the queue or have cards, by their arrival
	acquired []string
	tokens   []uint64
	ended    map[string]string // how, by holder
	left     []string          // the queue, without cards
}

// watch follows the pool from now on.
func watch(t *testing.T, caller *v1.Caller) *log {
	t.Helper()
	l := &log{ended: map[string]string{}}
	l.more = sync.NewCond(&l.mu)
	begun := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	began := sync.OnceFunc(func() { close(begun) })
	go func() {
		defer close(done)
		defer l.end()
		defer began()
		query := v1.WatchQuery{Resource: pool, Started: func(v1.Hello) { began() }}
		for e, err := range caller.Watch(ctx, query) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("the watch ended: %v", err)
				}
				return
			}
			l.add(e)
		}
	}()
	<-begun
	return l
}

func (l *log) add(e v1.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case "queued":
		l.came = append(l.came, e.Holder)
	case "acquired":
		l.came, l.acquired, l.tokens = append(l.came, e.Holder), append(l.acquired, e.Holder), append(l.tokens, e.Token)
	case "ended":
		l.ended[e.Holder] = e.How
	case "left":
		l.left = append(l.left, e.Holder)
	}
	l.more.Broadcast()
}

func (l *log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.more.Broadcast()
}

// wait returns when a condition holds of what was seen.
func (l *log) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !ok() {
		if l.over {
			t.Fatalf("the watch ended before %s", what)
		}
		l.more.Wait()
	}
}
