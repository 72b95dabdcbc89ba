package access

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// An alarm about a session is for those who may see that session: the ids of others are not told by it.
func TestAlarmsAboutSessionsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		follow := func(who string) (*followed, context.CancelFunc) {
			ctx, cancel := context.WithCancel(as(who))
			return w.follow(ctx, space), cancel
		}
		bob, end := follow("bob")
		root, stop := follow("root")
		w.do("ann", &core.OpenSession{Namespace: space, ID: "payroll", TTL: 10 * time.Second})
		time.Sleep(9500 * time.Millisecond)
		w.do("ann", &core.RenewSession{Namespace: space, ID: "payroll"})
		alarms := func(v core.View) any {
			list, _ := v.Alarms(space, core.AlarmQuery{Most: 10})
			return len(list)
		}
		for who, want := range map[string]string{"bob": "0", "ann": "1", "root": "1"} {
			if got, err := w.see(who, alarms); err != nil || got != want {
				t.Errorf("%s sees %s alarms, %v; want %s", who, got, err, want)
			}
		}
		synctest.Wait()
		end()
		stop()
		<-bob.done
		<-root.done
		told := leasehold.Alarmed.String() + " payroll"
		if len(bob.seen) > 0 || !slices.Contains(root.seen, told) {
			t.Errorf("bob is told %q, root %q", bob.seen, root.seen)
		}
	})
}
