package access

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
)

// Tokens that end soon are alarms for admins alone, until they have ended.
func TestTokensThatEndSoonAreAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for id, left := range map[string]time.Duration{"later": 8 * 24 * time.Hour, "second": 48 * time.Hour, "first": time.Hour} {
			w.change(policy.Keys{}, policy.Items{Tokens: []*policy.Token{{
				ID: id, Hash: strings.Repeat(id[:1], 32), Principal: "ci", ExpiresWall: time.Now().Add(left).UnixNano(),
			}}})
		}
		tokens := func(q core.AlarmQuery) func(core.View) any {
			return func(v core.View) any {
				var found []string
				list, _ := v.Alarms(space, q)
				for _, a := range list {
					if a.Kind == leasehold.TokenEnding {
						found = append(found, strings.Fields(a.Text)[2])
					}
				}
				return found
			}
		}
		all := core.AlarmQuery{Most: 10}
		expect := func(who string, q core.AlarmQuery, want string) {
			t.Helper()
			if got, _ := w.see(who, tokens(q)); got != want {
				t.Errorf("%s sees %s, want %s", who, got, want)
			}
		}
		none, _ := w.see("ann", tokens(all))
		expect("root", all, `["first","second"]`)
		expect("root", core.AlarmQuery{Kind: leasehold.TokenEnding, Most: 1}, `["first"]`)
		expect("root", core.AlarmQuery{Kind: leasehold.HeldLong, Most: 10}, none)
		w.populate()
		expect("root", core.AlarmQuery{Most: 2}, `["first"]`)
		most := func(v core.View) any {
			list, _ := v.Alarms(space, core.AlarmQuery{Most: 2})
			return len(list) <= 2
		}
		if got, err := w.see("root", most); got != "true" {
			t.Errorf("a page of two has more: %s, %v", got, err)
		}
		time.Sleep(2 * time.Hour)
		expect("root", all, `["second"]`)
	})
}
