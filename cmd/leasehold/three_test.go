package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A yard is a directory with real servers, each a process of its own.
type yard struct {
	*testing.T
	dir     string
	env     []string
	servers map[string]*serverProcess
}

type serverProcess struct {
	cmd   *exec.Cmd
	log   string
	args  []string
	ended chan struct{} // closed when it has
}

func newYard(t *testing.T) *yard {
	y := &yard{T: t, dir: t.TempDir(), servers: map[string]*serverProcess{}}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "LEASEHOLD_") {
			y.env = append(y.env, entry)
		}
	}
	y.env = append(y.env, "GORACE=atexit_sleep_ms=0")
	t.Cleanup(func() {
		for _, p := range y.servers {
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		if t.Failed() {
			y.showLogs()
		}
	})
	return y
}

func (y *yard) showLogs() {
	for name, p := range y.servers {
		text, _ := os.ReadFile(p.log)
		y.Logf("the log of %s:\n%s", name, text)
	}
}

// patienceOfYards is far more than anything takes, on any machine.
const patienceOfYards = 2 * time.Minute

// eventually tries until something is so.
func (y *yard) eventually(what string, try func() (seen string, ok bool)) {
	y.Helper()
	for end := time.Now().Add(patienceOfYards); ; time.Sleep(50 * time.Millisecond) {
		seen, ok := try()
		if ok {
			return
		}
		if time.Now().After(end) {
			y.Fatalf("%s did not happen; last seen:\n%s", what, seen)
		}
	}
}

// start starts a server, or starts it again.
func (y *yard) start(name string, args ...string) *serverProcess {
	y.Helper()
	p := &serverProcess{log: filepath.Join(y.dir, name+".log"), args: args, ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		y.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command("leasehold", append([]string{"serve"}, args...)...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = y.dir, y.env, log
	if err := p.cmd.Start(); err != nil {
		y.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	y.servers[name] = p
	return p
}

// joins starts a server that is to join, and prepares the place that it asks for, as it says.
func (y *yard) joins(name string, args ...string) {
	y.Helper()
	p, advice := y.start(name, args...), regexp.MustCompile(`prepare one with leasehold (cluster add \S+ [0-9.:]+)`)
	var command []string
	y.eventually("the wish of "+name+" for a place", func() (string, bool) {
		text, _ := os.ReadFile(p.log)
		if found := advice.FindSubmatch(text); found != nil {
			command = strings.Fields(string(found[1]))
		}
		return string(text), command != nil
	})
	y.succeeds(command...)
}

// end ends a server by a signal, and returns the code it ended with.
func (y *yard) end(name string, signal syscall.Signal) int {
	y.Helper()
	p := y.servers[name]
	if err := p.cmd.Process.Signal(signal); err != nil {
		y.Fatal(err)
	}
	return y.awaitEnd(name)
}

// endsWell tells a server to stop, which it does without complaint, but for a disk that
// is too slow to write the rest in time.
func (y *yard) endsWell(name string) {
	y.Helper()
	code := y.end(name, syscall.SIGTERM)
	if text, _ := os.ReadFile(y.servers[name].log); code != 0 &&
		!strings.Contains(string(text), "did not finish within") {
		y.Errorf("%s ended with code %d:\n%s", name, code, text)
	}
}

func (y *yard) awaitEnd(name string) int {
	y.Helper()
	p := y.servers[name]
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patienceOfYards):
		y.Fatalf("%s does not end", name)
		return 0
	}
}

// does runs a command once.
func (y *yard) does(args ...string) (out string, talk string, code int) {
	y.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patienceOfYards)
	defer cancel()
	cmd := exec.CommandContext(ctx, "leasehold", args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = y.dir, y.env, &stdout, &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		y.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// succeeds runs a command until it ends well.
func (y *yard) succeeds(args ...string) (out string) {
	y.Helper()
	y.eventually("leasehold "+strings.Join(args, " "), func() (string, bool) {
		stdout, stderr, code := y.does(args...)
		out = stdout
		return stdout + stderr, code == 0
	})
	return out
}

// well waits until nothing is wrong with a number of voters.
func (y *yard) well(voters int) (cluster v1.Cluster) {
	y.Helper()
	y.eventually(fmt.Sprintf("a cluster of %d", voters), func() (string, bool) {
		stdout, stderr, code := y.does("cluster", "status", "--check", "-o", "json")
		cluster = v1.Cluster{}
		if code != 0 || json.Unmarshal([]byte(stdout), &cluster) != nil {
			return stdout + stderr, false
		}
		n := 0
		for _, s := range cluster.Servers {
			if s.Voter && s.Reachable {
				n++
			}
		}
		return stdout, n == voters
	})
	return cluster
}

// token returns that of the lease on a resource, whichever server is asked.
func (y *yard) token(resource string) (token uint64) {
	y.Helper()
	var r v1.Resource
	if err := json.Unmarshal([]byte(y.succeeds("describe", resource, "-o", "json")), &r); err != nil {
		y.Fatal(err)
	}
	if len(r.Holders) != 1 {
		y.Fatalf("%s has %d holders", resource, len(r.Holders))
	}
	return r.Holders[0].Token
}

// freePorts are some at which nobody listens, below those that the system gives away by
// itself: a server that is started again finds its own free.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	var open []net.Listener
	for tries := 0; len(ports) < n && tries < 1000; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(17000)))
		if err != nil {
			continue
		}
		open = append(open, l)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	for _, l := range open {
		l.Close()
	}
	if len(ports) < n {
		t.Fatal("there are no free ports")
	}
	return ports
}

