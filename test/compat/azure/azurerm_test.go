package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A stack is a Terraform configuration in a directory of its own, whose state is in the
// azurerm backend.
type stack struct {
	*server
	t    *testing.T
	dir  string
	tool string
	env  []string
}

// terraform returns where the program is, or leaves the test out.
func terraform(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("left out: terraform is not installed here")
	}
	return path
}

// The recipes: the account by its name and key, through a proxy that knows the name; and
// by its address alone, with a client secret and tokens.
const (
	byName    = 1
	byAddress = 2
)

// newStack makes a configuration. main is what it consists of besides its backend.
func (s *server) newStack(t *testing.T, recipe int, key, main string) *stack {
	t.Helper()
	k := &stack{server: s, t: t, dir: t.TempDir(), tool: terraform(t)}
	// As it is printed to be pasted.
	args := []string{"terraform", "config", "--azurerm", key, "--account", accountName, "--azure-address", s.azure, "-o", "json"}
	k.env = append(os.Environ(), "SSL_CERT_FILE="+filepath.Join(s.dir, "ca.pem"), "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1", "NO_COLOR=1")
	switch recipe {
	case byName:
		args = append(args, "--by-name")
		k.env = append(k.env, "ARM_ACCESS_KEY="+s.key, "HTTPS_PROXY="+startProxy(t, func() string { return s.azure }), "NO_PROXY=")
	case byAddress:
		k.env = append(k.env, "ARM_CLIENT_SECRET="+s.key)
	}
	var setup struct{ Backend string }
	check(t, json.Unmarshal([]byte(s.leasehold(t, args...)), &setup))
	check(t, os.WriteFile(filepath.Join(k.dir, "main.tf"), []byte(setup.Backend+main), 0o600))
	return k
}

// beside is another who works on the same state.
func (k *stack) beside() *stack {
	k.t.Helper()
	other := *k
	other.dir = k.t.TempDir()
	text, err := os.ReadFile(filepath.Join(k.dir, "main.tf"))
	check(k.t, err)
	check(k.t, os.WriteFile(filepath.Join(other.dir, "main.tf"), text, 0o600))
	other.ok("init")
	return &other
}

func (k *stack) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), k.tool, args...)
	cmd.Dir, cmd.Env = k.dir, k.env
	return cmd
}

// run runs Terraform and returns what it says.
func (k *stack) run(args ...string) (string, error) {
	out, err := k.command(args...).CombinedOutput()
	return string(out), err
}

func (k *stack) ok(args ...string) string {
	k.t.Helper()
	out, err := k.run(args...)
	if err != nil {
		k.t.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// fails expects a failure that says something.
func (k *stack) fails(says string, args ...string) string {
	k.t.Helper()
	out, err := k.run(args...)
	if err == nil || !regexp.MustCompile(says).MatchString(flat(out)) {
		k.t.Fatalf("terraform %s: %v, and does not say %q\n%s", strings.Join(args, " "), err, says, out)
	}
	return out
}

// flat undoes how Terraform draws its messages.
func flat(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(s)), " ")
}

// apply applies with a value.
func (k *stack) apply(value string, more ...string) []string {
	return append([]string{"apply", "-auto-approve", "-no-color", "-var", "v=" + value}, more...)
}

func (k *stack) serial() int {
	k.t.Helper()
	var state struct{ Serial int }
	out, err := k.command("state", "pull").Output()
	check(k.t, err)
	if err := json.Unmarshal(out, &state); err != nil {
		k.t.Fatalf("%v: %s", err, out)
	}
	return state.Serial
}

// one is a configuration with one resource, which is new with each value of v. If gate
// names a file, making it waits until that is gone.
const one = `
variable "v" { default = "0" }
variable "gate" { default = "" }
resource "terraform_data" "one" {
  input            = var.v
  triggers_replace = var.v
  provisioner "local-exec" {
    command = "if [ -n '${var.gate}' ]; then touch '${var.gate}.reached'; while [ -e '${var.gate}' ]; do sleep 0.05; done; fi"
  }
}
`

