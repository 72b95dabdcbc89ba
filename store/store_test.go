package store_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func TestTheErrorNamesTheImport(t *testing.T) {
	_, err := store.Open(t.Context(), "redis://:secret@localhost", store.Settings{})
	if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), `import _ "github.com/leasehold/leasehold/store/redis"`) {
		t.Errorf("redis, which is not imported: %v", err)
	}
	_, err = store.Open(t.Context(), "mongodb://localhost", store.Settings{})
	if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), `no store for "mongodb"`) {
		t.Errorf("a scheme that nobody knows: %v", err)
	}
	_, err = store.Open(t.Context(), "redis://:secret@local host%", store.Settings{})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an address that is not a URL: %v", err)
	}
}

func TestNoPasswordIsShown(t *testing.T) {
	for address, want := range map[string]string{
		"redis://ann:hunter2@a:1?init=true":                        "redis://ann:xxxxx@a:1?init=true",
		"redis://ann:hunter2@b@a:1":                                "redis://ann:xxxxx@a:1",
		"redis+sentinel://a/b?sentinel-password=hunter2&db=1":      "redis+sentinel://a/b?sentinel-password=xxxxx&db=1",
		"postgres://a/b?Pass%77ord=hunter2&sslpassword=hunter2":    "postgres://a/b?Pass%77ord=xxxxx&sslpassword=xxxxx",
		"postgres://ann:hunter2@a:1,b:2/c":                         "postgres://ann:xxxxx@a:1,b:2/c",
		"http://a,http://ann:hunter2@b":                            "http://a,http://ann:xxxxx@b",
		"postgres://a/b?listen=postgres%3A%2F%2Fann%3Ahunter2%40b": "postgres://a/b?listen=xxxxx",
		"azblob://a/b?sas=sv%3D1%26sig%3Dhunter2&http=true":        "azblob://a/b?sas=xxxxx&http=true",
		"azblob://a/b?sas=sv=1&sig=hunter2":                        "azblob://a/b?sas=xxxxx&sig=xxxxx",
		"redis://:hunter2%zz@a":                                    "(not a URL)",
		"redis:ann:hunter2@a":                                      "(not a URL)",
		"127.0.0.1:4653":                                           "127.0.0.1:4653",
		"a:1,b:2":                                                  "a:1,b:2",
		"etcd://a:1,b:2/jobs":                                      "etcd://a:1,b:2/jobs",
	} {
		if got := store.Redact(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}

func TestARegisteredSchemeIsOpened(t *testing.T) {
	store.Register("test-opened", func(_ context.Context, u *url.URL, s store.Settings) (store.Store, error) {
		if u.Host != "here" || s.Namespace != leasehold.DefaultNamespace || s.Clock == nil || s.Log == nil {
			t.Errorf("opened with %v, %+v", u, s)
		}
		return nil, leasehold.ErrUnavailable
	})
	if !store.Names("test-opened://here") || store.Names("http://here") || store.Names("here:4653") {
		t.Error("the addresses of stores are not told from those of servers")
	}
	_, err := store.Open(t.Context(), "test-opened:here:1", store.Settings{})
	if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "test-opened://") {
		t.Errorf("without slashes: %v", err)
	}
	if _, err := store.Open(t.Context(), "test-opened://here", store.Settings{}); err != leasehold.ErrUnavailable {
		t.Errorf("it failed with %v", err)
	}
}

func TestAwaitAsksAgain(t *testing.T) {
	held := &leasehold.Error{Code: leasehold.Held, Lease: &leasehold.Lease{Remaining: 700 * time.Millisecond}}
	tests := []struct {
		name  string
		after time.Duration
		held  error
		wake  bool
	}{
		{"when the lease in the way ends", 701 * time.Millisecond, held, false},
		{"at its interval", 5 * time.Second, leasehold.ErrHeld, false},
		{"when it is woken", 0, held, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wake := make(chan struct{}, 1)
				began, asked := time.Now(), 0
				if test.wake {
					wake <- struct{}{}
				}
				w := store.Waiting{For: time.Minute, Poll: 5 * time.Second, Wake: wake}
				grant, err := store.Await(t.Context(), w, func(context.Context) (store.Grant, error) {
					if asked++; asked == 1 {
						return store.Grant{}, test.held
					}
					return store.Grant{}, nil
				})
				took := time.Since(began)
				if err != nil || !grant.Waited || took > test.after || took < test.after*7/8 {
					t.Errorf("granted %+v, %v after %v", grant, err, took)
				}
			})
		})
	}
}

