//go:build linux

package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/mcp"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// An mcpAgent is the client of the SDK, with a "leasehold mcp" that it started.
type mcpAgent struct {
	t        *testing.T
	cmd      *exec.Cmd
	session  *sdk.ClientSession
	said     lockedBuffer
	progress atomic.Int64
}

// startMCP starts "leasehold mcp ARG..." with an environment.
func startMCP(t *testing.T, environ []string, args ...string) *mcpAgent {
	t.Helper()
	return startProgram(t, agentProgram{}, environ, args...)
}

// An agentProgram is what an agent runs in.
type agentProgram struct {
	person   func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) // nil: it can ask nobody
	revision string                                                               // of the protocol; empty: the newest
}

func startProgram(t *testing.T, p agentProgram, environ []string, args ...string) *mcpAgent {
	t.Helper()
	a := &mcpAgent{t: t, cmd: exec.Command("leasehold", append([]string{"mcp"}, args...)...)}
	a.cmd.Env = append(append([]string{}, environ...), "PATH="+os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0")
	a.cmd.Stderr = &a.said
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { a.progress.Add(1) },
		ElicitationHandler:          p.person,
	})
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: a.cmd},
		&sdk.ClientSessionOptions{ProtocolVersion: p.revision})
	if err != nil {
		t.Fatalf("%v: %s", err, a.said.String())
	}
	a.session = session
	t.Cleanup(a.leave)
	return a
}

// leave ends the agent's program, as one that closes its window does.
func (a *mcpAgent) leave() { _ = a.session.Close() }

// call calls a tool, and returns what it said.
func (a *mcpAgent) call(tool string, arguments map[string]any) string {
	a.t.Helper()
	params := &sdk.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken("p")
	r, err := a.session.CallTool(a.t.Context(), params)
	if err != nil {
		a.t.Fatalf("%s: %v: %s", tool, err, a.said.String())
	}
	return r.Content[0].(*sdk.TextContent).Text
}

// takes acquires, wants a status, and returns the id.
func (a *mcpAgent) takes(resource, status string, more ...any) string {
	a.t.Helper()
	arguments := map[string]any{"resources": []string{resource}, "reason": "a test"}
	for i := 0; i < len(more); i += 2 {
		arguments[more[i].(string)] = more[i+1]
	}
	text := a.call("lease_acquire", arguments)
	var got struct{ ID, Status string }
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Status != status {
		a.t.Fatalf("%s is %q, want %s: %s", resource, got.Status, status, text)
	}
	return got.ID
}

// has wants a text in what a tool said.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("there is no %q in %s", w, text)
		}
	}
}

// TestMCPStory tells the whole story over standard input and output, against a server that was named.
func TestMCPStory(t *testing.T) {
	s := newStage(t)
	environ := []string{"LEASEHOLD_SERVER=" + s.url, "HOME=" + s.dir}
	ann, bob := startMCP(t, environ), startMCP(t, environ, "--holder", "bob")
	tools, err := ann.session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 5 {
		t.Fatalf("there are %d tools: %v", len(tools.Tools), err)
	}
	first := ann.takes("repo/web:login.go", "held", "request_id", "1")
	if again := ann.takes("repo/web:login.go", "held", "request_id", "1"); again != first {
		t.Errorf("a request has the leases %s and %s", first, again)
	}
	ticket := bob.takes("repo/web:login.go", "waiting", "wait_seconds", 6)
	if bob.progress.Load() == 0 {
		t.Error("bob was told of no progress")
	}
	has(t, bob.call("lease_ask", map[string]any{"resource": "repo/web:login.go", "message": "please release"}), "delivered_to")
	has(t, ann.call("lease_check", nil), "please release")
	has(t, ann.call("lease_release", map[string]any{"ids": []string{first}}), "repo/web:login.go")
	has(t, bob.call("lease_check", map[string]any{"ids": []string{ticket}, "wait_seconds": 20}), `"held"`, `"token":2`)

	// What an agent without a name holds ends with it; what bob holds is there when bob comes back.
	ann.takes("env/staging", "held")
	ann.leave()
	if _, how := s.lastEnd("env/staging"); how != "abandoned" {
		t.Errorf("the lease of an agent that left ended by %s", how)
	}
	bob.leave()
	back := startMCP(t, environ, "--holder", "bob")
	has(t, back.call("lease_check", nil), ticket, `"held"`)
}

