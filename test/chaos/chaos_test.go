//go:build linux

// Package chaos runs three real servers, does to them whatever can happen to servers, and
// checks all that clients were told meanwhile.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/faultfs"
	"github.com/leasehold/leasehold/test/process"
)

var (
	minutes = flag.Float64("minutes", 3, "how long the chaos lasts")
	seed    = flag.Uint64("seed", 0, "what it is made from; 0: another one each time")
	only    = flag.String("faults", "", "names of faults, with commas: only these; empty: all")
	size    = flag.Int("servers", 3, "how many servers there are")
	into    = flag.String("report", "", "directory for the report and the servers' logs; empty: one that is removed")
)

const cont = syscall.SIGCONT

// binary is that of this tree, built once for all tests.
var binary struct {
	sync.Once
	dir, path string
}

// build returns the binary of this tree.
func build(t testing.TB) string {
	t.Helper()
	binary.Do(func() {
		var err error
		if binary.dir, err = os.MkdirTemp("", "chaos"); err != nil {
			t.Fatal(err)
		}
		binary.path = process.BuildTree(t, binary.dir)
	})
	if binary.path == "" {
		t.Fatal("the binary could not be built, as another test says")
	}
	return binary.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if binary.dir != "" {
		_ = os.RemoveAll(binary.dir)
	}
	os.Exit(code)
}

// reportDir is where a test leaves what it has to say.
func reportDir(t testing.TB) string {
	t.Helper()
	dir := *into
	if dir == "" {
		return t.TempDir()
	}
	dir = filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// round is how long there is trouble before everything is looked at.
const round = 45 * time.Second

// Whatever is done to three servers, what clients were told is true, and afterwards
// everything goes on.
func TestChaos(t *testing.T) {
	r := newReport(t.Logf)
	r.dir = reportDir(t)
	if r.Seed = *seed; r.Seed == 0 {
		r.Seed = rand.Uint64()
	}
	defer func() {
		t.Log(r)
		r.save(t)
	}()
	c := startCluster(t, r, clusterConfig{servers: *size})
	faults := chosen(t, r)
	random := rand.New(rand.NewPCG(r.Seed, 0))
	r.tell("seed %d", r.Seed)
	end := time.Now().Add(time.Duration(*minutes * float64(time.Minute)))
	for r.Rounds == 0 || time.Until(end) > round/3 && !t.Failed() {
		c.round(random, faults, min(round, max(round/3, time.Until(end))))
		if len(r.kinds()) > 0 {
			t.Errorf("there are violations: run it again with -seed %d", r.Seed)
		}
	}
}

// round is a time of trouble and what is left of it.
func (c *cluster) round(random *rand.Rand, faults []fault, length time.Duration) {
	c.report.Rounds++
	l := startLoad(c, c.report, loadConfig{namespace: fmt.Sprint("round", c.report.Rounds), seed: random.Uint64(), hop: 5})
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var watch sync.WaitGroup
	watch.Go(func() { c.watchDeaths(ctx) })
	for ctx.Err() == nil {
		pause(ctx, time.Duration(random.Int64N(int64(2*time.Second))))
		if ctx.Err() == nil {
			c.suffer(ctx, random, faults)
		}
	}
	watch.Wait()
	c.report.tell("round %d: the trouble is over", c.report.Rounds)
	if c.heal() {
		l.settle()
		c.agree()
	} else {
		l.abandon()
	}
}

// chosen are the faults to choose from.
func chosen(t *testing.T, r *report) (faults []fault) {
	disk := faultfs.Available()
	if disk != nil {
		r.LeftOut = append(r.LeftOut, disk.Error())
		t.Run("disks", func(t *testing.T) { t.Skipf("left out: %v", disk) })
	}
	named := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, f := range allFaults {
		if f.disk && disk != nil || f.many && *size == 1 || len(named) > 0 && !slices.Contains(named, f.name) {
			continue
		}
		faults = append(faults, f)
	}
	if len(faults) == 0 {
		t.Fatalf("there is no fault of the name %q", *only)
	}
	return faults
}

// Servers that only pose as one must be noticed, in each way in which they differ: a
// checker that is blind to that would call anything well.
func TestServersThatAreNotOneAreNoticed(t *testing.T) {
	r := newReport(func(string, ...any) {})
	r.patience = 2 * time.Second
	c := startCluster(t, r, clusterConfig{servers: 2, apart: true})
	wanted := []kind{twoHolders, tokenBack, lostWrite, staleRead, watchGap, notLinearizable, refusedHolder}
	for n := 1; n <= 10; n++ {
		l := startLoad(c, r, loadConfig{namespace: fmt.Sprint("apart", n), seed: uint64(n), hop: 40, giveUp: time.Second})
		for range 6 {
			time.Sleep(time.Second)
			c.network.reset(func(pair) bool { return true }) // watches go to the other server
		}
		l.settle()
		found := r.kinds()
		if !slices.ContainsFunc(wanted, func(k kind) bool { return found[k] == 0 }) {
			t.Logf("found in round %d: %v", n, found)
			return
		}
	}
	t.Errorf("found only %v", r.kinds())
}
