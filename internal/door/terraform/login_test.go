package terraform

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// govern turns access on, for an admin who is called root, and returns the token.
func (b *bench) govern() string {
	b.t.Helper()
	secret, hash := credential.NewToken()
	b.do(&core.ChangeAccess{Put: access.Items{
		Tokens:   []*access.Token{{ID: "t1", Hash: hash, Principal: "root"}},
		Bindings: []*access.Binding{{Name: "admins", Role: "admin", Principal: "root", Namespace: "*"}},
	}})
	return secret
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// Terraform sends a token as a password; the name that goes with it means nothing.
func TestLoginByPassword(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/x", info("id-0"), "Authorization", "rubbish").expect(200) // access is off
	b.ask("UNLOCK", "/terraform/x", info("id-0")).expect(200)
	secret := b.govern()
	for _, method := range []string{"GET", "POST", "DELETE", "LOCK", "UNLOCK"} {
		got := b.ask(method, "/terraform/prod/net", info("id-1")).expect(401, `"code":"denied"`)
		if h := got.header.Get("WWW-Authenticate"); !strings.HasPrefix(h, "Basic ") {
			t.Errorf("%s is answered with %q", method, h)
		}
	}
	wrong, _ := credential.NewToken()
	b.ask("LOCK", "/terraform/prod/net", info("id-1"), "Authorization", basic("root", wrong)).expect(401, "revoked")
	b.ask("LOCK", "/terraform/prod/net", info("id-1"), "Authorization", basic("root", "")).expect(401)
	b.ask("LOCK", "/terraform/prod/net", info("id-1"), "Authorization", "Basic !").expect(401, "password")
	b.ask("LOCK", "/terraform/prod/net", info("id-1"), "Authorization", basic("anyone", secret)).expect(200)
	b.ask("GET", "/terraform/prod/net", "", "Authorization", "Bearer "+secret).expect(204)
	page, err := b.engine.Journal().Find(t.Context(), audit.Query{Kind: audit.Operation, Namespace: "default",
		Resource: "terraform/prod/net", Limit: 10})
	if err != nil || len(page.Lines) != 3 || page.Lines[0].Actor != "root" || page.Lines[0].Holder != "ann@ci-42" {
		t.Errorf("the journal has %+v, %v", page.Lines, err)
	}
	for _, l := range page.Lines {
		if strings.Contains(l.Reason, secret[3:]) || strings.Contains(l.Reason, wrong[3:]) {
			t.Errorf("the journal has a secret: %+v", l)
		}
	}
}
