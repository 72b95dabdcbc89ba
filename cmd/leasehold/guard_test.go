package main

import (
	"context"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// long is a TTL that no test waits for: what ends before it was ended by somebody.
const long = "10m"

// flock is free when its holder is killed, and so is what run holds: all of it, before its TTL, and
// not before the command is dead.
func TestAKilledRunFreesWhatItHolds(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "--ttl", long, "a", "b", "--slots", "1", "--capacity", "2", "--grace", "5m", "--",
		"sh", "-c", "trap '' TERM HUP INT; "+beating)
	s.lastBeat()
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	for _, name := range []string{"a", "b"} {
		at, how := s.lastEnd(name)
		if how != "abandoned" || !s.lastBeat().Before(at) {
			t.Errorf("%s ended at %v (%s); the command worked until %v", name, at, how, s.lastBeat())
		}
		// It is no release: the grace applies.
		r, err := s.caller().Resource(context.Background(), name, 0)
		if err != nil || r.AvailableAt == nil {
			t.Errorf("%s does not rest: %+v, %v", name, r, err)
		}
	}
	s.gone("pid")
}

// The command of a nested run is a group of its own, which the guard of the nested run kills. The
// outer lease does not end before that.
func TestAKilledRunFreesWhatANestedRunUses(t *testing.T) {
	s := newStage(t)
	p := s.plays("run", "--ttl", long, "outer", "--", "leasehold", "run", "--ttl", long, "inner", "--", "sh", "-c",
		"trap '' TERM HUP INT; "+beating)
	s.lastBeat()
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	for _, name := range []string{"outer", "inner"} {
		if at, how := s.lastEnd(name); how != "abandoned" || !s.lastBeat().Before(at) {
			t.Errorf("%s ended at %v (%s); the command worked until %v", name, at, how, s.lastBeat())
		}
	}
}

// A run that is killed while it waits leaves the queue.
func TestAKilledWaitLeavesTheQueue(t *testing.T) {
	s := newStage(t)
	ctx := context.Background()
	_, err := s.caller().Acquire(ctx, v1.AcquireRequest{Resource: "a", Holder: "ann", ID: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	waiting := func() int {
		r, err := s.caller().Resource(ctx, "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		return r.Waiting
	}
	p := s.plays("run", "--ttl", long, "a", "--", "true")
	s.soon("a waiter", func() bool { return waiting() == 1 })
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	s.soon("an empty queue", func() bool { return waiting() == 0 })
}

// The server is away when run is killed, and one of the addresses leads nowhere: the guard tries on.
func TestAGuardWaitsForTheServer(t *testing.T) {
	s := newStage(t)
	p := s.prepares("run", "--ttl", long, "a", "--", "sh", "-c", beating)
	p.Env = append(p.Env, "LEASEHOLD_SERVER=http://127.0.0.1:1,"+s.url)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	s.lastBeat()
	s.server.stop()
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	s.gone("pid")
	if err := s.server.open(); err != nil {
		t.Fatal(err)
	}
	if _, how := s.lastEnd("a"); how != "abandoned" {
		t.Errorf("it ended as %s", how)
	}
}

// A leader that is killed hands the lead on.
func TestAKilledLeaderIsFollowed(t *testing.T) {
	s := newStage(t)
	first := s.plays("elect", "--ttl", long, "lead", "--", "sh", "-c", beating)
	s.lastBeat()
	second := s.plays("elect", "--ttl", long, "lead", "--", "sh", "-c", "echo it >second")
	first.signal(syscall.SIGKILL)
	first.ends(-1)
	second.ends(0)
	s.file("second")
}

// The guard shows the same certificate as run did, which it learned of by a pipe.
func TestAGuardShowsACertificate(t *testing.T) {
	s := newStage(t)
	for _, args := range [][]string{{"cert", "ca"}, {"cert", "server", "n1"}, {"cert", "client", "ann"}} {
		s.plays(args...).ends(0)
	}
	server := s.plays("serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(s.dir, "data"),
		"--tls-client-ca", "certs/ca.crt", "--tls-cert", "certs/n1.crt", "--tls-key", "certs/n1.key")
	address := regexp.MustCompile(`https://127\.0\.0\.1:\d+`)
	s.soon("a greeting", func() bool { s.url = address.FindString(server.err.String()); return s.url != "" })
	trust := []string{"--ca", "certs/ca.crt", "--cert", "certs/ann.crt", "--key", "certs/ann.key"}
	p := s.plays(append(append([]string{"run", "--ttl", long, "a"}, trust...), "--", "sh", "-c", beating)...)
	s.lastBeat()
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	next := s.plays(append(append([]string{"run", "--ttl", long, "a"}, trust...), "--", "sh", "-c", "exit 5")...)
	next.ends(5)
}