func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(context.Context) (store.Grant, error) { return store.Grant{}, leasehold.ErrHeld }
		began := time.Now()
		left := 0
		w := store.Waiting{For: 90 * time.Second, Poll: time.Second}
		w.Leave = func(context.Context) error { left++; return nil }
		_, err := store.Await(t.Context(), w, ask)
		if took := time.Since(began); !errors.Is(err, leasehold.ErrHeld) || took != 90*time.Second || left != 1 {
			t.Errorf("%v after %v; it left the queue %d times", err, took, left)
		}
		w.For = 0
		if _, err := store.Await(t.Context(), w, ask); !errors.Is(err, leasehold.ErrHeld) || left != 1 {
			t.Errorf("a call that does not wait: %v; it left the queue %d times", err, left-1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = store.Await(ctx, store.Waiting{For: time.Hour, Poll: time.Minute, Leave: w.Leave}, ask)
		if !errors.Is(err, context.DeadlineExceeded) || !store.Transient(err) || left != 1 {
			t.Errorf("when the context ended: %v; it left the queue %d times", err, left-1)
		}
	})
}

func TestStepsOfTheStoresClock(t *testing.T) {
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var s store.Steps
	at := func(ours, theirs time.Duration) time.Duration {
		return s.Observe(wall.Add(theirs), ours, ours+5*time.Millisecond).Round(500 * time.Millisecond)
	}
	for _, test := range []struct{ ours, theirs, step time.Duration }{
		{0, 0, 0},
		{time.Second, time.Second + 50*time.Millisecond, 0},
		{time.Minute, time.Minute + 500*time.Millisecond, 0}, // 1 % of a minute
		{2 * time.Minute, 2*time.Minute + 40*time.Second, 39500 * time.Millisecond},
		{3 * time.Minute, 3*time.Minute + 40*time.Second, 0},
		{4 * time.Minute, 3*time.Minute + 40*time.Second, -time.Minute},
	} {
		if step := at(test.ours, test.theirs); step != test.step {
			t.Errorf("at %v the clock says %v: a step of %v, want %v", test.ours, test.theirs, step, test.step)
		}
	}
}

func TestTheErrorSaysHowToRaiseTheTTL(t *testing.T) {
	f := store.Features{Store: "redis", MinTTL: time.Millisecond, MaxTTL: time.Minute, Raise: "set max-ttl"}
	if err := f.CheckTTL(time.Hour); err == nil || !strings.HasSuffix(err.Error(), "1m0s; set max-ttl") {
		t.Errorf("too long: %v", err)
	}
	if err := f.CheckTTL(0); err == nil || strings.Contains(err.Error(), "max-ttl") {
		t.Errorf("too short: %v", err)
	}
}

func TestFeaturesLimitTheTTL(t *testing.T) {
	f := store.Features{Store: "azblob", MinTTL: 15 * time.Second, MaxTTL: time.Minute, TTLStep: time.Second}
	for ttl, ok := range map[time.Duration]bool{
		14 * time.Second: false, 15 * time.Second: true, 15500 * time.Millisecond: false, time.Minute: true, time.Hour: false,
	} {
		if err := f.CheckTTL(ttl); (err == nil) != ok {
			t.Errorf("%v: %v", ttl, err)
		}
	}
}
