package terraform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// govern starts the server again with access on, and returns its admin.
func (w *world) govern() *person {
	w.t.Helper()
	w.flags = []string{"--access"}
	w.restart()
	return &person{w: w, dir: w.t.TempDir(), tokenFile: filepath.Join(w.data, "admin-token")}
}

// admit makes a token for somebody who has a role below a prefix, and returns that person.
func (p *person) admit(name, role, prefix, configuration string) *person {
	p.w.t.Helper()
	q := &person{w: p.w, dir: p.w.t.TempDir()}
	q.tokenFile = filepath.Join(q.dir, "token")
	p.leasehold("access", "token", "create", name, "--id", name, "--secret-file", q.tokenFile).succeeds()
	p.leasehold("access", "bind", role, "--to", name, "--prefix", prefix).succeeds()
	secret, err := os.ReadFile(q.tokenFile)
	if err != nil {
		p.w.t.Fatal(err)
	}
	q.password = strings.TrimSpace(string(secret))
	q.configure(configuration)
	return q
}

// A state is read, locked and unlocked by those who may, and by nobody else. Terraform shows only which kind of refusal
// it was.
func TestAccess(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := newGate(t)
		root := w.govern()
		ann := root.admit("ann", "member", "terraform/prod/", counted(1))
		bob := root.admit("bob", "member", "terraform/prod/", counted(1))
		eve := root.admit("eve", "operator", "terraform/", counted(1))
		max := root.admit("max", "member", "terraform/other/", counted(1))
		for _, p := range []*person{ann, bob, eve} {
			p.must("init")
		}
		ann.apply().succeeds()
		if code := bob.terraform("plan", "-detailed-exitcode").code(); code != 0 {
			t.Errorf("another of the same team plans changes: %d", code)
		}
		max.isKeptOut()

		ann.configure(counted(1) + g.configuration())
		first := ann.apply()
		w.until("the first is in the midst", g.began)
		bob.terraform("plan").fails("already locked: ID=", "apply, since ")
		bob.terraform("force-unlock", "-force", "0").fails("Failed to unlock state: Unexpected HTTP response code 403")
		if ann.shows().Lock == nil {
			t.Fatal("somebody without the right has freed the lock")
		}
		eve.terraform("force-unlock", "-force", "0").succeeds()
		eve.isFree()
		g.open(t)
		first.fails("Failed to save state", "errored.tfstate")
		out := root.leasehold("audit", "terraform/"+w.state, "--verb", "break", "-o", "json").succeeds()
		if !strings.Contains(out, `"eve"`) {
			t.Errorf("the audit does not say who unlocked it: %s", out)
		}
		ann.configure(counted(2))
		ann.apply().succeeds()

		// A token that was revoked is refused at once.
		root.leasehold("access", "token", "revoke", "ann").succeeds()
		ann.apply().fails("HTTP remote state endpoint requires auth")
	})
}

// isKeptOut fails the test if a person finds out about the state, with the own token or none or a wrong one.
func (p *person) isKeptOut() {
	p.w.t.Helper()
	p.terraform("init").fails("HTTP remote state endpoint invalid auth")
	if out := p.terraform("state", "pull").said(); strings.Contains(out, "lineage") {
		p.w.t.Errorf("it has read %s", out)
	}
	p.leasehold("state", "pull", p.w.state).fails()
	p.leasehold("get", "terraform/"+p.w.state).fails()
	right := p.password
	defer func() { p.password = right }()
	for _, p.password = range []string{"", "lh_" + strings.Repeat("x", 43), "rubbish"} {
		said := p.terraform("init").fails("HTTP remote state endpoint requires auth")
		if p.password != "" && strings.Contains(said, p.password) {
			p.w.t.Errorf("a password is repeated: %s", said)
		}
	}
}
