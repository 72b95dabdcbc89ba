package mcp

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Before an agent ends the work of another, the person behind it is asked, and says why.
func TestAPersonConfirmsABreak(t *testing.T) {
	for _, c := range []struct {
		name    string
		says    *sdk.ElicitResult
		refusal leasehold.Code // 0: the lease is broken
		reason  string
	}{
		{"yes", &sdk.ElicitResult{Action: "accept", Content: map[string]any{"reason": "her machine died"}}, 0, "her machine died"},
		{"yes, for that reason", &sdk.ElicitResult{Action: "accept"}, 0, "the agent's reason"},
		{"no", &sdk.ElicitResult{Action: "decline"}, leasehold.Denied, ""},
		{"no answer", &sdk.ElicitResult{Action: "cancel"}, leasehold.Denied, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Config{Break: true})
			asked := ""
			bob := dialSDK(t, serve(t, b), "bob", func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked += r.Params.Message
				return c.says, nil
			})
			b.acquire("ann", "task/1").is(statusHeld)
			got := bob.call("lease_break", map[string]any{"resource": "task/1", "reason": "the agent's reason"})
			if strings.Count(asked, "bob wants to end the lease of ann on task/1 (fix the login)") != 1 {
				t.Errorf("the person was asked %q", asked)
			}
			if c.refusal != 0 {
				got.fails(c.refusal, "did not confirm")
				b.check("ann").is(statusHeld)
				return
			}
			got.says(`"holder":"ann"`)
			if l := b.status("task/1").Holders[0]; l.State != leasehold.Breaking || b.reasonOfBreak() != c.reason {
				t.Errorf("it is %v for %q", l.State, b.reasonOfBreak())
			}
		})
	}
}

// reasonOfBreak returns why a lease was broken, as the history has it.
func (b *bench) reasonOfBreak() (reason string) {
	_ = b.engine.Read(b.t.Context(), func(v core.View) {
		found, _, _ := v.History(leasehold.DefaultNamespace).Last(0, 0, 1, 100, func(e *leasehold.Event) bool {
			return e.Kind == leasehold.BreakSet
		})
		for _, e := range found {
			reason = e.Reason
		}
	})
	return reason
}

// What a person confirmed for one holder is no break of the next one's lease.
func TestAConfirmationIsForOneLease(t *testing.T) {
	b := newBench(t, Config{Break: true})
	first := b.acquire("ann", "task/1").is(statusHeld)
	bob := dialSDK(t, serve(t, b), "bob", func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		b.release("ann", first.ID)
		b.acquire("eve", "task/1").is(statusHeld)
		return &sdk.ElicitResult{Action: "accept"}, nil
	})
	bob.call("lease_break", map[string]any{"resource": "task/1", "reason": "x"}).fails(leasehold.Refused, "another holder", "eve")
	b.check("eve").is(statusHeld)
}

// Where nobody can be asked, the operator's switch and access decide alone.
func TestNobodyIsAskedWhereNobodyCanBe(t *testing.T) {
	b := newBench(t, Config{Break: true})
	b.acquire("ann", "task/1").is(statusHeld)
	bob := dialSDK(t, serve(t, b), "bob", nil)
	bob.call("lease_break", map[string]any{"resource": "task/1", "reason": "x"}).says(`"holder":"ann"`)
}
