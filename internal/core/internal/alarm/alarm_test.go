package alarm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/area"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/internal/learn"
	"github.com/leasehold/leasehold/internal/core/internal/records"
	"github.com/leasehold/leasehold/internal/core/internal/reserve"
	"github.com/leasehold/leasehold/internal/core/internal/task"
	"github.com/leasehold/leasehold/internal/core/internal/unit"
)

// newState returns a state, and its alarms.
func newState() (*kernel.State, *alarms) {
	made := New().(*alarms)
	return kernel.NewAt(kernel.NewestLevel, &kernel.Subjects{
		NewAreas: area.New, NewTasks: task.New, NewPools: unit.New, NewAlarms: func() kernel.Alarms { return made },
		NewReservations: reserve.New, NewLearning: learn.New, NewRecords: records.New,
	}), made
}

func apply(t *testing.T, s *kernel.State, at time.Duration, c kernel.Command) {
	t.Helper()
	if _, err := s.Apply(kernel.Time(time.Hour+at), int64(at), []kernel.Command{c}); err != nil {
		t.Fatal(err)
	}
}

// lose lets a lease on a resource expire.
func lose(t *testing.T, s *kernel.State, namespace, resource string, at time.Duration) {
	t.Helper()
	id := fmt.Sprint(resource, at)
	apply(t, s, at, &kernel.Acquire{Namespace: namespace, Resource: resource, ID: id, Holder: "ann", TTL: leasehold.MinTTL})
	apply(t, s, at+leasehold.MinTTL, &kernel.Tick{})
}

// TestAlarmsOfANamespaceAreBounded: beyond a thousand the oldest makes room.
func TestAlarmsOfANamespaceAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := newState()
	for i := range maxAlarmsOne + 5 {
		lose(t, s, "default", fmt.Sprintf("r%05d", i), 2*time.Duration(i)*time.Second)
	}
	list, next := s.View(0).Alarms("default", kernel.AlarmQuery{Most: 2 * maxAlarmsOne})
	if len(list) != maxAlarmsOne || next != 0 || list[0].Resource != "r01004" || list[maxAlarmsOne-1].Resource != "r00005" {
		t.Errorf("%d alarms, from %s to %s", len(list), list[0].Resource, list[len(list)-1].Resource)
	}
	if n := s.View(0).Counts().Alarms; n[leasehold.UncleanEnd-1].Stand != maxAlarmsOne || n[leasehold.UncleanEnd-1].Raised != maxAlarmsOne+5 {
		t.Errorf("counted are %+v", n)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestLeasesThatEndTogetherRaiseAHundredAlarms: all of them are counted, and one that somebody has to acknowledge has its alarm.
func TestLeasesThatEndTogetherRaiseAHundredAlarms(t *testing.T) {
	t.Parallel()
	s, _ := newState()
	apply(t, s, 0, &kernel.Define{Namespace: "default", Definition: leasehold.Definition{Path: "z/", Unclean: leasehold.AwaitAcknowledgement}})
	const leases = 5 * maxAlarmsAtOnce
	for i := range leases {
		apply(t, s, 0, &kernel.Acquire{Namespace: "default", Resource: fmt.Sprintf("r%05d", i), ID: fmt.Sprintf("a%05d", i), Holder: "ann", TTL: time.Second})
	}
	apply(t, s, 0, &kernel.Acquire{Namespace: "default", Resource: "z/disk", ID: "z", Holder: "ann", TTL: time.Second})
	apply(t, s, time.Second, &kernel.Tick{})
	list, _ := s.View(0).Alarms("default", kernel.AlarmQuery{Most: leases})
	if len(list) != maxAlarmsAtOnce+1 || list[0].Resource != "z/disk" {
		t.Errorf("%d alarms, the newest about %s", len(list), list[0].Resource)
	}
	if n := s.View(0).Counts().Alarms[leasehold.UncleanEnd-1]; n.Raised != leases+1 {
		t.Errorf("%d were raised", n.Raised)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestAlarmsOfAllAreBounded: with ten thousand alarms in ten namespaces, an eleventh
// gets room of its own and of nobody else, until some are forgotten.
func TestAlarmsOfAllAreBounded(t *testing.T) {
	t.Parallel()
	s, made := newState()
	for i := range maxAlarms {
		lose(t, s, fmt.Sprint("n", i/maxAlarmsOne), fmt.Sprintf("r%05d", i), time.Duration(i)*leasehold.MinTTL)
	}
	full := maxAlarms * leasehold.MinTTL
	lose(t, s, "another", "printer", full)
	all := 0
	for _, n := range made.stand {
		all += n
	}
	if list, _ := s.View(0).Alarms("another", kernel.AlarmQuery{Most: 10}); len(list) != 0 || all != maxAlarms {
		t.Errorf("%d alarms stand in all, %d of them should not", all, len(list))
	}
	lose(t, s, "n3", "printer", full+time.Minute)
	if list, _ := s.View(0).Alarms("n3", kernel.AlarmQuery{Most: 1}); list[0].Resource != "printer" {
		t.Errorf("the newest is %v", list[0])
	}
	lose(t, s, "another", "printer", full+leasehold.AlarmMemory/2+time.Minute)
	lose(t, s, "another", "printer", full+leasehold.AlarmMemory+time.Minute)
	lose(t, s, "another", "printer", full+leasehold.AlarmMemory+2*time.Minute)
	if list, _ := s.View(0).Alarms("another", kernel.AlarmQuery{Most: 10}); len(list) != 1 {
		t.Errorf("%d alarms stand where there is room again", len(list))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestCheckFinds damages alarms in every way that Check is there for.
func TestCheckFinds(t *testing.T) {
	for _, test := range []struct {
		damage func(s *alarms, of *table, a *Alarm)
		says   string
	}{
		{func(s *alarms, of *table, a *Alarm) { of.byKey.Delete(a.key()); of.byOrder.Delete(a.Order) }, "0 alarms stand, 1 are counted"},
		{func(s *alarms, _ *table, a *Alarm) { s.stand[a.Kind]++ }, "1 alarms stand, 1 are counted"},
		{func(_ *alarms, of *table, a *Alarm) { of.byOrder.Delete(a.Order) }, "default has 1 alarms, 0 in order"},
		{func(s *alarms, _ *table, a *Alarm) { s.past.Delete(a.Order) }, "is not forgotten when it should be"},
		{func(s *alarms, _ *table, a *Alarm) { s.past.Set(a.Order+1, a) }, "1 alarms are to be forgotten, 2 are listed"},
		{func(s *alarms, of *table, a *Alarm) {
			long := &Alarm{Kind: leasehold.HeldLong, ID: "other", Order: a.Order}
			of.byKey.Set(long.key(), long)
		}, "is about a lease that is not held for too long"},
		{func(_ *alarms, _ *table, a *Alarm) { a.Quiet = true }, "is quiet"},
	} {
		s, made := newState()
		lose(t, s, "default", "printer", 0)
		if err := s.Check(); err != nil {
			t.Fatalf("a state that nobody has damaged: %v", err)
		}
		of := made.table("default")
		_, a, _ := of.byOrder.Min()
		test.damage(made, of, a)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("what says %q was found to be: %v", test.says, err)
		}
	}
}