// The person behind an agent is asked before the agent ends the work of another, whatever revision of the protocol the
// agent's program speaks; where a program can ask nobody, the operator's switch decides alone.
func TestAPersonIsAskedOverStandardInput(t *testing.T) {
	t.Parallel()
	e := memory.Start(engine.NewGoClock())
	t.Cleanup(func() { _ = e.Close() })
	kind := mcp.Kind
	kind.Open = func(b *door.Backend, _ door.Settings) (door.Door, error) {
		return mcp.New(b, mcp.Config{Break: true}).Door(), nil
	}
	server := httptest.NewServer(door.MustHost(e, door.HostConfig{}, kind))
	t.Cleanup(server.Close)
	environ := []string{"LEASEHOLD_SERVER=" + server.URL, "HOME=" + t.TempDir()}
	ann := startMCP(t, environ, "--holder", "ann")
	for _, revision := range []string{"", "2025-06-18"} {
		for answer, want := range map[string]string{"accept": `"holder":"ann"`, "decline": `"code":"denied"`, "": `"holder":"ann"`} {
			id := ann.takes("task/1", "held")
			var asked atomic.Int64
			p := agentProgram{revision: revision}
			if answer != "" {
				p.person = func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked.Add(1)
					return &sdk.ElicitResult{Action: answer}, nil
				}
			}
			bob := startProgram(t, p, environ, "--holder", "bob")
			said := bob.call("lease_break", map[string]any{"resource": "task/1", "reason": "a test", "period_seconds": 600})
			if (asked.Load() == 1) != (answer != "") {
				t.Errorf("the person was asked %d times", asked.Load())
			}
			has(t, said, want)
			bob.leave()
			ann.call("lease_release", map[string]any{"ids": []string{id}})
		}
	}
}

