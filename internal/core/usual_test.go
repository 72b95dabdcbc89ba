package core

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/leasehold/leasehold"
)

// TestScaleTellsTimesApart: each step is above the one before it by an eighth at most,
// and what is learned is within a sixteenth of what happened.
func TestScaleTellsTimesApart(t *testing.T) {
	for i := 1; i < len(scale); i++ {
		if scale[i] <= scale[i-1] || (scale[i]-scale[i-1])*8 > scale[i-1] {
			t.Errorf("step %d is %v, after %v", i, scale[i], scale[i-1])
		}
	}
	if scale[0] != time.Millisecond || scale[255] < 3*leasehold.MaxHold {
		t.Errorf("the scale goes from %v to %v", scale[0], scale[255])
	}
	for d := time.Millisecond; d < leasehold.MaxHold; d += d/97 + 1 {
		near, above := scale[nearest(d)], scale[atLeast(d)]
		if (near-d).Abs()*16 > d+16 {
			t.Fatalf("%v is learned as %v", d, near)
		}
		if above < d || (above-d)*8 > d+8 {
			t.Fatalf("%v is at least %v", d, above)
		}
	}
	if nearest(0) != 0 || nearest(-1) != 0 || nearest(math.MaxInt64) != 255 {
		t.Errorf("what is off the scale is at %d, %d, %d", nearest(0), nearest(-1), nearest(math.MaxInt64))
	}
}

func TestRoot(t *testing.T) {
	for _, n := range []int64{-1, 0, 1, 2, 3, 4, 8, 9, 10, 99, 100, 1 << 40, 1<<62 - 1, math.MaxInt64} {
		r := root(n)
		if n < 0 && r == 0 {
			continue
		}
		if r*r > n || (r+1) <= n/(r+1) {
			t.Errorf("the root of %d is %d", n, r)
		}
	}
}

// TestAdviceOfExtremes: whatever was learned, the advice is a TTL that is allowed.
func TestAdviceOfExtremes(t *testing.T) {
	holds := func(sample ...byte) *Usual { return &Usual{Holds: strings.Repeat(string(sample), maxLearned)} }
	month := nearest(leasehold.MaxTTL)
	for name, u := range map[string]*Usual{
		"nothing":                nil,
		"no time at all":         holds(0, byte(leasehold.Released), 0, 0),
		"for ever":               holds(255, byte(leasehold.Released), month, whole),
		"for ever, and lost":     holds(255, byte(leasehold.ByTTL), month, whole),
		"at once lost":           holds(0, byte(leasehold.SessionExpired), nearest(leasehold.MinTTL), whole),
		"renewed all the time":   holds(100, byte(leasehold.Released), 100, 1),
		"renewed at the last":    holds(100, byte(leasehold.Released), 100, whole),
		"shorter than a message": holds(1, byte(leasehold.Released), nearest(leasehold.MinTTL), 1),
	} {
		for _, largest := range []time.Duration{0, leasehold.MinTTL, time.Minute, leasehold.MaxTTL} {
			a := advise(u, leasehold.Definition{Path: "x", LargestTTL: largest}, leasehold.DefaultTTL)
			if a.TTL < leasehold.MinTTL || a.TTL > leasehold.MaxTTL || largest != 0 && a.TTL > largest || a.TTL > patience {
				t.Errorf("%s, at most %v: %v", name, largest, a.TTL)
			}
			if a.Learned && (a.Least < leasehold.ShortTTL || a.Cheapest <= 0 || a.Interval <= 0 || a.TakeOver >= a.TTL || a.Renewals < 2) {
				t.Errorf("%s, at most %v: %+v", name, largest, a)
			}
		}
	}
}

// TestForecastOfExtremes: the longest queue behind the longest hold is still a time.
func TestForecastOfExtremes(t *testing.T) {
	f := forecast{known: true, first: leasehold.MaxHold, each: scale[255]}
	if d := f.after(leasehold.MaxQueue); d < leasehold.MaxHold*9/10 || d > leasehold.MaxHold*11/10 {
		t.Errorf("a turn comes in %v", d)
	}
}

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
	s := NewAt(NewestLevel)
	for i := range 3 * maxLearned {
		id := fmt.Sprint(i)
		apply(t, s, time.Duration(2*i)*time.Second, acquireNow(id, Request{}))
		apply(t, s, time.Duration(2*i+1)*time.Second, &Release{Namespace: "default", ID: id})
	}
	u := s.space("default").usual("printer")
	if len(u.Holds) != maxLearned*holdBytes || u.wellFormed() != nil {
		t.Errorf("%d bytes are remembered: %v", len(u.Holds), u.wellFormed())
	}
	if a := s.View(0).Status("default", "printer", 0); a.Usual.Holds != maxLearned || a.Usual.HoldP50 != time.Second {
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
	s := NewAt(NewestLevel)
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

// TestAlarmsOfAllAreBounded: with ten thousand alarms in ten namespaces, an eleventh
// gets room of its own and of nobody else, until some are forgotten.
func TestAlarmsOfAllAreBounded(t *testing.T) {
	t.Parallel()
	s := NewAt(NewestLevel)
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
