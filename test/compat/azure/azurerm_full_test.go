package azure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestAzurermWhole is what takes long: many at once, runs that are interrupted or fail in
// the midst, large states, the wrong state.
func TestAzurermWhole(t *testing.T) {
	if !*full {
		t.Skip("left to: make compat")
	}
	terraform(t)
	s := startServer(t)
	s.leasehold(t, "azure", "container", "create", accountName, "tfstate")
	for name, test := range map[string]func(*testing.T, *server){
		"twenty at once": twenty, "interrupted": interrupted, "fails at 51 of 100": failsMidway, "30 MB": largeState, "another lineage": otherLineage,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func twenty(t *testing.T, s *server) {
	k := s.newStack(t, byAddress, "twenty.tfstate", one)
	k.ok("init")
	k.ok(k.apply("first")...)
	before := k.serial()
	var all sync.WaitGroup
	for i := range 20 {
		other := k.beside()
		all.Go(func() {
			if out, err := other.run(other.apply(fmt.Sprintf("n%d", i), "-lock-timeout=20m")...); err != nil {
				t.Errorf("%d of 20: %v\n%s", i, err, out)
			}
		})
	}
	all.Wait()
	if now := k.serial(); now < before+20 {
		t.Errorf("twenty runs brought the state from serial %d to %d", before, now)
	}
}

// Interrupted once, Terraform saves and unlocks; twice, it goes at once and may leave the
// lock, which is then unlocked by the id that it tells.
func interrupted(t *testing.T, s *server) {
	for times := 1; times <= 2; times++ {
		k := s.newStack(t, byAddress, fmt.Sprintf("interrupted-%d.tfstate", times), one)
		k.ok("init")
		k.ok(k.apply("first")...)
		g := k.startGated("interrupted")
		for range times {
			check(t, g.Process.Signal(syscall.SIGINT))
		}
		if out, err := g.finish(); err == nil {
			t.Errorf("interrupted %d times, it goes on: %s", times, out)
		}
		_ = syscall.Kill(-g.Process.Pid, syscall.SIGKILL) // what it started may still wait
		other := k.beside()
		if said, err := other.run(other.apply("after")...); err != nil {
			if times == 1 {
				t.Errorf("interrupted once, it leaves the lock: %s", said)
			}
			other.unlockIf(said, "")
			other.ok(other.apply("after")...)
		}
	}
}

func failsMidway(t *testing.T, s *server) {
	count := filepath.Join(t.TempDir(), "count")
	k := s.newStack(t, byAddress, "midway.tfstate", `
resource "terraform_data" "many" {
  count = 100
  provisioner "local-exec" {
    command = "echo >> '`+count+`'; test $(wc -l < '`+count+`') -ne 51"
  }
}
`)
	k.ok("init")
	k.fails("(?i)error", "apply", "-auto-approve", "-no-color", "-parallelism=1")
	out, err := k.command("state", "list").Output()
	check(t, err)
	if n := strings.Count(string(out), "terraform_data.many"); n < 51 {
		t.Errorf("%d are recorded", n) // fifty, and the one that failed, tainted
	}
	k.ok("apply", "-auto-approve", "-no-color")
	out, err = k.command("state", "list").Output()
	check(t, err)
	if n := strings.Count(string(out), "terraform_data.many"); n != 100 {
		t.Errorf("%d are recorded in the end", n)
	}
}

func largeState(t *testing.T, s *server) {
	k := s.newStack(t, byAddress, "large.tfstate", `
variable "v" { default = "0" }
locals {
  part = join("", [for i in range(1000) : "0123456789abcdef"])
}
resource "terraform_data" "large" {
  input = sensitive("${var.v} ${join("", [for i in range(1000) : local.part])}")
}
`)
	k.ok("init")
	for _, v := range []string{"1", "2"} {
		k.ok(k.apply(v)...)
	}
	out, err := k.command("state", "pull").Output()
	check(t, err)
	if len(out) < 30_000_000 || k.serial() < 2 {
		t.Errorf("the state has %d bytes", len(out))
	}
}

func otherLineage(t *testing.T, s *server) {
	k := s.newStack(t, byAddress, "lineage.tfstate", one)
	k.ok("init")
	k.ok(k.apply("first")...)
	path := filepath.Join(k.dir, "other.tfstate")
	check(t, os.WriteFile(path, []byte(`{"version":4,"terraform_version":"1.11.4","serial":99,"lineage":"00000000-0000-0000-0000-000000000000","outputs":{},"resources":[]}`), 0o600))
	k.fails("(?i)lineage", "state", "push", path)
	k.ok(k.apply("second")...)
}
