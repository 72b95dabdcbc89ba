package native

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// root is the secret of the admin whose token firstDocument has.
const root = "lh_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

// askAs sends a request from the server's own machine, with the secret of a token or without.
func askAs(t testing.TB, door http.Handler, secret, method, target, body string, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	got := answer{t, w.Code, w.Header(), w.Body.String()}
	checkDescribed(t, r, got)
	return got
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func firstDocument() string {
	return fmt.Sprintf(`{"bindings":[{"role":"admin","principal":"root","namespace":"*"}],`+
		`"tokens":[{"id":"boot","principal":"root","hash":"%s"}]}`, hashOf(root))
}

// withAccess returns a door to a cluster with access on.
func withAccess(t testing.TB) *opened {
	t.Helper()
	door := newDoor(t, Config{})
	askAs(t, door, "", "POST", "/v1/access/apply", `{"access":`+firstDocument()+`}`).expect(200, `"applied":true`)
	return door
}

func TestAccessIsTurnedOnFromTheOwnMachine(t *testing.T) {
	door := newDoor(t, Config{})
	body := `{"access":` + firstDocument() + `}`
	ask(t, door, "GET", "/v1/access/whoami", "").expect(200, `"enabled":false`)
	ask(t, door, "GET", "/v1/access/can-i?verb=break&path=x", "").expect(200, `"allowed":true`, `"enabled":false`)
	askAs(t, door, "", "PUT", "/v1/access/roles/r", `{"verbs":["read"]}`).expect(422, "access is off")
	askAs(t, door, "", "POST", "/v1/access/tokens", `{"principal":"ann"}`).expect(422, "access is off").without("lh_")
	ask(t, door, "POST", "/v1/access/apply", body).expect(403, "from the machine that the server runs on")
	askAs(t, door, "", "POST", "/v1/access/apply", body, "X-Forwarded-For", "10.0.0.1").expect(403)
	for _, doc := range []string{`{}`, `{"bindings":[{"role":"admin","principal":"root","namespace":"*"}]}`} {
		askAs(t, door, "", "POST", "/v1/access/apply", `{"access":`+doc+`}`).
			expect(422, "nobody could change access any more")
	}
	askAs(t, door, "", "POST", "/v1/access/apply", body).expect(200, `"applied":true`, `"action":"add"`)
	// The way in is closed behind the first.
	askAs(t, door, "", "POST", "/v1/access/apply", body).expect(401, "no credential was sent")
	askAs(t, door, root, "POST", "/v1/access/apply", body).expect(200, `"changes":[]`)
	askAs(t, door, "", "GET", "/v1/access/whoami", "").expect(401)
}

func TestOnlyAdminsSeeAndChangeAccess(t *testing.T) {
	door := withAccess(t)
	askAs(t, door, root, "PUT", "/v1/access/bindings/m", `{"role":"member","principal":"ann","prefix":"a/"}`).expect(200)
	ann := read[v1.NewToken](askAs(t, door, root, "POST", "/v1/access/tokens", `{"principal":"ann"}`).expect(200)).Secret
	revoked := read[v1.NewToken](askAs(t, door, root, "POST", "/v1/access/tokens", `{"principal":"root","id":"r"}`).
		expect(200)).Secret
	askAs(t, door, revoked, "GET", "/v1/access", "").expect(200)
	askAs(t, door, root, "DELETE", "/v1/access/tokens/r", "").expect(200)
	askAs(t, door, revoked, "GET", "/v1/access", "").expect(401)
	for who, status := range map[string]int{"": 401, ann: 403} {
		for _, o := range operations {
			if !strings.HasPrefix(o.path, "/v1/access") || strings.HasSuffix(o.path, "/whoami") {
				continue
			}
			body := `{}`
			target := strings.Replace(o.path, "{name...}", "principal/x", 1)
			switch {
			case o.name == "can-i":
				target += "?verb=read&as=root"
			case o.name == "who-can":
				target += "?verb=read"
			case o.name == "apply-access":
				body = `{"access":{}}`
			case o.name == "put-role":
				body = `{"verbs":["read"]}`
			case o.name == "put-binding":
				body = `{"role":"viewer","principal":"ann"}`
			case o.name == "put-quota":
				body = `{"leases":1,"principal":"x"}`
			case o.name == "put-issuer":
				body = `{"url":"https://x","audiences":["l"]}`
			case o.name == "put-certificate":
				body = `{"san":"dns:x"}`
			case o.name == "create-token":
				body = `{"principal":"x"}`
			}
			if o.method == "GET" || o.method == "DELETE" {
				body = ""
			}
			askAs(t, door, who, o.method, target, body).expect(status, `"code":"denied"`).without("boot")
		}
	}
	// About oneself anybody may ask.
	askAs(t, door, ann, "GET", "/v1/access/can-i?verb=acquire&path=a/x", "").expect(200, `"allowed":true`, `"binding":"m"`)
	askAs(t, door, ann, "GET", "/v1/access/can-i?verb=break&path=a/x", "").expect(200, `"allowed":true`, `"own":true`)
	askAs(t, door, ann, "GET", "/v1/access/can-i?verb=acquire&path=b/x", "").expect(200, `"allowed":false`, `"because":[]`)
	for id, who := range map[string]string{"hers": ann, "others": root} {
		askAs(t, door, who, "POST", "/v1/acquire", `{"resource":"a/`+id+`","holder":"h","ttl":"1m","id":"`+id+`"}`).expect(200)
	}
	for target, allowed := range map[string]string{
		"path=a/hers&id=hers": "true", "path=a/others&id=others": "false", "path=a/hers&id=others": "false", "path=a/hers&id=none": "false",
	} {
		askAs(t, door, ann, "GET", "/v1/access/can-i?verb=break&"+target, "").expect(200, `"allowed":`+allowed, `"own":true`)
	}
	askAs(t, door, root, "GET", "/v1/access/can-i?verb=break&path=a/hers&id=hers", "").expect(200, `"allowed":true`).without(`"own"`)
	askAs(t, door, root, "GET", "/v1/access/can-i?verb=break&path=a/hers&id=hers&as=ann", "").expect(200, `"allowed":true`, `"own":true`)
	askAs(t, door, ann, "GET", "/v1/access/whoami", "").expect(200, `"principal":"ann"`, `"prefix":"a/"`).without("root")
}

// What is put can be listed and removed, and is in the document; what is wrong with it is said.
func TestAccessItems(t *testing.T) {
	door := withAccess(t)
	for _, c := range []struct{ path, body, want, bad, why string }{
		{"roles/deployer", `{"name":"deployer","verbs":["read","break:own"],"on_revoke":"end"}`, `"break:own"`,
			`{"verbs":["fly"]}`, "unknown verb"},
		{"bindings/b", `{"role":"member","group":"a","prefix":"a/","holders":"a"}`, `"namespace":"default"`,
			`{"role":"member"}`, "principal or to a group"},
		{"quotas/principal%2Fann", `{"principal":"ann","leases":7}`, `"leases":7`, `{"principal":"bob"}`, "write the same name"},
		{"issuers/gh", `{"url":"https://gh","audiences":["l"],"groups":[{"claim":"c","value":"v*","group":"g"}]}`, `"v*"`,
			`{"url":"https://gh","audiences":[]}`, "has no audience"},
		{"certificates/c", `{"san":"dns:*.x"}`, `"dns:*.x"`, `{"san":"x"}`, "write dns:NAME"},
	} {
		kind, _, _ := strings.Cut(c.path, "/")
		askAs(t, door, root, "PUT", "/v1/access/"+c.path, c.bad).expect(400, c.why)
		askAs(t, door, root, "PUT", "/v1/access/"+c.path+"?by=ops&reason=test", c.body).expect(200, c.want)
		askAs(t, door, root, "PUT", "/v1/access/"+c.path, c.body).expect(200, c.want) // it is idempotent
		askAs(t, door, root, "GET", "/v1/access/"+kind, "").expect(200, c.want)
		askAs(t, door, root, "GET", "/v1/access", "").expect(200, c.want)
		askAs(t, door, root, "DELETE", "/v1/access/"+c.path+"?by=ops", "").expect(200, "{}")
		askAs(t, door, root, "DELETE", "/v1/access/"+c.path, "").expect(404, "there is no ")
		askAs(t, door, root, "DELETE", "/v1/access/"+c.path, "", v1.KeyHeader, "k").expect(200, "{}") // sent again
		askAs(t, door, root, "GET", "/v1/access", "").expect(200).without(c.want)
	}
	askAs(t, door, root, "PUT", "/v1/access/roles/admin", `{"verbs":["read"]}`).expect(400, "cannot be changed")
	askAs(t, door, root, "PUT", "/v1/access/bindings/x", `{"role":"nothing","principal":"ann"}`).
		expect(422, "there is no role nothing")
	askAs(t, door, root, "DELETE", "/v1/access/bindings/admin:root@*", "").expect(422, "nobody could change access")
	askAs(t, door, root, "DELETE", "/v1/access/tokens/boot", "").expect(422, "nobody could change access")
	askAs(t, door, root, "DELETE", "/v1/access/quotas/ann", "").expect(400, "principal/NAME")
	roles := read[v1.List[v1.AccessRole]](askAs(t, door, root, "GET", "/v1/access/roles?limit=2", "").expect(200, `"ready":true`))
	if len(roles.Items) != 2 || roles.Next == "" {
		t.Fatalf("the page is %+v", roles)
	}
	askAs(t, door, root, "GET", "/v1/access/roles?after="+roles.Next, "").expect(200, `"operator"`, `"viewer"`).without("next")
}

func TestTokens(t *testing.T) {
	door := withAccess(t)
	create := func(body string, headers ...string) answer {
		t.Helper()
		return askAs(t, door, root, "POST", "/v1/access/tokens", body, headers...)
	}
	made := read[v1.NewToken](create(`{"principal":"ann","groups":["a"],"ttl":"90d","description":"d"}`).expect(200))
	if len(made.Secret) != 46 || !strings.HasPrefix(made.Secret, "lh_") || made.Token.Expires == nil ||
		made.Token.CreatedBy != "root" || made.Token.Hash != "" {
		t.Errorf("made %+v", made)
	}
	// The secret is good, and it is nowhere but in that answer.
	hash, _ := hex.DecodeString(hashOf(made.Secret))
	var found *access.Token
	err := door.Door.backend.Read(engine.WithAsker(t.Context(), &access.System), func(v core.View) { found, _ = v.Policy().TokenOf(string(hash)) })
	if err != nil || found == nil || found.ID != made.Token.ID {
		t.Fatalf("the policy has %+v, %v", found, err)
	}
	for _, path := range []string{"/v1/access", "/v1/access/tokens", "/v1/audit", "/v1/history"} {
		askAs(t, door, root, "GET", path, "").expect(200).without(made.Secret).without(hashOf(made.Secret)[:16])
	}

	// A retry by key finds the token, and cannot show its secret.
	first := read[v1.NewToken](create(`{"principal":"ci"}`, "Idempotency-Key", "k").expect(200, "lh_"))
	again := read[v1.NewToken](create(`{"principal":"ci"}`, "Idempotency-Key", "k").expect(200).without("lh_"))
	if first.Token.ID != again.Token.ID {
		t.Errorf("a retry made %s beside %s", again.Token.ID, first.Token.ID)
	}
	create(`{"principal":"eve"}`, "Idempotency-Key", "k").expect(422, "is used already").without("lh_")

	// With a secret of the caller's own it is idempotent, and never replaces another.
	own := fmt.Sprintf(`{"principal":"ci","id":"mine","hash":"%s"}`, hashOf("lh_x"))
	create(own).expect(200, `"id":"mine"`).without("secret")
	create(own).expect(200, `"id":"mine"`).without("secret")
	create(`{"principal":"ci","id":"mine"}`).expect(422, "is used already").without("lh_")
	create(fmt.Sprintf(`{"principal":"ci","id":"other","hash":"%s"}`, hashOf("lh_x"))).expect(422, "the same secret")

	for body, why := range map[string]string{
		`{}`:                                "principal is missing",
		`{"principal":"a:b"}`:               "has a colon",
		`{"principal":"a","hash":"x"}`:      "64 hexadecimal digits",
		`{"principal":"a","ttl":"4000d"}`:   "ttl is",
		`{"principal":"a","secret":"lh_x"}`: "unknown",
	} {
		create(body).expect(400, why).without("lh_")
	}
	askAs(t, door, root, "DELETE", "/v1/access/tokens/mine", "").expect(200)
	askAs(t, door, root, "DELETE", "/v1/access/tokens/mine", "").expect(404)
	askAs(t, door, root, "GET", "/v1/audit?verb=change-access", "").expect(200, `"verb":"change-access"`, "token mine")
}

// A document is applied as it was looked at, or not at all; and it brings no revoked token back.
func TestApplyAccess(t *testing.T) {
	door := withAccess(t)
	apply := func(body string) answer {
		t.Helper()
		return askAs(t, door, root, "POST", "/v1/access/apply", body)
	}
	doc := strings.Replace(firstDocument(), `"bindings":[`,
		`"quotas":[{"principal":"*","leases":5}],"bindings":[{"role":"viewer","group":"all"},`, 1)
	seen := read[v1.AppliedAccess](apply(`{"dry_run":true,"access":`+doc+`}`).expect(200, `"applied":false`))
	if len(seen.Changes) != 2 {
		t.Errorf("it would change %+v", seen.Changes)
	}
	askAs(t, door, root, "GET", "/v1/access", "").expect(200).without("viewer")
	askAs(t, door, root, "PUT", "/v1/access/roles/r", `{"verbs":["read"]}`).expect(200)
	apply(fmt.Sprintf(`{"if_revision":%d,"access":%s}`, seen.Revision, doc)).expect(422, "look at what differs now")
	seen = read[v1.AppliedAccess](apply(`{"dry_run":true,"access":`+doc+`}`).expect(200, `"remove"`))
	request := fmt.Sprintf(`{"if_revision":%d,"access":%s}`, seen.Revision, doc)
	done := read[v1.AppliedAccess](apply(request).expect(200, `"applied":true`))
	if done.Revision != seen.Revision+1 || len(done.Changes) != 3 {
		t.Errorf("applied: %+v", done)
	}
	apply(request).expect(200, `"changes":[]`) // the answer was lost, and it is asked again

	exported := read[v1.Access](askAs(t, door, root, "GET", "/v1/access", "").expect(200))
	if exported.Revision != done.Revision || len(exported.Tokens) != 1 || exported.Tokens[0].Hash != "" {
		t.Errorf("exported: %+v", exported)
	}
	apply(`{"access":{"bindings":[{"role":"admin","principal":"root","namespace":"*"}],`+
		`"tokens":[{"id":"gone","principal":"root"}]}}`).expect(400, "token gone does not exist")
	apply(`{"access":{"bindings":[{"role":"viewer","principal":"root"}]}}`).expect(422, "nobody could change access")
	apply(`{"access":{"bindngs":[]}}`).expect(400, "unknown")
}

func TestWhoCan(t *testing.T) {
	door := withAccess(t)
	for name, body := range map[string]string{
		"a": `{"role":"member","group":"a","prefix":"prod/"}`, "o": `{"role":"operator","principal":"op"}`,
		"v": `{"role":"viewer","principal":"ann"}`,
	} {
		askAs(t, door, root, "PUT", "/v1/access/bindings/"+name, body).expect(200)
	}
	who := read[v1.WhoCan](askAs(t, door, root, "GET", "/v1/access/who-can?verb=break&path=prod/", "").expect(200))
	got := ""
	for _, r := range who.Because {
		got += fmt.Sprintf("%s:%v ", r.Binding, r.Own)
	}
	if got != "a:true admin:root@*:false o:false " {
		t.Errorf("who can break prod/: %s", got)
	}
	askAs(t, door, root, "PUT", "/v1/access/issuers/x", `{"url":"https://x","audiences":["l"]}`).expect(200)
	askAs(t, door, root, "POST", "/v1/access/tokens", `{"principal":"bob","groups":["a"]}`).expect(200)
	askAs(t, door, root, "GET", "/v1/access/can-i?verb=break&path=prod/db&as=bob", "").
		expect(200, `"allowed":true`, `"own":true`, `"groups":["a"]`)
	askAs(t, door, root, "GET", "/v1/access/can-i?verb=break&path=prod/db&as=op&group=x", "").expect(200, `"allowed":true`)
	askAs(t, door, root, "GET", "/v1/access/can-i?verb=break&path=prod/db&as=nobody", "").expect(200, `"allowed":false`)
	askAs(t, door, root, "GET", "/v1/access/can-i?verb=fly", "").expect(400, "unknown verb")
	askAs(t, door, root, "GET", "/v1/access/can-i?verb=admin&namespace=*", "").expect(200, `"allowed":true`)
}
