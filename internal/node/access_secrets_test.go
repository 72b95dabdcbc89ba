package node

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// TestNoSecretIsKept uses credentials, good ones and wrong ones, and looks for them in all that a server writes or says.
func TestNoSecretIsKept(t *testing.T) {
	w := newHouse(t)
	w.tokens["jwt"] = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4eXp6eSJ9.c2VjcmV0LW9mLWEtand0"
	w.tokens["wrong"] = "lh_" + strings.Repeat("Wr0ng", 8) + "123"
	said := &strings.Builder{}
	for who := range w.tokens {
		for _, r := range []request{
			{method: "GET", path: "/v1/resources"}, {method: "GET", path: "/v1/access"}, {method: "GET", path: "/v1/access/tokens"},
			{method: "POST", path: "/v1/acquire", body: `{"resource":"common/s","holder":"h"}`}, {method: "GET", path: "/terraform/a/x"},
			{method: "GET", path: "azure:/abox?restype=container&comp=list"}, {method: "GET", path: "/metrics"},
			{method: "GET", path: "/v1/audit?limit=1000"}, {method: "GET", path: "/v1/cluster/backup"},
		} {
			said.WriteString(w.ask(who, r).all())
		}
	}
	w.stop()
	said.WriteString(w.log.String())
	files := 0
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		said.Write(text)
		return err
	})
	if err != nil || files < 2 {
		t.Fatalf("%d files, %v", files, err)
	}
	if !strings.Contains(said.String(), "h-"+word) {
		t.Error("what the server keeps was not found: the test looks in the wrong place")
	}
	for who, secret := range w.tokens {
		if secret = strings.TrimPrefix(secret, "lh_"); bytes.Contains([]byte(said.String()), []byte(secret)) {
			t.Errorf("the secret of %s was found", who)
		}
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
