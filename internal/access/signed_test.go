package access

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
)

// What others read as the author of a break is who was proven to ask, whatever the client calls itself.
func TestABreakIsByWhoWasProven(t *testing.T) {
	w := newWorld(t)
	w.acquire("ann", space, "a/x", "1")
	said := &core.Break{Namespace: space, ID: "1", By: "bob"}
	w.do("op", said)
	seen, err := w.see("ann", func(v core.View) any { return v.Status(space, "a/x", 0) })
	if err != nil || !strings.Contains(seen, `"By":"op"`) {
		t.Errorf("the one who asked was op: %s, %v", seen, err)
	}
	if said.By != "bob" {
		t.Error("the command of the door was changed")
	}
}