// A program that ends in the middle of a call takes nothing with it that others would have to wait for: neither what its
// agent held, nor what the call gets after that.
func TestAnAgentLeavesInTheMiddleOfACall(t *testing.T) {
	s := newStage(t)
	environ := []string{"LEASEHOLD_SERVER=" + s.url, "HOME=" + s.dir}
	bob := startMCP(t, environ, "--holder", "bob")
	bobs := bob.takes("task/busy", "held")
	ann := exec.Command("leasehold", "mcp")
	ann.Env = append(environ, "PATH="+os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0")
	stdin, err := ann.StdinPipe()
	if err == nil {
		err = ann.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"lease_acquire","arguments":` +
			`{"resources":["task/mine"],"reason":"a test"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"lease_acquire","arguments":` +
			`{"resources":["task/busy"],"reason":"a test","wait_seconds":20}}}`,
	} {
		if _, err := stdin.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	eve := startMCP(t, environ, "--holder", "eve")
	begun := func() bool {
		list := eve.call("lease_list", nil)
		return strings.Contains(list, `"waiting":1`) && strings.Contains(list, "task/mine")
	}
	for end := time.Now().Add(patienceOfScripts); !begun(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("ann does not wait: %s", eve.call("lease_list", nil))
		}
	}
	_ = stdin.Close()
	if err := ann.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, how := s.lastEnd("task/mine"); how != "abandoned" {
		t.Errorf("what ann held ended by %s", how)
	}
	has(t, bob.call("lease_release", map[string]any{"ids": []string{bobs}}), "released")
	eve.takes("task/busy", "held")
	eve.takes("task/mine", "held")
}

// alone is an environment in which nobody named a server. What was started in it ends with the test.
func alone(t *testing.T) (environ []string, dir string) {
	t.Helper()
	home := t.TempDir()
	dir = filepath.Join(home, ".local", "state", "leasehold", "agents")
	t.Cleanup(func() {
		if pid := sharedServer(t, dir); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			for end := time.Now().Add(patienceOfScripts); alive(pid) && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	return []string{"HOME=" + home}, dir
}

// sharedServer returns the process of the server that agents share; 0: there is none.
func sharedServer(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "address.json"))
	if err != nil {
		return 0
	}
	var p struct{ PID int }
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p.PID
}

// Two agents that start at once, with no server anywhere, find each other. When the server dies, they find another,
// with all that was held.
func TestTwoAgentsLiveInOneWorld(t *testing.T) {
	t.Parallel()
	environ, dir := alone(t)
	started := make(chan *mcpAgent, 4)
	for range cap(started) {
		go func() { started <- startMCP(t, environ, "--local", "127.0.0.1:0") }()
	}
	first := <-started
	id := first.takes("task/1", "held")
	for range cap(started) - 1 {
		(<-started).takes("task/1", "waiting")
	}
	pid := sharedServer(t, dir)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	has(t, first.call("lease_check", map[string]any{"ids": []string{id}}), `"held"`)
	if next := sharedServer(t, dir); next == pid || next == 0 {
		t.Errorf("the server %d was followed by %d", pid, next)
	}
}

// A server that was started for agents stays while there is one, and ends after the last.
func TestTheSharedServerEndsAfterTheLastAgent(t *testing.T) {
	t.Parallel()
	environ, dir := alone(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("leasehold", "mcp-server", "127.0.0.1:0", "100ms")
	server.Env = append(environ, "PATH="+os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0")
	// An agent is there before the server is, so that the server is never alone until the agent has left.
	present, err := os.OpenFile(filepath.Join(dir, "clients"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(present.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	var said lockedBuffer
	server.Stderr = &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patienceOfScripts); sharedServer(t, dir) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not start: %s", said.String())
		}
	}
	a := startMCP(t, environ)
	a.takes("task/1", "held")
	if err := present.Close(); err != nil {
		t.Fatal(err)
	}
	has(t, a.call("lease_check", nil), `"held"`)
	a.leave()
	if err := server.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, said.String())
	}
	if sharedServer(t, dir) != 0 {
		t.Error("its address is still there")
	}
}

// People who are told of no server look at the one that their agents share.
func TestPeopleFindTheServerOfTheirAgents(t *testing.T) {
	t.Parallel()
	if c, err := net.Dial("tcp", "127.0.0.1:4653"); err == nil {
		_ = c.Close()
		t.Skip("left out: somebody serves at the usual address of this machine")
	}
	environ, _ := alone(t)
	a := startMCP(t, environ, "--local", "127.0.0.1:0", "--holder", "ann")
	a.takes("repo/web:README.md", "held")
	run := func(args ...string) string {
		cmd := exec.Command("leasehold", args...)
		cmd.Env = append(environ, "PATH="+os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0")
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, said)
		}
		return string(said)
	}
	has(t, run("list", "repo/"), "repo/web:README.md", "ann")
	run("ask", "repo/web:README.md", "please release")
	has(t, a.call("lease_check", nil), "please release")
	run("break", "repo/web:README.md", "--now", "--yes", "--reason", "its machine died")
	has(t, a.call("lease_check", nil), `"lost"`, "broken")
	run("run", "repo/web:README.md", "--", "true")
}

// The hook of an agent renews what that agent holds, and finds it by their common parent.
func TestAHookRenewsItsAgent(t *testing.T) {
	s := newStage(t)
	environ := []string{"LEASEHOLD_SERVER=" + s.url, "HOME=" + s.dir}
	a := startMCP(t, environ) // this test is the agent's program, and so its parent
	a.takes("task/1", "held", "ttl_seconds", 10)
	hook := func(extra ...string) string {
		cmd := exec.Command("sh", "-c", "leasehold renew --mine")
		cmd.Env = append(append(environ, "PATH="+os.Getenv("PATH")), extra...)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return string(said)
	}
	has(t, hook(), "renewed: what")
	has(t, hook("LEASEHOLD_HOLDER=somebody"), "renewed: what somebody holds")
	for range 3 {
		time.Sleep(4 * time.Second)
		hook()
	}
	has(t, a.call("lease_check", nil), `"held"`)
	a.leave()
	has(t, hook(), "nothing of its own to renew")
}
