package node

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/providertest"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// TestNoSecretIsKept uses credentials of every kind, good ones and wrong ones, and looks for them in all that a server
// writes or says: its log at debug, the log and snapshots of the cluster, the journal, a backup, metrics and errors.
func TestNoSecretIsKept(t *testing.T) {
	flags := azureSettings(t)
	flags["snapshot-every"], flags["log-level"] = "1MiB", "debug"
	w := newHouseWith(t, flags)
	w.tokens["jwt"], w.tokens["forged"] = jwts(w)
	w.tokens["unsigned"] = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4eXp6eSJ9.c2VjcmV0LW9mLWEtand0"
	w.tokens["wrong"] = "lh_" + strings.Repeat("Wr0ng", 8) + "123"
	if got := w.ask("jwt", request{method: "GET", path: "/v1/access/whoami"}); !strings.Contains(got.body, "corp:joe") {
		t.Errorf("the JWT proves nobody: %s", got.all())
	}
	said := &strings.Builder{}
	for who, secret := range maps.Clone(w.tokens) {
		basic := base64.StdEncoding.EncodeToString([]byte("anybody:" + secret))
		for _, r := range []request{
			{method: "GET", path: "/v1/resources"}, {method: "GET", path: "/v1/access"}, {method: "GET", path: "/v1/access/tokens"},
			{method: "POST", path: "/v1/acquire", body: `{"resource":"common/s","holder":"h"}`},
			{method: "POST", path: "/v1/acquire", body: `{"nothing":`}, {method: "GET", path: "/v1/nothing"},
			{method: "GET", path: "/terraform/a/x"}, {method: "GET", path: "azure:/abox?restype=container&comp=list"},
			{method: "GET", path: "/terraform/a/x", headers: []string{"Authorization", "Basic " + basic}},
			{method: "GET", path: "/metrics"}, {method: "GET", path: "/readyz"}, {method: "GET", path: "/v1/cluster"},
			{method: "GET", path: "/v1/audit?limit=1000"}, {method: "GET", path: "/v1/cluster/backup"},
		} {
			said.WriteString(w.ask(who, r).all())
		}
		w.tokens["basic "+who] = basic
	}
	said.WriteString(w.signed(flags))
	for i := range 30 { // more than there may be without a snapshot
		w.must("root", request{method: "PUT", path: fmt.Sprintf("/v1/records/filler/%d", i), body: strings.Repeat("f", 50000)})
	}
	for end := time.Now().Add(time.Minute); len(snapshots(w)) == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	w.stop()
	said.WriteString(w.log.String())
	w.readFiles(said)
	for _, is := range []string{"h-" + word, "level=DEBUG", "leasehold_"} {
		if !strings.Contains(said.String(), is) {
			t.Errorf("%q was not found: the test looks in the wrong place", is)
		}
	}
	for who, secret := range w.tokens {
		if secret = strings.TrimPrefix(secret, "lh_"); strings.Contains(said.String(), secret) {
			t.Errorf("the secret of %s was found", who)
		}
	}
}

// jwts adds an issuer to the policy, and returns a JWT of joe and one that only looks like it.
func jwts(w *world) (good, forged string) {
	p := providertest.Start(w.TB)
	kid := p.Add(jose.ES256)
	w.change(&core.ChangeAccess{Put: access.Items{
		Issuers:  []*access.Issuer{{Name: "corp", URL: p.URL(), Audiences: []string{"leasehold"}, Keys: p.JWKS()}},
		Bindings: []*access.Binding{bind("corp:joe", "member", leasehold.DefaultNamespace, "common/")},
	}})
	good = p.Sign(kid, p.Claims(time.Now(), providertest.Set{"sub": "joe"}))
	other := p.Sign(kid, p.Claims(time.Now(), providertest.Set{"sub": "ann"}))
	return good, good[:strings.LastIndex(good, ".")] + other[strings.LastIndex(other, "."):]
}

