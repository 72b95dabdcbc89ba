package demo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/leasetest"
)

// A look is what was seen of a demo, at one time or another.
type look struct {
	queue, gpus, licences, agents int // at most
	leaders                       map[string]bool
	orphaned, alarmed             bool
}

func (l *look) at(t *testing.T, api *v1.Caller) {
	t.Helper()
	see := func(path string) v1.Resource {
		r, err := api.Resource(t.Context(), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	l.queue = max(l.queue, see("prod/deploy").Waiting)
	l.gpus = max(l.gpus, see(pool).Used)
	l.licences = max(l.licences, see("ci/licences").Used)
	agents := 0
	for _, part := range parts {
		agents += see("repo/shop/" + part).Used
	}
	l.agents = max(l.agents, agents)
	for _, h := range see("scheduler/leader").Holders {
		l.leaders[h.Holder] = true
	}
	last := see("backup/nightly").Last
	l.orphaned = l.orphaned || last != nil && last.How == "expired"
	for alarm, err := range api.Alarms(t.Context(), v1.AlarmQuery{}) {
		l.alarmed = l.alarmed || err == nil && alarm.Resource == "backup/nightly"
	}
}

// Somebody who watches for ten minutes sees each part of the scenario; then nothing is held any more.
func TestTheScenarioIsLively(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leasetest.Start(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- Play(ctx, Config{Server: "http://leasetest", Seed: 1, Dial: s.DialContext}) }()
		l := look{leaders: map[string]bool{}}
		for range 59 {
			time.Sleep(10 * time.Second)
			l.at(t, s.Inside())
		}
		if l.queue < 2 || l.gpus < 4 || l.licences < 1 || l.agents < 2 || len(l.leaders) < 2 || !l.orphaned || !l.alarmed {
			t.Errorf("it has only %+v", l)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, path := range []string{"prod/deploy", pool, "ci/licences", "db/primary", "scheduler/leader"} {
			if r, err := s.Inside().Resource(t.Context(), path, 0); err != nil || r.Used != 0 || r.Waiting != 0 {
				t.Errorf("at the end %s is %+v, %v", path, r, err)
			}
		}
	})
}

// A server that cannot be used is an error; being told to end is none, at whatever moment.
func TestADemoThatCannotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leasetest.Start(t)
		c := Config{Server: "http://leasetest", Dial: s.DialContext}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Play(ctx, c); err != nil {
			t.Errorf("one that was told to end at once ends with %v", err)
		}
		s.Disconnect()
		if err := Play(t.Context(), c); err == nil {
			t.Error("one without a server ends without an error")
		}
	})
}
