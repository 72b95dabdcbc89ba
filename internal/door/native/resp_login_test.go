package native

import (
	"strings"
	"testing"
	"testing/synctest"
)

// Who asks over RESP is judged with every command, and what it began ends with its credential.
func TestRESPLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		before := h.speak() // while access is off
		defer before.conn.Close()
		before.fields("LH.ACQUIRE", "a/before", "HOLDER", "x")
		admin, member := govern(t, h.engine)
		before.fails("NOAUTH", "no credential", "LH.GET", "a/before")
		before.fails("WRONGPASS", "", "AUTH", "lh_rubbish")

		c := h.speak()
		defer c.conn.Close()
		if got := plainOf(c.do("AUTH", "anybody", member)); got != "OK" {
			t.Fatal(got)
		}
		c.fields("LH.ACQUIRE", "a/x", "HOLDER", "ann", "ID", "one", "TTL", "none")
		c.fails("DENIED", "", "LH.ACQUIRE", "b/x", "HOLDER", "ann")
		c.fails("DENIED", "", "LH.ACCESS", "GET")
		c.fields("LH.WATCH", "PREFIX", "a/", "TAG", "w")

		root := h.speak()
		defer root.conn.Close()
		if got := plainOf(root.do("AUTH", admin)); got != "OK" {
			t.Fatal(got)
		}
		items := root.fields("LH.AUDIT", "ACTOR", "ann")["items"].([]any)
		denied := 0
		for _, item := range items {
			if line := item.(map[string]any); line["outcome"] == "denied" && line["door"] == "resp" {
				denied++
			}
		}
		if denied != 2 {
			t.Errorf("the journal has %d denials: %v", denied, items)
		}
		for {
			push, ok := plainOf(c.next()).([]any)
			if !ok || push[0] == "lh.end" {
				if !ok || !strings.HasPrefix(push[2].(string), "-NOAUTH") {
					t.Errorf("the watch ends with %v", push)
				}
				break
			}
		}
		c.fails("NOAUTH", "expired", "LH.RENEW", "one")
	})
}
