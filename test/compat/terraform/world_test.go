// Package terraform runs the real Terraform, and OpenTofu where it is there, against real
// servers. A part of it runs with all tests; all of it with -full, which make compat gives.
package terraform

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var full = flag.Bool("full", false, "everything, also what takes minutes")

// binary is the server and command line, built once.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if _, err := exec.LookPath("terraform"); err != nil {
		return m.Run() // each test says that it is left out
	}
	dir, err := os.MkdirTemp("", "compat-terraform-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "leasehold")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/leasehold/leasehold/cmd/leasehold").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// programs are those that are here.
func programs(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range []string{"terraform", "tofu"} {
		if _, err := exec.LookPath(name); err == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 || names[0] != "terraform" {
		t.Skip("left out: terraform is not on this machine")
	}
	return names
}

// each runs a test with each program, in a world of its own.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	for _, program := range programs(t) {
		t.Run(program, func(t *testing.T) { test(t, newWorld(t, program)) })
	}
}

// onlyFull leaves a test out that takes long.
func onlyFull(t *testing.T) {
	t.Helper()
	if !*full {
		t.Skip("left to: make compat")
	}
}

// A world is a server, something before it that loses messages, and people who run
// Terraform.
type world struct {
	t       *testing.T
	program string
	data    string
	flags   []string // of the server, beside those that each has
	front   *httptest.Server
	state   string

	mu     sync.Mutex // guards what follows
	server *exec.Cmd
	behind *url.URL
	fault  func(r *http.Request) fault
}

// A fault is what becomes of one request.
type fault struct {
	lose  bool // its answer does not arrive
	kill  bool // the server is killed, and started again
	early bool // before it gets the request, and not after it has answered
}

func newWorld(t *testing.T, program string) *world {
	t.Helper()
	w := &world{t: t, program: program, data: filepath.Join(t.TempDir(), "data"), state: "prod/net"}
	w.start()
	t.Cleanup(func() { w.end(syscall.SIGTERM) })
	w.front = httptest.NewServer(http.HandlerFunc(w.pass))
	t.Cleanup(w.front.Close)
	return w
}

// start starts the server and returns when it says where it is.
func (w *world) start() {
	server := exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", w.data,
		"--min-free", "0"}, w.flags...)...)
	server.Env = []string{}
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		_, rest, ok := strings.Cut(lines.Text(), "http://")
		if !ok {
			continue
		}
		at, err := url.Parse("http://" + strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ' ' })[0])
		if err != nil {
			break
		}
		go func() { // it must not block on a full pipe
			for lines.Scan() {
			}
		}()
		w.mu.Lock()
		w.server, w.behind = server, at
		w.mu.Unlock()
		return
	}
	w.t.Errorf("the server did not say where it is: %v", server.Wait())
}

func (w *world) end(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server == nil {
		return
	}
	_ = w.server.Process.Signal(s)
	_ = w.server.Wait()
	w.server = nil
}

func (w *world) restart() {
	w.end(syscall.SIGKILL)
	w.start()
}

func (w *world) setFault(fn func(r *http.Request) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fn
}

// pass stands before the server, at an address that stays.
func (w *world) pass(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	decide, behind := w.fault, w.behind
	w.mu.Unlock()
	f := fault{}
	if decide != nil {
		f = decide(r)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	if f == (fault{}) {
		proxy.ServeHTTP(rw, r)
		return
	}
	if !f.early {
		proxy.ServeHTTP(httptest.NewRecorder(), r)
	}
	if f.kill {
		w.restart()
	}
	panic(http.ErrAbortHandler)
}

// nth makes a fault of the nth request of a method.
func nth(method string, n int64, f fault) func(*http.Request) fault {
	var seen atomic.Int64
	return func(r *http.Request) fault {
		if r.Method == method && seen.Add(1) == n {
			return f
		}
		return fault{}
	}
}

// address is where the state is, for Terraform.
func (w *world) address(query string) string { return w.front.URL + "/terraform/" + w.state + query }

// A person has a directory with a configuration, and runs Terraform in it.
type person struct {
	w    *world
	dir  string
	lock string // what follows the lock's address

	password  string // that Terraform sends
	tokenFile string // of the command line
}

// somebody makes a person who has run init.
func (w *world) somebody(configuration string) *person {
	w.t.Helper()
	p := &person{w: w, dir: w.t.TempDir()}
	p.configure(configuration)
	p.must("init")
	return p
}

func (p *person) configure(configuration string) {
	p.w.t.Helper()
	text := "terraform {\n  backend \"http\" {}\n}\n" + configuration
	if err := os.WriteFile(filepath.Join(p.dir, "main.tf"), []byte(text), 0o600); err != nil {
		p.w.t.Fatal(err)
	}
}

// patience is how long anything may take before it is given up.
const patience = 3 * time.Minute

func (p *person) environ() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TF_CLI_CONFIG_FILE=/dev/null", "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_INPUT=0",
		"TF_HTTP_ADDRESS=" + p.w.address(""), "TF_HTTP_LOCK_ADDRESS=" + p.w.address(p.lock), "TF_HTTP_UNLOCK_ADDRESS=" + p.w.address(""),
		"TF_HTTP_RETRY_MAX=8", "TF_HTTP_RETRY_WAIT_MAX=2", "LEASEHOLD_SERVER=" + p.w.front.URL,
	}
	if p.password != "" {
		env = append(env, "TF_HTTP_USERNAME=anybody", "TF_HTTP_PASSWORD="+p.password)
	}
	if p.tokenFile != "" {
		env = append(env, "LEASEHOLD_TOKEN_FILE="+p.tokenFile)
	}
	return env
}

