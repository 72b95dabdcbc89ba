package kernel

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/leasehold/leasehold"
)

// TestClaimStaysSmall: there are millions of claims, and the next size that the
// allocator has is an eighth more.
func TestClaimStaysSmall(t *testing.T) {
	if size := unsafe.Sizeof(Claim{}); size > 144 {
		t.Errorf("a claim has %d bytes", size)
	}
	if size := unsafe.Sizeof(Session{}); size > 128 {
		t.Errorf("a session has %d bytes", size)
	}
}

// TestUsualIsBounded: however much happens, what is remembered stays as large.
func TestUsualIsBounded(t *testing.T) {
	const most, bytes = 64, 4 // leases, and what is kept of each
	s := newState()
	for i := range 3 * most {
		id := fmt.Sprint(i)
		apply(t, s, time.Duration(2*i)*time.Second, acquireNow(id, Request{}))
		apply(t, s, time.Duration(2*i+1)*time.Second, &Release{Namespace: "default", ID: id})
	}
	u := s.space("default").usual("printer")
	if len(u.Holds) != most*bytes || u.WellFormed() != nil {
		t.Errorf("%d bytes are remembered: %v", len(u.Holds), u.WellFormed())
	}
	if a := s.View(0).Status("default", "printer", 0); a.Usual.Holds != most || a.Usual.HoldP50 != time.Second {
		t.Errorf("%+v", a.Usual)
	}
}

// lose lets a lease on a resource expire.
func lose(t *testing.T, s *State, namespace, resource string, at time.Duration) {
	t.Helper()
	id := fmt.Sprint(resource, at)
	apply(t, s, at, &Acquire{Namespace: namespace, Resource: resource, ID: id, Holder: "ann", TTL: leasehold.MinTTL})
	apply(t, s, at+leasehold.MinTTL, &Tick{})
}

// TestAlarmsOfANamespaceAreBounded: beyond a thousand the oldest makes room.
func TestAlarmsOfANamespaceAreBounded(t *testing.T) {
	t.Parallel()
	s := newState()
	for i := range maxAlarmsOne + 5 {
		lose(t, s, "default", fmt.Sprintf("r%05d", i), 2*time.Duration(i)*time.Second)
	}
	list, next := s.View(0).Alarms("default", AlarmQuery{Most: 2 * maxAlarmsOne})
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
	s := newState()
	apply(t, s, 0, &Define{Namespace: "default", Definition: leasehold.Definition{Path: "z/", Unclean: leasehold.AwaitAcknowledgement}})
	const leases = 5 * maxAlarmsAtOnce
	for i := range leases {
		apply(t, s, 0, &Acquire{Namespace: "default", Resource: fmt.Sprintf("r%05d", i), ID: fmt.Sprintf("a%05d", i), Holder: "ann", TTL: time.Second})
	}
	apply(t, s, 0, &Acquire{Namespace: "default", Resource: "z/disk", ID: "z", Holder: "ann", TTL: time.Second})
	apply(t, s, time.Second, &Tick{})
	list, _ := s.View(0).Alarms("default", AlarmQuery{Most: leases})
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
	s := newState()
	for i := range maxAlarms {
		lose(t, s, fmt.Sprint("n", i/maxAlarmsOne), fmt.Sprintf("r%05d", i), time.Duration(i)*leasehold.MinTTL)
	}
	full := maxAlarms * leasehold.MinTTL
	lose(t, s, "another", "printer", full)
	if list, _ := s.View(0).Alarms("another", AlarmQuery{Most: 10}); len(list) != 0 || s.alarms.all != maxAlarms {
		t.Errorf("%d alarms stand in all, %d of them should not", s.alarms.all, len(list))
	}
	lose(t, s, "n3", "printer", full+time.Minute)
	if list, _ := s.View(0).Alarms("n3", AlarmQuery{Most: 1}); list[0].Resource != "printer" {
		t.Errorf("the newest is %v", list[0])
	}
	lose(t, s, "another", "printer", full+leasehold.AlarmMemory/2+time.Minute)
	lose(t, s, "another", "printer", full+leasehold.AlarmMemory+time.Minute)
	lose(t, s, "another", "printer", full+leasehold.AlarmMemory+2*time.Minute)
	if list, _ := s.View(0).Alarms("another", AlarmQuery{Most: 10}); len(list) != 1 {
		t.Errorf("%d alarms stand where there is room again", len(list))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
