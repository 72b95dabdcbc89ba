package terraform

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// counted is a configuration with a number of resources.
func counted(n int) string {
	return fmt.Sprintf("resource \"terraform_data\" \"r\" {\n  count = %d\n  input = count.index\n}\n", n)
}

func TestThreeApplies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.somebody(counted(1))
		for n := 1; n <= 3; n++ {
			p.configure(counted(n))
			p.apply().succeeds()
			if s := p.isFree(); s.Serial != n || s.Versions != n {
				t.Errorf("after apply %d: %+v", n, s)
			}
		}
		if got := p.resources(); len(got) != 3 {
			t.Errorf("the state has %q", got)
		}
		if code := p.terraform("plan", "-detailed-exitcode").code(); code != 0 {
			t.Errorf("a plan after all ended with %d", code)
		}
		// Somebody else sees the same.
		q := w.somebody(counted(3))
		if code := q.terraform("plan", "-detailed-exitcode").code(); code != 0 {
			t.Errorf("another's plan ended with %d", code)
		}
		out := p.leasehold("state", "diff", w.state, "1").succeeds()
		if !strings.Contains(out, "+ terraform_data.r[2]") {
			t.Errorf("the difference is %s", out)
		}
		// What was rolled back is what Terraform sees.
		p.leasehold("state", "rollback", w.state, "1", "--yes", "--reason", "the wrong account").succeeds()
		if got := p.resources(); len(got) != 1 || p.isFree().Serial != 4 {
			t.Errorf("after the rollback there are %q", got)
		}
		p.apply().succeeds()
	})
}

func TestContention(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		p, q := w.somebody(g.configuration()), w.somebody(g.configuration())
		first := p.apply()
		w.until("the first is in the midst", g.began)
		// It is told who has the lock, and for what.
		q.terraform("plan").fails("already locked: ID=", "apply, since ")
		patient := q.terraform("plan", "-lock-timeout=3m")
		r := w.somebody(g.configuration())
		r.lock = "?wait=3m"
		queued := r.terraform("plan")
		w.until("one waits in the queue", func() bool {
			return strings.Contains(p.leasehold("describe", "terraform/"+w.state).succeeds(), "Waiting:    1")
		})
		g.open(t)
		first.succeeds()
		queued.succeeds()
		patient.succeeds()
		p.isFree()
	})
}

func TestManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		runs := 5
		if *full {
			runs = 20
		}
		// Each run writes once.
		var people []*person
		for range runs {
			p := w.somebody("resource \"terraform_data\" \"r\" {\n  input = uuid()\n}\n")
			p.lock = "?wait=3m"
			people = append(people, p)
		}
		var wg sync.WaitGroup
		for _, p := range people {
			wg.Go(func() {
				if c := p.apply(); c.code() != 0 {
					t.Errorf("it ended with %d: %s", c.code(), c.out)
				}
			})
		}
		wg.Wait()
		if s := people[0].isFree(); s.Serial != runs {
			t.Errorf("%d runs made serial %d", runs, s.Serial)
		}
	})
}

func TestCtrlCOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		p := w.somebody(g.configuration())
		c := p.apply()
		w.until("it is in the midst", g.began)
		_ = c.Process.Signal(syscall.SIGINT)
		c.fails()
		p.isFree()
		if got := p.resources(); !slices.Contains(got, "terraform_data.before") {
			t.Errorf("what was made is not recorded: %q", got)
		}
	})
}

func TestCtrlCTwice(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		p := w.somebody(g.configuration())
		c := p.apply()
		w.until("it is in the midst", g.began)
		for range 2 {
			_ = c.Process.Signal(syscall.SIGINT)
		}
		c.fails()
		if s := p.shows(); s.Lock != nil {
			p.leasehold("state", "unlock", w.state, "--yes", "--reason", "ctrl-C twice").succeeds()
		}
		g.open(t)
		p.apply().succeeds()
		p.isFree()
	})
}

