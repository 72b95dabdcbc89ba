package native

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestNamespacesInPages(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "GET", "/v1/namespaces", "").expect(200, `{"items":[]}`)
	for _, name := range []string{"team-b", "default", "team-a", "team-c"} {
		ask(t, door, "POST", "/v1/acquire?namespace="+name, `{"resource":"x","holder":"h"}`).expect(200)
	}
	var names []string
	for after := ""; ; {
		page := read[v1.List[v1.Namespace]](ask(t, door, "GET", "/v1/namespaces?prefix=team-&limit=2&after="+after, "").expect(200))
		for _, n := range page.Items {
			names = append(names, n.Namespace)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if fmt.Sprint(names) != "[team-a team-b team-c]" {
		t.Errorf("the namespaces are %v", names)
	}
	ask(t, door, "GET", "/v1/namespaces?namespace=default", "").expect(400, "namespace")
	ask(t, door, "GET", "/v1/namespaces?after=!", "").expect(400, "after")
	ask(t, door, "GET", "/v1/namespaces?limit=0", "").expect(400, "limit")
}

func TestNamespacesOverRESP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		c := h.speak()
		defer c.conn.Close()
		for _, name := range []string{"team-a", "team-b"} {
			ask(t, h.door, "POST", "/v1/acquire?namespace="+name, `{"resource":"x","holder":"h"}`).expect(200)
		}
		got := fmt.Sprint(plainOf(c.do("LH.NAMESPACES", "PREFIX", "team-", "LIMIT", "1")))
		if !strings.Contains(got, "team-a") || strings.Contains(got, "team-b") || !strings.Contains(got, "next") {
			t.Errorf("the answer is %v", got)
		}
	})
}

// That a namespace exists is nobody's business who may do nothing in it.
func TestNamespacesOfOthers(t *testing.T) {
	door := withAccess(t)
	askAs(t, door, root, "PUT", "/v1/access/bindings/a", `{"role":"viewer","principal":"ann","namespace":"team-a","prefix":"x/"}`).expect(200)
	secret := read[v1.NewToken](askAs(t, door, root, "POST", "/v1/access/tokens", `{"principal":"ann"}`).expect(200)).Secret
	for _, name := range []string{"team-a", "team-b"} {
		askAs(t, door, root, "POST", "/v1/acquire?namespace="+name, `{"resource":"x","holder":"h"}`).expect(200)
	}
	askAs(t, door, secret, "GET", "/v1/namespaces", "").expect(200, `"team-a"`).without("team-b")
	askAs(t, door, root, "GET", "/v1/namespaces", "").expect(200, `"team-a"`, `"team-b"`)
	askAs(t, door, "", "GET", "/v1/namespaces", "").expect(401)
}