// commandsOf are the lines of the first block of commands under a heading of a page, with
// other ports than the page has.
func commandsOf(t *testing.T, page, heading string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+heading)
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(section)
	if !found || block == nil {
		t.Fatalf("%s has no commands under %q", page, heading)
	}
	port := regexp.MustCompile(`\b46\d\d\b`)
	written := port.FindAllString(block[1], -1)
	slices.Sort(written)
	written = slices.Compact(written)
	others := freePorts(t, len(written))
	for i := range written {
		block[1] = strings.ReplaceAll(block[1], written[i], others[i])
	}
	return strings.Split(strings.TrimSpace(block[1]), "\n")
}

// follow does what a page says: what ends with & goes on, an export is for all that comes.
func (y *yard) follow(lines []string) (started bool) {
	y.Helper()
	for _, line := range lines {
		words := strings.Fields(line)
		switch {
		case words[0] == "export":
			y.env = append(y.env, words[1:]...)
		case words[len(words)-1] == "&":
			name := words[slices.Index(words, "--name")+1]
			y.start(name, words[2:len(words)-1]...)
		default:
			if !y.bound() {
				return false
			}
			y.succeeds(words[1:]...)
		}
	}
	return true
}

// bound reports whether all servers got their addresses, once it is known.
func (y *yard) bound() (ok bool) {
	y.Helper()
	y.eventually("servers that run, or do not", func() (string, bool) {
		ok = true
		for name, p := range y.servers {
			select {
			case <-p.ended:
				text, _ := os.ReadFile(p.log)
				if ok = false; !strings.Contains(string(text), "address already in use") {
					y.Fatalf("%s ended:\n%s", name, text)
				}
				return "", true
			default:
			}
			text, _ := os.ReadFile(p.log)
			if !strings.Contains(string(text), "leasehold serves on") {
				return string(text), false
			}
		}
		return "", true
	})
	return ok
}

// What docs/cluster.md lets people try on one machine works as it says.
func TestThreeOnOneMachine(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	for tries := 0; !y.follow(commandsOf(t, "../../docs/cluster.md", "Three on one machine")); tries++ {
		if tries == 10 {
			t.Fatal("somebody takes every port")
		}
		for name, p := range y.servers {
			_ = p.cmd.Process.Kill()
			<-p.ended
			_ = os.RemoveAll(filepath.Join(y.dir, name))
			_ = os.Remove(p.log)
			delete(y.servers, name)
		}
	}
	cluster := y.well(3)
	token := y.token("my/first")

	// Whoever leads may die.
	victim := cluster.Leader
	y.end(victim, syscall.SIGKILL)
	if got := y.token("my/first"); got != token {
		t.Errorf("the token is %d, and was %d", got, token)
	}
	y.succeeds("acquire", "my/second", "--id", "second", "--ttl", "1h")
	y.eventually("an alarm while "+victim+" is away", func() (string, bool) {
		out, _, code := y.does("cluster", "status", "--check")
		return out, code == cli.ExitAlarm && strings.Contains(out, "-> "+victim+" is away")
	})
	y.start(victim, y.servers[victim].args...)
	y.well(3)

	// All of them are restarted, one after the other, and end well.
	for name, p := range y.servers {
		y.endsWell(name)
		y.succeeds("renew", "second")
		y.start(name, p.args...)
		y.well(3)
	}
	if got := y.token("my/first"); got != token {
		t.Errorf("the token is %d, and was %d", got, token)
	}
	y.compareStates()

	// The lead goes where it is sent; who is removed says so and ends.
	next := y.well(3).Servers[0].Name
	y.succeeds("cluster", "transfer", next)
	if got := y.well(3).Leader; got != next {
		t.Errorf("%s leads, and not %s", got, next)
	}
	y.succeeds("cluster", "remove", next, "--yes")
	if code := y.awaitEnd(next); code != cli.ExitUsage {
		t.Errorf("%s was removed and ended with code %d", next, code)
	}
	text, _ := os.ReadFile(y.servers[next].log)
	if !strings.Contains(string(text), "removed from the cluster") {
		t.Errorf("%s does not say why it ended:\n%s", next, text)
	}
	y.well(2)
	y.succeeds("renew", "second")
}

