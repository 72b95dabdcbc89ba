package azure

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// actor returns who did the newest operation.
func (b *bench) actor() string {
	b.Helper()
	page, err := b.engine.Journal().Find(b.Context(), audit.Query{Kind: audit.Operation, Namespace: "default", Limit: 1})
	if err != nil || len(page.Lines) != 1 {
		b.Fatalf("the journal has %+v, %v", page.Lines, err)
	}
	return page.Lines[0].Actor
}

// A key of an account or a signature by it proves the account; a token of ours proves its principal.
func TestLogin(t *testing.T) {
	b := newBench(t)
	b.ask("PUT", "/before?restype=container", "").expect(201)
	if got := b.actor(); got != testAccount {
		t.Errorf("access is off, and the actor is %s", got)
	}
	secret, hash := credential.NewToken()
	_, err := b.engine.Do(t.Context(), &core.ChangeAccess{Put: access.Items{
		Tokens: []*access.Token{{ID: "t1", Hash: hash, Principal: "root"}},
		Bindings: []*access.Binding{
			{Name: "admins", Role: "admin", Principal: "root", Namespace: "*"},
			{Name: "account", Role: "admin", Principal: "azure:" + testAccount, Namespace: "default"},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.ask("PUT", "/box?restype=container", "").expect(201)
	if got := b.actor(); got != "azure:"+testAccount {
		t.Errorf("with the key the actor is %s", got)
	}
	bearer := func(account, method, target, token string) reply {
		r := httptest.NewRequest(method, "https://127.0.0.1/"+account+target, nil)
		r.RequestURI = r.URL.RequestURI()
		r.Header.Set("Authorization", "Bearer "+token)
		return b.send(r)
	}
	bearer(testAccount, "PUT", "/two?restype=container", secret).expect(201)
	if got := b.actor(); got != "root" {
		t.Errorf("with a token the actor is %s", got)
	}
	bearer("another", "PUT", "/two?restype=container", secret).expect(401, "InvalidAuthenticationInfo")
	wrong, _ := credential.NewToken()
	got := bearer(testAccount, "PUT", "/three?restype=container", wrong).expect(401, "InvalidAuthenticationInfo")
	if strings.Contains(got.body, wrong[3:]) || !strings.Contains(got.body, "revoked") {
		t.Errorf("the answer is %s", got.body)
	}

	// What a signature is for stays its limit.
	q := url.Values{"sv": {"2021-12-02"}, "sp": {"r"}, "sr": {"b"},
		"se": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}
	signed := b.signedURL(azureblob.Place{Account: testAccount, Container: "box", Blob: "x"}, q)
	b.send(bare("GET", "/leasehold/box/x?"+signed, "")).expect(404, "BlobNotFound")
	b.send(bare("PUT", "/leasehold/box/x?"+signed, "", "x-ms-blob-type", "BlockBlob")).
		expect(403, "AuthorizationPermissionMismatch")
}

// Wrong keys and signatures are slowed down by the address that they come from, and nobody else is.
func TestWrongKeysAreSlowedDown(t *testing.T) {
	b := newBench(t)
	b.ask("PUT", "/box?restype=container", "").expect(201)
	wrong := base64.StdEncoding.EncodeToString(make([]byte, 32))
	signed := "sv=2021-12-02&sp=r&sr=b&se=2099-01-01T00:00:00Z&sig=" + url.QueryEscape(wrong)
	now := timeOf(time.Now().UnixNano())
	tries := map[string]func() *http.Request{
		"key": func() *http.Request {
			return bare("GET", "/leasehold/box?restype=container", "", "Authorization", "SharedKey leasehold:"+wrong,
				"x-ms-date", now)
		},
		"manager": func() *http.Request {
			return bare("GET", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/leasehold", "",
				"Authorization", "Bearer a.b.c")
		},
		"sas":    func() *http.Request { return bare("GET", "/leasehold/box/x?"+signed, "") },
		"bearer": func() *http.Request { return bare("GET", "/leasehold/box/x", "", "Authorization", "Bearer a.b.c") },
		"secret": func() *http.Request {
			return bare("POST", "/login/common/oauth2/v2.0/token", "grant_type=client_credentials&client_secret="+
				url.QueryEscape(wrong), "Content-Type", "application/x-www-form-urlencoded")
		},
	}
	n := 0
	for name, try := range tries {
		n++
		slowed := 0
		for range 30 {
			r := try()
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", n)
			switch got := b.send(r); got.status {
			case 503:
				slowed++
				got.expect(503, "ServerBusy")
				if !strings.Contains(got.body, "too many logins failed from this address: wait 1 s") {
					t.Errorf("%s: the answer is %s", name, got.body)
				}
			case 401, 403:
			default:
				t.Errorf("%s: it is answered %d %s", name, got.status, got.body)
			}
		}
		if slowed < 5 {
			t.Errorf("%s: %d of 30 are slowed down", name, slowed)
		}
		r := bare("GET", "/leasehold/box?restype=container", "")
		b.sign(r)
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:2", n)
		b.send(r).expect(200) // the right key is let in at once
	}
	b.ask("GET", "/box?restype=container", "").expect(200)
}
