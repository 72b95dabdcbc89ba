package memory_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// open opens a URL, and closes it at the end of the test.
func open(t *testing.T, url, namespace string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, store.Settings{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func acquire(t *testing.T, s store.Store, id string) (store.Grant, error) {
	t.Helper()
	return s.Acquire(t.Context(), store.Request{Resource: "r", ID: id, Holder: "h", TTL: time.Minute})
}

func TestURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			name, first, second, namespace string
			shared                         bool
		}{
			{"each memory: is of its own", "memory:", "memory:", "", false},
			{"so is memory://", "memory://", "memory://", "", false},
			{"one name is one store", "memory://jobs", "memory://jobs", "", true},
			{"two names are two", "memory://a", "memory://b", "", false},
			{"two namespaces are two", "memory://spaces", "memory://spaces", "other", false},
		} {
			if _, err := acquire(t, open(t, test.first, ""), "a"); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			_, err := acquire(t, open(t, test.second, test.namespace), "b")
			if errors.Is(err, leasehold.ErrHeld) != test.shared {
				t.Errorf("%s: the second acquire: %v", test.name, err)
			}
		}
	})
}

func TestURLIsStrict(t *testing.T) {
	for _, url := range []string{
		"memory:jobs", "memory:///jobs", "memory://a/b", "memory://a:80", "memory://u:secret@a", "memory://a?ttl=1s",
		"memory:?x", "memory://a#b",
	} {
		s, err := store.Open(t.Context(), url, store.Settings{})
		if !errors.Is(err, leasehold.ErrInvalid) || s != nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s was opened as %v, %v", url, s, err)
		}
	}
	if _, err := memory.Open(memory.Config{Namespace: strings.Repeat("n", 2000)}); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a namespace of 2,000 bytes: %v", err)
	}
}

// Nobody has the store open, and somebody holds a lease: it is there for those who come later. When
// nothing is left, the next store of that name begins again, above all tokens of before.
func TestANameOutlivesItsHandles(t *testing.T) {
	var last leasehold.Token
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, "memory://outlives", "")
			first, err := acquire(t, s, "a")
			if err != nil || first.Token <= last {
				t.Fatalf("token %d after %d, %v", first.Token, last, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, "memory://outlives", "")
			if _, err := acquire(t, s, "b"); !errors.Is(err, leasehold.ErrHeld) {
				t.Errorf("the handle of its holder was closed: %v", err)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{{Resource: "r", ID: "a"}}}); err != nil {
				t.Fatal(err)
			}
			last = first.Token
		})
	}
}

func TestCloseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := open(t, "memory://waits", "")
		if _, err := acquire(t, first, "a"); err != nil {
			t.Fatal(err)
		}
		second := open(t, "memory://waits", "")
		ended := make(chan error, 2)
		go func() {
			_, err := second.Acquire(context.Background(),
				store.Request{Resource: "r", ID: "b", Holder: "h", TTL: time.Minute, Wait: time.Hour})
			ended <- err
		}()
		go func() {
			for _, err := range second.(store.Watcher).Watch(context.Background(), store.WatchQuery{}) {
				if err != nil {
					ended <- err
				}
			}
		}()
		synctest.Wait()
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-ended; !store.Transient(err) {
				t.Errorf("a call that waited in a handle that was closed: %v", err)
			}
		}
		if r, err := first.Read(t.Context(), "r"); err != nil || r.Holding != 1 {
			t.Errorf("for others the resource has %d holders, %v", r.Holding, err)
		}
		_ = first.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{{ID: "a"}, {ID: "b"}}})
	})
}

// What the watch calls a position is taken again, and nothing else is.
func TestPositions(t *testing.T) {
	s, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for position, code := range map[string]leasehold.Code{
		"x": leasehold.Invalid, "1.": leasehold.Invalid, ".1": leasehold.Invalid, "1.2.3": leasehold.Invalid,
		"-1": leasehold.Invalid, "1.99999999999": leasehold.Invalid, "99.0": leasehold.Lost, "99": leasehold.Lost,
	} {
		for _, err := range s.Watch(t.Context(), store.WatchQuery{Since: position}) {
			var e *leasehold.Error
			if !errors.As(err, &e) || e.Code != code {
				t.Errorf("a watch from %q: %v, want %v", position, err, code)
			}
		}
	}
}

// A program that uses this store gets nothing of other stores, nor of the server's cluster.
func TestItIsLight(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("left out: go list: %v", err)
	}
	for _, name := range strings.Fields(string(out)) {
		for _, heavy := range []string{"etcd", "k8s.io", "azure", "redis", "pgx", "consul", "zookeeper", "prometheus"} {
			if strings.Contains(strings.ToLower(name), heavy) {
				t.Errorf("it needs %s", name)
			}
		}
	}
}