// A run that fails at resource 51 of 100 has recorded 50.
func TestFailsHalfway(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		var b strings.Builder
		for i := 1; i <= 100; i++ {
			fmt.Fprintf(&b, "resource \"terraform_data\" \"r%d\" {\n", i)
			if i > 1 {
				fmt.Fprintf(&b, "  depends_on = [terraform_data.r%d]\n", i-1)
			}
			if i == 51 {
				// Nobody knows before the apply.
				b.WriteString("  lifecycle {\n    precondition {\n      condition     = terraform_data.r50.id == \"\"\n      error_message = \"this one fails\"\n    }\n  }\n")
			}
			b.WriteString("}\n")
		}
		p := w.somebody(b.String())
		p.apply().fails("this one fails")
		if got := p.resources(); len(got) != 50 {
			t.Errorf("%d resources are recorded", len(got))
		}
		p.isFree()
	})
}

func TestKilledInTheMidst(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		p := w.somebody(g.configuration())
		c := p.apply()
		w.until("it is in the midst", g.began)
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.fails()
		// The orphan shows who it was, and can be freed by name.
		p.terraform("plan").fails("already locked: ID=", "apply, since ")
		if s := p.shows(); s.Lock == nil || s.Lock.Operation != "OperationTypeApply" || !strings.Contains(s.Lock.Who, "@") {
			t.Errorf("the orphan is %+v", s.Lock)
		}
		p.leasehold("state", "unlock", w.state, "--yes", "--reason", "the runner was killed").succeeds()
		g.open(t)
		p.apply().succeeds()
		p.isFree()
		if out := p.leasehold("audit", "terraform/"+w.state, "--verb", "break").succeeds(); !strings.Contains(out, "the runner was killed") {
			t.Errorf("the audit has %s", out)
		}
	})
}

func TestTTLFreesAnOrphan(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		p := w.somebody(g.configuration())
		p.leasehold("define", "terraform/prod/", "--default-ttl", "2s", "--unclean", "acknowledge").succeeds()
		c := p.apply()
		w.until("it is in the midst", g.began)
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.fails()
		w.until("the lock expires", func() bool { return p.shows().Lock == nil })
		// However slow this machine is, the next run is not to lose its lock.
		p.leasehold("define", "terraform/prod/", "--default-ttl", "1h", "--unclean", "acknowledge").succeeds()
		g.open(t)
		p.apply().fails("acknowledge")
		p.leasehold("acknowledge", "terraform/"+w.state, "--reason", "looked at it").succeeds()
		p.apply("-lock-timeout=1m").succeeds()
		p.isFree()
	})
}

func TestBrokenInTheMidst(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		p := w.somebody(counted(1))
		p.apply().succeeds()
		p.configure(counted(1) + g.configuration())
		c := p.apply()
		w.until("it is in the midst", g.began)
		p.leasehold("state", "unlock", w.state, "--yes", "--reason", "make room").succeeds()
		// Another run comes in between, and its work is not lost.
		q := w.somebody(counted(2))
		q.apply().succeeds()
		before := q.shows()
		g.open(t)
		c.fails("Failed to save state", "errored.tfstate")
		if s := p.isFree(); s.Serial != before.Serial || s.Lineage != before.Lineage || len(p.resources()) != 2 {
			t.Errorf("the late writer has changed %+v to %+v", before, s)
		}
		// Its work is kept, and a person decides: both have the same serial, so that neither
		// Terraform nor the server takes one for the successor of the other.
		if !exists(filepath.Join(p.dir, "errored.tfstate")) {
			t.Fatal("there is no errored.tfstate")
		}
		if w.program == "terraform" { // OpenTofu counts further, and would not notice
			p.terraform("state", "push", "errored.tfstate").fails("serial")
			p.leasehold("state", "push", w.state, "errored.tfstate").fails("serial")
		}
		p.leasehold("state", "push", w.state, "errored.tfstate", "--force").succeeds()
		if got := p.resources(); len(got) != 3 {
			t.Errorf("after the push there are %q", got)
		}
		p.isFree()
	})
}

