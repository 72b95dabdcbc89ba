//go:build linux

package consul

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A project is a directory with a configuration of Terraform, whose state is in a server.
type project struct {
	*world
	dir string
}

func (w *world) project(path, resources string) *project {
	w.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		w.Skip("left out: terraform is not on this machine")
	}
	p := &project{w, w.TempDir()}
	p.write(path, resources)
	p.must(p.run("init", "-input=false"))
	return p
}

func (p *project) write(path, resources string) {
	p.Helper()
	text := fmt.Sprintf("terraform {\n  backend \"consul\" {\n    address = %q\n    scheme  = \"http\"\n    path    = %q\n  }\n}\n%s\n",
		strings.TrimPrefix(p.url, "http://"), path, resources)
	p.must(os.WriteFile(filepath.Join(p.dir, "main.tf"), []byte(text), 0o600))
}

func (p *project) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.ctx, "terraform", append([]string{"-chdir=" + p.dir}, args...)...)
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return cmd
}

func (p *project) run(args ...string) error {
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("terraform %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

const (
	small = `resource "terraform_data" "a" { input = "one" }`
	slow  = `resource "terraform_data" "b" {
  provisioner "local-exec" {
    command = "touch begun; while [ ! -e end ]; do sleep 0.05; done"
  }
}`
)

// TestTerraform runs the real Terraform with its consul backend: states, locks, a state in pieces, and a lock that is
// broken by force.
func TestTerraform(t *testing.T) {
	w := newWorld(t, "leasehold", leasehold(t, 1).urls[0])
	p := w.project("tf/net", small)
	p.must(p.run("apply", "-auto-approve", "-input=false"))
	state, _, err := w.client().KV().Get("tf/net", nil)
	p.must(err)
	if state == nil || !strings.Contains(string(state.Value), "terraform_data") {
		t.Fatalf("the state is %+v", state)
	}
	keys, _, err := w.client().KV().Keys("tf/", "", nil)
	p.must(err)
	if len(keys) != 1 {
		t.Errorf("the lock is still there: %v", keys)
	}
	p.must(p.run("workspace", "new", "staging"))
	p.must(p.run("apply", "-auto-approve", "-input=false"))
	p.must(p.run("workspace", "select", "default"))
	p.must(p.run("workspace", "delete", "-force", "staging"))

	// While one applies, another is told who has the lock.
	p.write("tf/net", small+"\n"+slow)
	applying := p.command("apply", "-auto-approve", "-input=false")
	p.must(applying.Start())
	p.await("begun")
	err = p.run("plan", "-input=false")
	if err == nil || !strings.Contains(err.Error(), "Error acquiring the state lock") || !strings.Contains(err.Error(), "tf/net") {
		t.Errorf("the state is locked, and plan said %v", err)
	}
	p.must(os.WriteFile(filepath.Join(p.dir, "end"), nil, 0o600))
	p.must(applying.Wait())
	p.must(p.run("plan", "-input=false"))

	// A state that does not fit in one key is kept in pieces.
	big := fmt.Sprintf(`resource "terraform_data" "big" { input = %q }`, strings.Repeat("0123456789abcdef", 48<<10))
	p.write("tf/net", big)
	p.must(p.run("apply", "-auto-approve", "-input=false"))
	keys, _, err = w.client().KV().Keys("tf/net/tfstate.", "", nil)
	p.must(err)
	if len(keys) < 2 {
		t.Errorf("a state of more than 1 MB is in the keys %v", keys)
	}
	p.must(p.run("plan", "-input=false", "-detailed-exitcode"))
	p.must(p.run("destroy", "-auto-approve", "-input=false"))
}

// TestTerraformForceUnlock ends the lock of somebody who is gone.
func TestTerraformForceUnlock(t *testing.T) {
	w := newWorld(t, "leasehold", leasehold(t, 1).urls[0])
	p := w.project("tf/stuck", slow)
	applying := p.command("apply", "-auto-approve", "-input=false")
	p.must(applying.Start())
	p.await("begun")
	p.must(applying.Process.Kill())
	_ = applying.Wait()
	p.must(os.WriteFile(filepath.Join(p.dir, "end"), nil, 0o600)) // the command that it has left behind
	pair, _, err := w.client().KV().Get("tf/stuck/.lock", nil)
	p.must(err)
	p.must(p.run("force-unlock", "-force", pair.Session))
	// The lock-delay of five seconds follows, as it does in Consul; Terraform does not wait for its end.
	for began := time.Now(); ; time.Sleep(time.Second) {
		if err = p.run("apply", "-auto-approve", "-input=false"); err == nil {
			break
		}
		if time.Since(began) > patience {
			t.Fatal(err)
		}
	}
}

func (p *project) await(name string) {
	p.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		if _, err := os.Stat(filepath.Join(p.dir, name)); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.Fatalf("%s does not come", name)
}
