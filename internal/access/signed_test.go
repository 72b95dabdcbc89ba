package access

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
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

// What is submitted together is let in, signed and refused like what is done alone.
func TestSubmittedCommandsAreGuarded(t *testing.T) {
	w := newWorld(t)
	w.acquire("ann", space, "a/x", "1")
	w.quota(policy.Quota{Principal: "ann", Renewals: 2, Requests: 10})
	said := &core.Break{Namespace: space, ID: "1", By: "bob"}
	renew := &core.Renew{Namespace: space, ID: "1"}
	batch := []engine.Submission{{Ctx: as("ann"), Command: renew}, {Ctx: context.Background(), Command: renew},
		{Ctx: as("ann"), Command: renew}, {Ctx: as("ann"), Command: renew}, {Ctx: as("op"), Command: said}}
	got := make([]error, len(batch))
	for i := range batch {
		got[i] = errors.New("no answer")
		batch[i].Done = func(_ core.Answer, err error) { got[i] = err }
	}
	w.guard.Submit(batch)
	for i, want := range []error{nil, leasehold.ErrDenied, nil, leasehold.ErrLimited, nil} {
		if !errors.Is(got[i], want) {
			t.Errorf("command %d: %v, want %v", i, got[i], want)
		}
	}
	seen, err := w.see("ann", func(v core.View) any { return v.Status(space, "a/x", 0) })
	if err != nil || !strings.Contains(seen, `"By":"op"`) || said.By != "bob" {
		t.Errorf("the one who asked was op: %s, %v", seen, err)
	}
}