func TestErroredStateIsPushed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		p := w.somebody(counted(1))
		p.apply().succeeds()
		p.configure(counted(1) + g.configuration())
		c := p.apply()
		w.until("it is in the midst", g.began)
		p.leasehold("state", "unlock", w.state, "--yes", "--reason", "make room").succeeds()
		g.open(t)
		c.fails("Failed to save state")
		if got := p.resources(); len(got) != 1 {
			t.Errorf("the late writer was let in: %q", got)
		}
		p.terraform("state", "push", "errored.tfstate").succeeds()
		if got := p.resources(); len(got) != 3 {
			t.Errorf("after the push there are %q", got)
		}
		if code := p.terraform("plan", "-detailed-exitcode").code(); code != 0 {
			t.Errorf("a plan after all ended with %d", code)
		}
		p.isFree()
	})
}

func TestWrongLineage(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.somebody(counted(1))
		p.apply().succeeds()
		other := `{"version":4,"terraform_version":"1.11.4","serial":9,"lineage":"11111111-2222-3333-4444-555555555555","outputs":{},"resources":[]}`
		if err := os.WriteFile(filepath.Join(p.dir, "other.tfstate"), []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		p.terraform("state", "push", "other.tfstate").fails("lineage")
		// What Terraform lets through by force, the server still does not.
		p.terraform("state", "push", "-force", "other.tfstate").fails("409")
		if got := p.resources(); len(got) != 1 {
			t.Errorf("there are %q", got)
		}
		p.leasehold("state", "push", w.state, "other.tfstate", "--force").succeeds()
		if s := p.isFree(); s.Serial != 9 || s.Versions != 2 {
			t.Errorf("after all: %+v", s)
		}
	})
}

func TestForceUnlock(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.somebody(counted(1))
		p.apply().succeeds()
		lock := func(id string) {
			t.Helper()
			body := strings.NewReader(`{"ID":"` + id + `","Operation":"OperationTypeApply","Who":"ann@gone","Version":"1.11.4","Created":"2026-01-02T03:04:05Z"}`)
			r, _ := http.NewRequestWithContext(t.Context(), "LOCK", w.address(""), body)
			answer, err := http.DefaultClient.Do(r)
			if err != nil || answer.StatusCode != 200 {
				t.Fatal(answer, err)
			}
			_ = answer.Body.Close()
		}
		const id, wrong = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
		lock(id)
		p.terraform("force-unlock", "-force", id).succeeds()
		p.isFree()
		lock("2" + id[1:])
		if w.program == "tofu" {
			// It says which lock it means, and that is looked at.
			p.terraform("force-unlock", "-force", wrong).fails()
			if p.shows().Lock == nil {
				t.Error("a wrong ID has freed the lock")
			}
			p.terraform("force-unlock", "-force", "2"+id[1:]).succeeds()
		} else {
			// Whatever was typed, it is not sent.
			p.terraform("force-unlock", "-force", wrong).succeeds()
		}
		p.isFree()
		if w.program != "tofu" {
			p.terraform("force-unlock", "-force", id).succeeds()
		}
		p.apply().succeeds()
	})
}

func TestLargeState(t *testing.T) {
	onlyFull(t)
	each(t, func(t *testing.T, w *world) {
		p := w.somebody(counted(1))
		p.apply().succeeds()
		lineage := p.shows().Lineage
		one := `{"mode":"managed","type":"terraform_data","name":%q,"provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{"schema_version":0,"attributes":{"id":"11111111-2222-3333-4444-555555555555","input":{"value":%q,"type":"string"},"output":{"value":"","type":"string"},"triggers_replace":null}}]}`
		large := fmt.Sprintf(`{"version":4,"terraform_version":"1.11.4","serial":7,"lineage":%q,"outputs":{},"resources":[%s,%s],"check_results":null}`,
			lineage, fmt.Sprintf(one, "large", strings.Repeat("0123456789", 3<<20)), fmt.Sprintf(one, "small", "x"))
		if err := os.WriteFile(filepath.Join(p.dir, "large.tfstate"), []byte(large), 0o600); err != nil {
			t.Fatal(err)
		}
		p.terraform("state", "push", "large.tfstate").succeeds()
		p.terraform("state", "rm", "terraform_data.small").succeeds()
		if got := p.resources(); !slices.Equal(got, []string{"terraform_data.large"}) {
			t.Errorf("there are %q", got)
		}
		if out := p.terraform("state", "pull").succeeds(); len(out) < 30<<20 {
			t.Errorf("%d bytes came back", len(out))
		}
		w.restart()
		if out := p.terraform("state", "pull").succeeds(); len(out) < 30<<20 {
			t.Errorf("%d bytes came back after a restart", len(out))
		}
		p.isFree()
	})
}

