//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/test/process"
)

// patience is how long something is waited for that has to come.
const patience = time.Minute

// An output is what a process wrote.
type output struct {
	mu   sync.Mutex // guards what follows
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// A member is one process of the team, or the server.
type member struct {
	*process.Process
	t    *testing.T
	name string
	said output
}

// says waits until the member has written something.
func (m *member) says(pattern string) string {
	m.t.Helper()
	want := regexp.MustCompile(pattern)
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if found := want.FindString(m.said.String()); found != "" {
			return found
		}
		if time.Now().After(end) {
			m.t.Fatalf("%s does not say %q: %s", m.name, pattern, m.said.String())
		}
	}
}

// A team is a server and who meets there.
type team struct {
	t      *testing.T
	bin    string // the directory of the programs
	dir    string // of the files by which the test tells the agents to go on
	server string
}

// start starts a process with a name, which is also that of a holder. Its agents end with the test.
func (s *team) start(name, program string, args ...string) *member {
	s.t.Helper()
	m := &member{t: s.t, name: name}
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "DIR=" + s.dir, "LEASEHOLD_SERVER=" + s.server, "LEASEHOLD_HOLDER=" + name}
	cmd.Stderr, cmd.SysProcAttr = &m.said, &syscall.SysProcAttr{Setpgid: true}
	var err error
	if m.Process, err = process.StartCommand(cmd); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(m.kill)
	return m
}

// kill ends a process with all that it started, as if its machine had died.
func (m *member) kill() {
	_ = syscall.Kill(-m.Pid(), syscall.SIGKILL)
	m.Code()
}

// member starts one process of the team.
func (s *team) member(name string, args ...string) *member {
	s.t.Helper()
	return s.start(name, filepath.Join(s.bin, "agents"), append([]string{"-ttl", "3s"}, args...)...)
}

// lets tells an agent to answer, now and from now on.
func (s *team) lets(worker string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, worker), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// agent is what workers run in the place of a model: it answers when the test lets it.
const agent = `read -r prompt; until test -e "$DIR/$LEASEHOLD_HOLDER"; do sleep 0.02; done; echo "$prompt by $LEASEHOLD_HOLDER"`

func TestTeams(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "agents"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	leasehold := process.BuildTree(t, bin)
	for name, test := range map[string]func(*team){"hit hard": hitHard, "a long answer": longAnswer} {
		t.Run(name, func(t *testing.T) { test(newTeam(t, bin, leasehold)) })
	}
}

func newTeam(t *testing.T, bin, leasehold string) *team {
	t.Helper()
	s := &team{t: t, bin: bin, dir: t.TempDir()}
	server := s.start("server", leasehold, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(s.dir, "data"))
	s.server = strings.TrimSuffix(strings.TrimPrefix(server.says(`serves on http://\S+?,`), "serves on "), ",")
	return s
}

// doing returns which task a worker does.
func doing(m *member) string {
	m.t.Helper()
	path, _, _ := strings.Cut(m.says(`team/jobs/\d+: doing`), ":")
	return path
}

// hitHard: one worker is killed, one is paused until others have its task, and the leader is killed: every task is done once, by
// somebody who held it, and what the paused one says of its task is refused.
func hitHard(s *team) {
	t := s.t
	prompts := []string{"one", "two", "three", "four", "five"}
	first := s.member("leader", append([]string{"orchestrate"}, prompts...)...)
	first.says("leading, with token")
	second := s.member("deputy", append([]string{"orchestrate"}, prompts...)...)
	workers := map[string]*member{}
	for _, name := range []string{"killed", "paused", "steady"} {
		workers[name] = s.member(name, "work", "sh", "-c", agent)
	}
	orphan, late := doing(workers["killed"]), doing(workers["paused"])
	doing(workers["steady"])

	workers["killed"].kill()
	workers["paused"].Signal(syscall.SIGSTOP)
	first.kill()
	s.lets("paused") // its agent answers, and the worker cannot hear it
	s.lets("steady")
	for _, path := range []string{orphan, late} {
		workers["steady"].says(path + ": doing")
	}
	second.says("leading, with token")
	second.says("all 5 tasks are finished")
	if code := second.Code(); code != 0 {
		t.Errorf("the deputy ended with %d: %s", code, second.said.String())
	}
	workers["paused"].Signal(syscall.SIGCONT)
	workers["paused"].says(late + ": the result came too late and was refused")

	c, err := client.Dial(t.Context(), client.Config{Servers: []string{s.server}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tasks, err := c.Tasks(t.Context(), jobs)
	if err != nil || len(tasks) != len(prompts) {
		t.Errorf("there are %d tasks: %v", len(tasks), err)
	}
	for i, task := range tasks {
		if task.State != leasehold.TaskDone || task.Result != prompts[i]+" by steady" {
			t.Errorf("%s is %s by %s: %s", task.Path, task.State, task.Holder, task.Result)
		}
	}
	for _, name := range []string{"paused", "steady"} {
		if code := workers[name].End(syscall.SIGINT); code != 0 {
			t.Errorf("%s ended with %d: %s", name, code, workers[name].said.String())
		}
	}
}

// longAnswer: a long answer is in a record, and who is interrupted finishes what it does first.
func longAnswer(s *team) {
	orchestrator := s.member("leader", "orchestrate", "one")
	worker := s.member("worker", "work", "sh", "-c", agent+`; seq 2000`)
	doing(worker)
	worker.Signal(syscall.SIGTERM)
	s.lets("worker")
	orchestrator.says(`team/jobs/1 is done: worker see the record team/answers/1`)
	if code := worker.Code(); code != 0 {
		s.t.Errorf("it ended with %d: %s", code, worker.said.String())
	}
}
