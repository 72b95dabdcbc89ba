package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/internal/cli"
)

// untilTold is a script that ends when a file is there.
const untilTold = `echo yes >began; until test -e on; do sleep 0.01; done`

func (s *stage) tell() {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "on"), nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) lastRun(job string) cli.JobRun {
	s.Helper()
	runs, err := cli.ReadRuns(s.Context(), s.caller(), job)
	if err != nil || runs.Newest() == nil {
		s.Fatalf("%s has no runs: %v", job, err)
	}
	return *runs.Newest()
}

// The server is away when the command ends: its outcome is recorded when the server is back.
func TestARunIsRecordedWhenTheServerIsBack(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "job", "--ttl", long, "--at-most-every", "1d", "--", "sh", "-c", untilTold+"; echo $$ >pid")
	s.file("began")
	s.server.stop()
	s.tell()
	s.gone("pid")
	if err := s.server.open(); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	if run := s.lastRun("job"); run.Outcome != cli.RunSucceeded {
		t.Errorf("it is recorded as %+v", run)
	}
	s.plays("run", "job", "--at-most-every", "1d", "--", "true").ends(79)
}

// The server stays away until the lease is over: that is said, and the run does not count.
func TestARunThatIsNotRecorded(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "-q", "job", "--ttl", "5s", "--at-most-every", "1d", "--", "sh", "-c", untilTold)
	s.file("began")
	s.server.stop()
	s.tell()
	p.ends(0)
	p.says(`^leasehold: job: how this run ended could not be recorded: `)
	p.says(`^leasehold: it succeeded, but does not count: it may run again before 1d is over$`)
	if err := s.server.open(); err != nil {
		t.Fatal(err)
	}
	if run := s.lastRun("job"); run.Outcome != cli.RunBegan {
		t.Errorf("it is recorded as %+v", run)
	}
	s.plays("run", "job", "--at-most-every", "1d", "--", "true").ends(0)
}

// A signal that run passes on ends the command, not the record of how it ended.
func TestARunThatASignalEndsIsRecorded(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "job", "--at-most-every", "1d", "--", "sh", "-c", `trap "sleep 0.2; exit 3" TERM; `+untilTold)
	s.file("began")
	p.signal(syscall.SIGTERM)
	p.ends(3)
	if said := p.err.String(); strings.Contains(said, "leasehold:") {
		t.Errorf("it said %q", said)
	}
	if run := s.lastRun("job"); run.Outcome != cli.RunFailed || run.Code == nil || *run.Code != 3 {
		t.Errorf("it is recorded as %+v", run)
	}
}

// A run that is killed after it began counts only if failures do.
func TestAKilledRunCounts(t *testing.T) {
	for _, counts := range []bool{false, true} {
		t.Run(map[bool]string{false: "not", true: "with --count-failures"}[counts], func(t *testing.T) {
			s := newStage(t)
			args, code := []string{"run", "job", "--ttl", long, "--at-most-every", "1d"}, 0
			if counts {
				args, code = append(args, "--count-failures"), 79
			}
			p := s.plays(append(args, "--", "sh", "-c", untilTold)...)
			s.file("began")
			p.signal(syscall.SIGKILL)
			p.ends(-1)
			s.plays("run", "job", "--ttl", long, "--at-most-every", "1d", "--", "true").ends(code)
		})
	}
}

// Somebody who asks run to stop does not wait for a server that is away until the lease is over.
func TestARunThatIsAskedToStopGivesUp(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "-q", "job", "--ttl", long, "--at-most-every", "1d", "--", "sh", "-c", untilTold)
	s.file("began")
	s.server.stop()
	p.signal(syscall.SIGTERM)
	p.ends(143)
	p.says(`^leasehold: job: how this run ended could not be recorded: no server answered within 5s$`)
}

// A break is reported once, with its reason, though it also keeps the run from being recorded.
func TestABrokenRunIsReportedOnce(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "-q", "job", "--ttl", long, "--at-most-every", "1d", "--", "sh", "-c", untilTold)
	s.file("began")
	s.plays("break", "job", "--now", "--yes", "--reason", "not today").ends(0)
	p.ends(76)
	p.says(`^leasehold: job: how this run ended could not be recorded: the lease is lost$`)
	if said := p.err.String(); strings.Count(said, "not today") != 1 {
		t.Errorf("it said %q", said)
	}
}