// The server is killed, with SIGKILL, in the midst of each kind of call, and started again:
// the run goes on as if nothing had been.
func TestServerIsKilled(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		serial := 0
		p := w.somebody(counted(1))
		for _, method := range []string{"LOCK", "POST", "UNLOCK"} {
			for _, early := range []bool{false, true} {
				if early && !*full {
					continue
				}
				w.setFault(nth(method, 1, fault{kill: true, early: early}))
				serial++
				p.configure(counted(serial))
				p.apply().succeeds()
				w.setFault(nil)
				if s := p.isFree(); s.Serial != serial || s.Versions != serial {
					t.Errorf("killed at %s, early %v: %+v", method, early, s)
				}
			}
		}
	})
}

// The answer to each call is lost in turn.
func TestLostReplies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		serial := 0
		p := w.somebody(counted(1))
		for _, call := range []struct {
			method string
			n      int64
		}{{"LOCK", 1}, {"POST", 1}, {"UNLOCK", 1}, {"GET", 1}, {"GET", 2}} {
			if call.method == "GET" && !*full {
				continue
			}
			for _, lock := range []string{"", "?wait=3m"} {
				if lock != "" && !*full {
					continue
				}
				p.lock = lock
				w.setFault(nth(call.method, call.n, fault{lose: true}))
				serial++
				p.configure(counted(serial))
				p.apply().succeeds()
				w.setFault(nil)
				if s := p.isFree(); s.Serial != serial || s.Versions != min(serial, 21) {
					t.Errorf("lost at %s: %+v", call.method, s)
				}
			}
		}
	})
}

// leasehold run gives an unchanged Terraform a lock that lives as long as it does.
func TestRunKeepsTheLockAlive(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		p := w.somebody(g.configuration())
		under := func(ttl string, args ...string) *command {
			return p.leasehold(append([]string{"run", "--terraform", w.state, "--ttl", ttl, "--", w.program}, args...)...)
		}
		c := under("15s", "apply", "-auto-approve", "-no-color")
		w.until("it is in the midst", g.began)
		renewed := p.shows()
		if renewed.Lock == nil {
			t.Fatal("it holds no lock")
		}
		// run is killed, and Terraform with it: the lock ends with the session.
		_ = c.Process.Kill()
		c.fails()
		w.until("the lock ends", func() bool { return p.shows().Lock == nil })
		g.open(t)
		under("1h", "apply", "-auto-approve", "-no-color").succeeds()
		p.isFree()
		if got := p.resources(); len(got) != 2 {
			t.Errorf("there are %q", got)
		}
	})
}

// A state that was kept in a file moves here, with its lineage and serial.
func TestMigration(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := &person{w: w, dir: t.TempDir()}
		local := "terraform {\n  backend \"local\" {}\n}\n" + counted(2)
		if err := os.WriteFile(filepath.Join(p.dir, "main.tf"), []byte(local), 0o600); err != nil {
			t.Fatal(err)
		}
		p.must("init")
		p.apply().succeeds()
		p.configure(counted(2))
		p.must("init", "-migrate-state", "-force-copy")
		if s := p.isFree(); s.Lineage == "" {
			t.Errorf("the state is %+v", s)
		}
		if code := p.terraform("plan", "-detailed-exitcode").code(); code != 0 {
			t.Errorf("a plan afterwards ended with %d", code)
		}
	})
}