// signed asks as Azure's clients do whose address is signed, rightly and wrongly, and returns what was answered. The
// signatures and the key are among the secrets from then on.
func (w *world) signed(flags map[string]string) (said string) {
	w.Helper()
	w.change(&core.ChangeAccess{Put: access.Items{Bindings: []*access.Binding{
		bind("azure:"+account, "operator", leasehold.DefaultNamespace, "")}}})
	book, err := azureaccount.Open(flags["azure-accounts"], flags["azure-secret-file"])
	if err != nil {
		w.Fatal(err)
	}
	key := book.Keys(account)[0]
	q := url.Values{"sv": {"2021-12-02"}, "ss": {"b"}, "srt": {"sco"}, "sp": {"rl"},
		"se": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}
	mac := hmac.New(sha256.New, key)
	for _, field := range []string{account, q.Get("sp"), q.Get("ss"), q.Get("srt"), "", q.Get("se"), "", "", q.Get("sv"), ""} {
		mac.Write([]byte(field + "\n"))
	}
	right := mac.Sum(nil)
	wrong := bytes.Repeat([]byte("wrong"), 7)[:32]
	w.tokens["account key"] = base64.StdEncoding.EncodeToString(key)
	for name, sum := range map[string][]byte{"SAS": right, "wrong SAS": wrong} {
		text := base64.StdEncoding.EncodeToString(sum)
		q.Set("sig", text)
		w.tokens[name], w.tokens[name+" in an address"] = text, url.QueryEscape(text)
		got := w.ask("", request{method: "GET", path: "azure:/abox?restype=container&comp=list&" + q.Encode()})
		if name == "SAS" && got.status != 200 {
			w.Errorf("the signature is not taken: %s", got.all())
		}
		said += got.all()
	}
	return said
}

func snapshots(w *world) []string {
	found, err := filepath.Glob(filepath.Join(w.dir, "snap", "*.snap.db"))
	if err != nil {
		w.Error(err)
	}
	return found
}

// readFiles adds all that the server has written. There must be a snapshot among it.
func (w *world) readFiles(said *strings.Builder) {
	w.Helper()
	snapshot := []byte(nil)
	for _, name := range snapshots(w) {
		text, err := os.ReadFile(name)
		if err != nil {
			w.Error(err)
		}
		snapshot = append(snapshot, text...)
	}
	if !bytes.Contains(snapshot, []byte("corp:joe")) {
		w.Error("no snapshot has the policy, as text that can be looked through")
	}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		said.Write(text)
		return err
	})
	if err != nil {
		w.Error(err)
	}
}

// TestRevocationEndsWhatIsOpen: a watch and a wait end within a second.
func TestRevocationEndsWhatIsOpen(t *testing.T) {
	w := newHouse(t)
	soon := w.token("soon")
	bound := w.token("bound")
	ends := w.token("ends")
	ends.ExpiresWall = time.Now().Add(3 * time.Second).UnixNano()
	items := access.Items{Tokens: []*access.Token{soon, bound, ends}}
	for _, who := range []string{"soon", "bound", "ends"} {
		items.Bindings = append(items.Bindings, bind(who, "member", leasehold.DefaultNamespace, "common/"))
	}
	w.change(&core.ChangeAccess{Put: items})
	w.must("vic", request{method: "POST", path: "/v1/acquire", body: `{"resource":"common/w","holder":"vic","ttl":"1h"}`})
	type ending struct {
		what string
		at   time.Time
		got  reply
	}
	open := func(who string) chan ending {
		ended := make(chan ending, 2)
		go func() {
			got := w.ask(who, request{method: "GET", path: "/v1/watch?since=1"})
			ended <- ending{"watch", time.Now(), got}
		}()
		go func() {
			got := w.ask(who, request{method: "POST", path: "/v1/acquire",
				body: `{"resource":"common/w","holder":"` + who + `","wait":"20s","ttl":"1h"}`})
			ended <- ending{"wait", time.Now(), got}
		}()
		return ended
	}
	for _, one := range []struct {
		who string
		end func() time.Time
	}{
		{"ends", func() time.Time { return time.Unix(0, ends.ExpiresWall) }},
		{"soon", func() time.Time {
			w.change(&core.ChangeAccess{Remove: access.Keys{Tokens: []string{soon.ID}}})
			return time.Now()
		}},
		{"bound", func() time.Time {
			w.change(&core.ChangeAccess{Remove: access.Keys{Bindings: []string{items.Bindings[1].Name}}})
			return time.Now()
		}},
	} {
		ended := open(one.who)
		time.Sleep(300 * time.Millisecond) // they are open by then, and if not they are refused at once
		began := one.end()
		for range 2 {
			e := <-ended
			if late := e.at.Sub(began); late > time.Second {
				t.Errorf("the %s of %s ended %v later: %s", e.what, one.who, late, e.got.all())
			}
			if e.what == "wait" && e.got.status == 200 {
				t.Errorf("the wait of %s was granted: %s", one.who, e.got.all())
			}
		}
	}
}