// compareStates asks all servers for a hash of what they have.
func (y *yard) compareStates() {
	y.Helper()
	var servers []string
	for _, entry := range y.env {
		if list, ok := strings.CutPrefix(entry, "LEASEHOLD_SERVER="); ok {
			servers = strings.Split(list, ",")
		}
	}
	caller, err := v1.NewCaller(v1.CallerConfig{Servers: servers})
	if err != nil {
		y.Fatal(err)
	}
	defer caller.CloseIdle()
	y.eventually("three sums", func() (string, bool) {
		sums, err := caller.CheckCluster(y.Context())
		if err == nil && !sums.Same {
			y.Fatalf("the servers have different states: %+v", sums)
		}
		answered := 0
		for _, s := range sums.Items {
			if s.Hash != "" {
				answered++
			}
		}
		return fmt.Sprint(sums, err), err == nil && answered == 3
	})
}

// A server that was alone, and in plain, becomes three with certificates, and keeps
// every lease.
func TestFromOneToThreeInTLS(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	for _, words := range []string{
		"cert ca", "cert server n1", "cert server n2", "cert server n3", "cert client ann", "cert ca --dir other",
		"cert server n3 --dir other",
	} {
		y.succeeds(strings.Fields(words)...)
	}
	y.start("n1", "--name", "n1", "--data", "n1", "--listen", "127.0.0.1:0")
	y.use("n1")
	y.succeeds("acquire", "my/first", "--ttl", "1h", "--id", "first")
	token := y.token("my/first")
	y.endsWell("n1")

	papers := func(name, ca string) []string {
		pair := []string{filepath.Join(ca, name+".crt"), filepath.Join(ca, name+".key"), filepath.Join(ca, "ca.crt")}
		return []string{
			"--name", name, "--data", name, "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0",
			"--tls-cert", pair[0], "--tls-key", pair[1], "--tls-client-ca", pair[2], "--peer-cert", pair[0],
			"--peer-key", pair[1], "--peer-ca", pair[2],
		}
	}
	y.env = append(y.env, "LEASEHOLD_CA=certs/ca.crt", "LEASEHOLD_CERT=certs/ann.crt", "LEASEHOLD_KEY=certs/ann.key")
	_ = os.Remove(y.servers["n1"].log)
	y.start("n1", papers("n1", "certs")...)
	y.use("n1")
	peer := y.well(1).Servers[0].Peer
	y.joins("n2", append(papers("n2", "certs"), "--join", peer)...)
	y.well(2)

	// A server of another authority is not taken in.
	stranger := y.start("n3", append(papers("n3", "other"), "--join", peer)...)
	y.eventually("a refusal of the stranger", func() (string, bool) {
		text, _ := os.ReadFile(stranger.log)
		return string(text), strings.Contains(string(text), "certificate")
	})
	_ = stranger.cmd.Process.Kill()
	<-stranger.ended
	if err := os.RemoveAll(filepath.Join(y.dir, "n3")); err != nil {
		t.Fatal(err)
	}
	if n := len(y.well(2).Servers); n != 2 {
		t.Errorf("the cluster has %d servers", n)
	}

	y.joins("n3", append(papers("n3", "certs"), "--join", peer)...)
	cluster := y.well(3)
	if got := y.token("my/first"); got != token {
		t.Errorf("the token is %d, and was %d", got, token)
	}
	// The server that everything began with may go.
	y.eventually("addresses of all", func() (string, bool) {
		cluster = y.well(3)
		var urls []string
		for _, s := range cluster.Servers {
			if s.Client != "" {
				urls = append(urls, s.Client)
			}
		}
		y.env = append(y.env, "LEASEHOLD_SERVER="+strings.Join(urls, ","))
		return fmt.Sprint(urls), len(urls) == 3
	})
	y.end("n1", syscall.SIGKILL)
	y.succeeds("renew", "first")
	if got := y.token("my/first"); got != token {
		t.Errorf("the token is %d, and was %d", got, token)
	}
}

// use has commands talk to one server from now on.
func (y *yard) use(name string) {
	y.Helper()
	greeting := regexp.MustCompile(`leasehold serves on (\S+),`)
	y.eventually(name+" to serve", func() (string, bool) {
		text, _ := os.ReadFile(y.servers[name].log)
		found := greeting.FindAllSubmatch(text, -1)
		if found == nil {
			return string(text), false
		}
		y.env = append(y.env, "LEASEHOLD_SERVER="+string(found[len(found)-1][1]))
		return "", true
	})
}