// A command is a program that runs.
type command struct {
	*exec.Cmd
	t    *testing.T
	out  *strings.Builder
	done chan struct{}
}

// begin starts a program in the person's directory.
func (p *person) begin(name string, args ...string) *command {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c := &command{Cmd: exec.CommandContext(ctx, name, args...), t: p.w.t, out: &strings.Builder{}, done: make(chan struct{})}
	c.Dir, c.Env, c.Stdout, c.Stderr = p.dir, p.environ(), c.out, c.out
	c.WaitDelay = 10 * time.Second // what was killed may have left children with its output
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		p.w.t.Fatal(err)
	}
	go func() {
		defer cancel()
		defer close(c.done)
		_ = c.Wait()
	}()
	p.w.t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what it left behind
		<-c.done
	})
	return c
}

// terraform starts the program of this world.
func (p *person) terraform(args ...string) *command {
	p.w.t.Helper()
	if args[0] != "force-unlock" && args[0] != "state" {
		args = append(args[:1:1], append([]string{"-no-color"}, args[1:]...)...)
	}
	return p.begin(p.w.program, args...)
}

// code is how it ended.
func (c *command) code() int {
	<-c.done
	return c.ProcessState.ExitCode()
}

// said waits until it ends, well or not, and returns what it said.
func (c *command) said() string {
	<-c.done
	return c.out.String()
}

// succeeds fails the test unless it ended well.
func (c *command) succeeds() string {
	c.t.Helper()
	if code := c.code(); code != 0 {
		c.t.Fatalf("%v ended with %d:\n%s", c.Args, code, c.out)
	}
	return c.out.String()
}

// fails fails the test unless it ended badly, and said why.
func (c *command) fails(texts ...string) string {
	c.t.Helper()
	if code := c.code(); code == 0 {
		c.t.Fatalf("%v ended well:\n%s", c.Args, c.out)
	}
	said := strings.Join(strings.Fields(strings.ReplaceAll(c.out.String(), "│", " ")), " ")
	for _, text := range texts {
		if !strings.Contains(said, text) {
			c.t.Errorf("%v did not say %q:\n%s", c.Args, text, c.out)
		}
	}
	return said
}

func (p *person) must(args ...string) string {
	p.w.t.Helper()
	return p.terraform(args...).succeeds()
}

func (p *person) apply(args ...string) *command {
	p.w.t.Helper()
	return p.terraform(append([]string{"apply", "-auto-approve"}, args...)...)
}

// leasehold runs the command line.
func (p *person) leasehold(args ...string) *command {
	p.w.t.Helper()
	return p.begin(binary, args...)
}

// A shown is what leasehold state show tells.
type shown struct {
	Serial   int
	Lineage  string
	Versions int
	Lock     *struct{ Who, Lock, Operation string }
}

// shows asks how the state is.
func (p *person) shows() (s shown) {
	p.w.t.Helper()
	c := p.leasehold("state", "show", p.w.state, "-o", "json")
	if c.code() == 66 {
		return s // there is neither a state nor a lock
	}
	out := c.succeeds()
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		p.w.t.Fatalf("%v: %s", err, out)
	}
	return s
}

// isFree fails the test if the state is locked.
func (p *person) isFree() shown {
	p.w.t.Helper()
	s := p.shows()
	if s.Lock != nil {
		p.w.t.Errorf("an orphan: %+v", s.Lock)
	}
	return s
}

// resources lists what is in the state.
func (p *person) resources() []string {
	p.w.t.Helper()
	return strings.Fields(p.terraform("state", "list").succeeds())
}

// until waits for something that will be.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("it did not come to this: " + what)
		}
	}
}

// A gate is a resource whose making goes on until the test lets it.
type gate struct{ dir string }

func newGate(t *testing.T) gate { return gate{t.TempDir()} }

// configuration is that of a resource before the gate and one behind it.
func (g gate) configuration() string {
	return fmt.Sprintf(`
resource "terraform_data" "before" {}
resource "terraform_data" "gate" {
  depends_on = [terraform_data.before]
  provisioner "local-exec" {
    command = "touch %[1]s/began; until test -e %[1]s/open; do sleep 0.02; done"
  }
}
`, g.dir)
}

func (g gate) began() bool {
	_, err := os.Stat(filepath.Join(g.dir, "began"))
	return err == nil
}

func (g gate) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, os.ErrNotExist)
}
