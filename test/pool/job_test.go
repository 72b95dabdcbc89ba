//go:build linux

package pool

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/test/process"
)

// The variables that make this binary a job.
const (
	envCards = "POOL_TEST_CARDS" // the directory with a file for each card
	envWork  = "POOL_TEST_WORK"  // how long it takes
	envCode  = "POOL_TEST_CODE"  // what it exits with
)

// The test's own binary is the job, too.
func TestMain(m *testing.M) {
	if cards := os.Getenv(envCards); cards != "" {
		os.Exit(work(cards))
	}
	os.Exit(m.Run())
}

// work locks the card files for as long as the job runs. The kernel unlocks them when the process is dead and no
// sooner, so a lock that is taken is a card with two jobs.
func work(cards string) int {
	units := os.Getenv("LEASEHOLD_UNITS")
	for unit := range strings.SplitSeq(units, ",") {
		file, err := os.OpenFile(filepath.Join(cards, unit), os.O_RDWR, 0)
		if err == nil {
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if err != nil {
			fmt.Printf("twice %s: %v\n", unit, err)
			return 1
		}
	}
	fmt.Println("has", units)
	d, err := time.ParseDuration(os.Getenv(envWork))
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	time.Sleep(d)
	code, _ := strconv.Atoi(os.Getenv(envCode)) // without one it is well
	return code
}

// A fate is how a job ends.
type fate int

const (
	succeeds fate = iota
	fails
	killed   // run alone, with SIGKILL: its guard kills the command
	vanishes // with all its processes at once, as when the host loses power
)

func (f fate) String() string { return [...]string{"succeeds", "fails", "killed", "vanishes"}[f] }

// A job is one leasehold pool run.
type job struct {
	holder string
	model  string
	units  int
	works  time.Duration
	fate   fate
	early  bool // killed as soon as it is in the queue, or has its cards

	*process.Process
	said  bytes.Buffer
	lines *bufio.Scanner
	has   []string // its cards
}

// plan returns what the jobs of a seed are.
func plan(seed uint64) []*job {
	random := rand.New(rand.NewPCG(seed, 0))
	list := make([]*job, jobs)
	for i := range list {
		j := &job{holder: fmt.Sprintf("job-%03d", i), model: "A100", units: 1 + random.IntN(3)}
		if random.IntN(2) == 0 {
			j.model = "H100"
		}
		j.works = time.Duration(random.IntN(150)) * time.Millisecond
		switch n := random.IntN(100); {
		case n < 12:
			j.fate = fails
		case n < 24:
			j.fate, j.early = killed, n < 16
		case n < 29:
			j.fate = vanishes
		}
		if j.fate >= killed {
			j.works = time.Hour // it does not get that far
		}
		list[i] = j
	}
	return list
}

// start runs the job's processes.
func (j *job) start(t *testing.T, binary, server, cards string) {
	t.Helper()
	cmd := exec.Command(binary, "pool", "run", pool, "-n", strconv.Itoa(j.units), "--where", "model="+j.model,
		"--holder", j.holder, "--ttl", ttl.String(), "--", os.Args[0])
	cmd.Env = []string{"LEASEHOLD_SERVER=http://" + server, envCards + "=" + cards, envWork + "=" + j.works.String()}
	if j.fate == fails {
		cmd.Env = append(cmd.Env, envCode+"=3")
	}
	cmd.Stderr = &j.said
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = in
	j.Process, err = process.StartCommand(cmd)
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close() // its processes have their own
	t.Cleanup(func() { _ = out.Close() })
	j.lines = bufio.NewScanner(out)
}

// play waits for the job's cards, lets it meet its fate, and returns when its process has ended.
func (j *job) play(t *testing.T) {
	if !j.early {
		if !j.lines.Scan() || !strings.HasPrefix(j.lines.Text(), "has ") {
			t.Errorf("%s (%v) has no cards, but says %q:\n%s", j.holder, j.fate, j.lines.Text(), j.said.String())
		}
		j.has = strings.Split(strings.TrimPrefix(j.lines.Text(), "has "), ",")
	}
	switch j.fate {
	case killed:
		j.Signal(syscall.SIGKILL)
	case vanishes:
		j.vanish(t)
	}
	want := map[fate]int{succeeds: 0, fails: 3, killed: -1, vanishes: -1}[j.fate]
	if code := j.Code(); code != want {
		t.Errorf("%s (%v) ended with %d and not %d:\n%s", j.holder, j.fate, code, want, j.said.String())
	}
}

// vanish kills all processes of a job at once: none of them can tell the server of the others.
func (j *job) vanish(t *testing.T) {
	j.Signal(syscall.SIGSTOP)
	below := descendants(j.Pid())
	if len(below) < 2 {
		t.Errorf("%s has %d processes below it: a guard and a command were expected", j.holder, len(below))
	}
	for _, pid := range below {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	j.Signal(syscall.SIGKILL)
}

// descendants returns the children of a process, and theirs.
func descendants(of int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// "12 (name) S 11 …": the name may have spaces and parentheses.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(of) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(append(pids, pid), descendants(pid)...)
		}
	}
	return pids
}