// A gated run of Terraform stops in the midst of an apply until it is let go.
type gated struct {
	*exec.Cmd
	k    *stack
	gate string
	out  *lines
	done chan error
}

func (k *stack) startGated(value string) *gated {
	k.t.Helper()
	g := &gated{k: k, gate: filepath.Join(k.t.TempDir(), "gate"), out: &lines{seen: make(chan struct{}, 1)}, done: make(chan error, 1)}
	check(k.t, os.WriteFile(g.gate, nil, 0o600))
	g.Cmd = k.command(k.apply(value, "-var", "gate="+g.gate)...)
	g.Stdout, g.Stderr = g.out, g.out
	g.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all of it can be killed
	check(k.t, g.Start())
	go func() { g.done <- g.Wait() }()
	k.t.Cleanup(func() { _ = os.Remove(g.gate) })
	waitFor(k.t, "terraform to be in the midst of its apply", func() bool {
		_, err := os.Stat(g.gate + ".reached")
		return err == nil
	})
	return g
}

// finish lets it go on and returns what it said.
func (g *gated) finish() (string, error) {
	_ = os.Remove(g.gate)
	err := <-g.done
	return strings.Join(g.out.all(), "\n"), err
}

// kill ends it, and whatever it started, at once.
func (g *gated) kill() {
	_ = syscall.Kill(-g.Process.Pid, syscall.SIGKILL)
	<-g.done
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func TestAzurerm(t *testing.T) {
	t.Parallel()
	terraform(t)
	s := startServer(t)
	s.leasehold(t, "azure", "container", "create", accountName, "tfstate")
	for name, recipe := range map[string]int{"by name": byName, "by address": byAddress} {
		t.Run(name, func(t *testing.T) {
			k := s.newStack(t, recipe, fmt.Sprintf("demo-%d.tfstate", recipe), one)
			k.ok("init")
			for _, v := range []string{"1", "2", "3"} {
				k.ok(k.apply(v)...)
			}
			if recipe == byName && !*full {
				return // the rest is the same for both
			}
			contend(t, k)
			orphan(t, k)
			broken(t, k)
			byHand(t, k)
			workspaces(t, k)
		})
	}
}

var lockID = regexp.MustCompile(`ID:\s+([0-9a-f-]{36})`)

// contend finds the state locked, and is told by whom; with patience it gets it.
func contend(t *testing.T, k *stack) {
	t.Helper()
	other := k.beside()
	g := k.startGated("contend")
	out := other.fails("(?i)state blob is already locked", other.apply("x")...)
	if !strings.Contains(out, "OperationTypeApply") || !strings.Contains(flat(out), "held for") {
		t.Errorf("it does not say who holds the state, or for how long:\n%s", out)
	}
	waiting := other.command(other.apply("waited", "-lock-timeout=20m")...)
	said := &lines{seen: make(chan struct{}, 1)}
	waiting.Stdout, waiting.Stderr = said, said
	check(t, waiting.Start())
	if out, err := g.finish(); err != nil {
		t.Errorf("the first: %v\n%s", err, out)
	}
	if err := waiting.Wait(); err != nil {
		t.Errorf("the second: %v\n%s", err, strings.Join(said.all(), "\n"))
	}
}

// orphan leaves a lock behind, and unlocks it with the id that anybody is told. Then it
// does the same for a lock whose holder had not even noted who it is.
func orphan(t *testing.T, k *stack) {
	t.Helper()
	other := k.beside()
	g := k.startGated("orphan")
	g.kill()
	id := lockID.FindStringSubmatch(other.fails("already locked", other.apply("y")...))
	if id == nil {
		t.Fatal("nobody tells the id of the lock")
	}
	other.fails("(?i)lock id .*does not match|failed to unlock", "force-unlock", "-force", "00000000-0000-4000-8000-000000000000")
	other.ok("force-unlock", "-force", id[1])
	other.ok(other.apply("y")...)

	silent := "11111111-2222-4333-8444-555555555555"
	blob := k.service(k.pathStyle()).NewContainerClient("tfstate").NewBlobClient(k.key())
	leaseFor(t, blob, silent)
	out := other.fails("already locked", other.apply("z")...)
	if id := lockID.FindStringSubmatch(out); id == nil || id[1] != silent {
		t.Fatalf("a lock without a note is told as %v:\n%s", id, out)
	}
	other.ok("force-unlock", "-force", silent)
	other.ok(other.apply("z")...)
}

// key is the name of the state's blob.
func (k *stack) key() string {
	text, err := os.ReadFile(filepath.Join(k.dir, "main.tf"))
	check(k.t, err)
	return regexp.MustCompile(`key +=\s+"([^"]+)"`).FindStringSubmatch(string(text))[1]
}

// broken ends a lock in the midst of an apply: the late writer is refused and keeps its
// work, which is then pushed.
func broken(t *testing.T, k *stack) {
	t.Helper()
	g := k.startGated("broken")
	before := k.serial()
	k.leasehold(t, "break", "azure/"+accountName+"/tfstate/"+k.key(), "--now", "--yes", "--reason", "the deploy hangs")
	out, err := g.finish()
	if err == nil || !strings.Contains(flat(out), "412") || !strings.Contains(flat(out), "the deploy hangs") {
		t.Errorf("a late writer: %v\n%s", err, out)
	}
	if now := k.serial(); now != before {
		t.Errorf("a late writer changed the state from serial %d to %d", before, now)
	}
	k.ok("state", "push", "errored.tfstate")
	if now := k.serial(); now <= before {
		t.Errorf("the pushed state has serial %d, after %d", now, before)
	}
	check(t, os.Remove(filepath.Join(k.dir, "errored.tfstate")))
	k.ok(k.apply("after")...)
}

// byHand pushes a state and rolls it back with our own command line, and Terraform goes on from there.
func byHand(t *testing.T, k *stack) {
	t.Helper()
	name, before := "azurerm:"+accountName+"/tfstate/"+k.key(), k.serial()
	var state map[string]any
	check(t, json.Unmarshal([]byte(k.leasehold(t, "state", "pull", name)), &state))
	state["serial"] = before + 1
	text, err := json.Marshal(state)
	check(t, err)
	file := filepath.Join(t.TempDir(), "pushed.tfstate")
	check(t, os.WriteFile(file, text, 0o600))
	k.leasehold(t, "state", "push", name, file, "--reason", "by hand")
	if now := k.serial(); now != before+1 {
		t.Errorf("the pushed state has serial %d, after %d", now, before)
	}
	k.ok(k.apply("pushed")...)
	k.leasehold(t, "state", "rollback", name, strconv.Itoa(before), "--yes", "--reason", "by hand")
	now := k.serial()
	if now <= before+1 {
		t.Errorf("the state has serial %d after it was rolled back", now)
	}
	k.ok(k.apply("rolled back")...)
	if k.serial() <= now {
		t.Errorf("Terraform wrote nothing after serial %d", now)
	}
}

func workspaces(t *testing.T, k *stack) {
	t.Helper()
	k.ok("workspace", "new", "stage")
	k.ok(k.apply("stage")...)
	if out := k.ok("workspace", "list"); !strings.Contains(out, "stage") || !strings.Contains(out, "default") {
		t.Errorf("workspaces: %s", out)
	}
	k.ok("workspace", "select", "default")
	k.ok("workspace", "delete", "-force", "stage")
	if out := k.ok("workspace", "list"); strings.Contains(out, "stage") {
		t.Errorf("workspaces: %s", out)
	}
}
