package consul

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/door"
)

// later sends a request that waits, and returns what comes of it.
func (b *bench) later(what string) <-chan told {
	done := make(chan told, 1)
	go func() { done <- b.ask(what, "") }()
	synctest.Wait()
	return done
}

func pending(t *testing.T, c <-chan told) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-c:
		t.Fatalf("it did not wait: %d %s", got.status, got.body)
	default:
	}
}

func TestBlockingOnAKey(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.ask("PUT /v1/kv/a", "1").is("true")
		index := b.ask("GET /v1/kv/a", "").index()
		wait := b.later("GET /v1/kv/a?wait=60s&index=" + index)
		for range 10 {
			b.ask("PUT /v1/kv/other", "x").is("true")
		}
		pending(t, wait)
		b.ask("PUT /v1/kv/a", "2").is("true")
		got := <-wait
		got.expect(200, `"Value":"Mg=="`)
		// What it has seen already is no news; what it has not is told at once.
		pending(t, b.later("GET /v1/kv/a?wait=60s&index="+got.index()))
		b.ask("GET /v1/kv/a?wait=60s&index="+index, "").expect(200, `"Value":"Mg=="`)
		wait = b.later("GET /v1/kv/a?wait=60s&index=" + got.index())
		b.ask("DELETE /v1/kv/a", "").is("true")
		gone := <-wait
		gone.expect(404)
		// A key that is not there stays so, whatever happens to others.
		wait = b.later("GET /v1/kv/a?wait=60s&index=" + gone.index())
		b.ask("PUT /v1/kv/other", "y").is("true")
		pending(t, wait)
		b.ask("PUT /v1/kv/a", "3").is("true")
		(<-wait).expect(200, `"Value":"Mw=="`)
		time.Sleep(2 * time.Minute)
	})
}

// A wait without news ends in time, with the index that was sent: clients tell by it that there is none.
func TestBlockingEndsInTime(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.ask("PUT /v1/kv/p/a", "1").is("true")
		b.ask("PUT /v1/kv/q", "1").is("true")
		for _, c := range []struct {
			what  string
			least time.Duration
		}{
			{"GET /v1/kv/p/a?wait=8s&index=INDEX", 8 * time.Second}, {"GET /v1/kv/p/?recurse&wait=16s&index=INDEX", 16 * time.Second},
			{"GET /v1/kv/p/?keys&index=INDEX", 5 * time.Minute}, {"GET /v1/kv/none?wait=20m&index=INDEX", 10 * time.Minute},
			{"GET /v1/session/list?wait=8s&index=INDEX", 8 * time.Second}, {"GET /v1/catalog/nodes?wait=8s&index=INDEX", 8 * time.Second},
		} {
			index := b.ask("GET "+strings.NewReplacer("GET ", "", "&index=INDEX", "").Replace(c.what), "").index()
			began := time.Now()
			got := b.ask(strings.Replace(c.what, "INDEX", index, 1), "")
			if took := time.Since(began); took < c.least || took > c.least+c.least/16+time.Millisecond {
				t.Errorf("%s took %v", c.what, took)
			}
			if got.index() != index {
				t.Errorf("%s went from index %s to %s without news", c.what, index, got.index())
			}
		}
	})
}

func TestBlockingOnPrefixesAndSessions(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.ask("PUT /v1/kv/p/a", "1").is("true")
		b.ask("PUT /v1/kv/p/b", "1").is("true")
		index := b.ask("GET /v1/kv/p/?recurse", "").index()
		wait := b.later("GET /v1/kv/p/?recurse&index=" + index)
		b.ask("PUT /v1/kv/q", "1").is("true")
		pending(t, wait)
		b.ask("DELETE /v1/kv/p/a", "").is("true") // the newest index of what is left is an old one
		got := <-wait
		got.expect(200, `"Key":"p/b"`)
		if got.index() == index || strings.Contains(got.body, "p/a") {
			t.Errorf("the delete is answered at %s: %s", got.index(), got.body)
		}
		// It was missed: it is told at once.
		b.ask("DELETE /v1/kv/p/b", "").is("true")
		b.ask("GET /v1/kv/p/?keys&index="+got.index(), "").expect(404)

		list := b.ask("GET /v1/session/list", "")
		wait = b.later("GET /v1/session/list?index=" + list.index())
		b.ask("PUT /v1/kv/q", "2").is("true")
		pending(t, wait)
		s := b.open(short)
		opened := (<-wait).expect(200, s)
		wait = b.later("GET /v1/session/info/" + s + "?index=" + opened.index())
		b.open(short)
		pending(t, wait)
		time.Sleep(21 * time.Second)
		(<-wait).is("[]")
	})
}

// What history no longer knows is answered at once where it may be news, and is waited for where it is known not to be.
func TestBlockingBeyondHistory(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.ask("PUT /v1/kv/quiet", "1").is("true")
		quiet := b.ask("GET /v1/kv/quiet", "").index()
		missing := b.ask("GET /v1/kv/none", "").index()
		value := strings.Repeat("x", 60<<10)
		for i := range 2400 { // more than history has room for
			b.ask(fmt.Sprintf("PUT /v1/kv/loud?flags=%d", i), value).is("true")
		}
		wait := b.later("GET /v1/kv/quiet?wait=60s&index=" + quiet)
		pending(t, wait)
		b.ask("PUT /v1/kv/quiet", "2").is("true")
		(<-wait).expect(200, `"Value":"Mg=="`)
		if got := b.ask("GET /v1/kv/none?wait=60s&index="+missing, "").expect(404); got.index() == missing {
			t.Error("the index is still one that history does not know: the client would come back at once")
		}
		// An index of another cluster is told the one of this.
		b.ask("GET /v1/kv/quiet?wait=60s&index=99999999", "").expect(200)
		b.ask("GET /v1/kv/quiet?wait=60s&index=18446744073709551615", "").expect(200)
	})
}

// A client whose lock is broken or expires learns it from its blocking query.
func TestHoldersLearnOfTheirLoss(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ann := b.open(short)
		b.ask("PUT /v1/kv/a?acquire="+ann, "").is("true")
		wait := b.later("GET /v1/kv/a?consistent=&index=" + b.ask("GET /v1/kv/a?consistent=", "").index())
		time.Sleep(19 * time.Second)
		pending(t, wait)
		time.Sleep(2 * time.Second)
		if got := (<-wait).expect(200); strings.Contains(got.body, "Session") {
			t.Errorf("the session has ended, and the key shows %s", got.body)
		}
	})
}

// A server that drains answers as if the time of the wait were over.
func TestDrainingEndsBlockingQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{})
		b.ask("PUT /v1/kv/a", "1").is("true")
		index := b.ask("GET /v1/kv/a", "").index()
		key, tree := b.later("GET /v1/kv/a?index="+index), b.later("GET /v1/kv/?recurse&index="+index)
		b.backend.State().Stop()
		for _, wait := range []<-chan told{key, tree} {
			if got := (<-wait).expect(200, `"Value":"MQ=="`); got.index() != index {
				t.Errorf("the index went from %s to %s", index, got.index())
			}
		}
	})
}

func TestClientsThatLeaveAreNotWaitedFor(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := httptest.NewRequest("GET", "/v1/kv/a?index=1", nil).WithContext(ctx)
			b.door.ServeHTTP(httptest.NewRecorder(), r)
		}()
		synctest.Wait()
		leave()
		<-done
	})
}

func TestBlockingQueriesAreLimited(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		limited := door.NewBackend(b.engine, door.Options{MaxStay: 3})
		b.door = New(limited, Config{})
		var all []<-chan told
		for range 3 {
			all = append(all, b.later("GET /v1/kv/a?wait=30s&index=1"))
		}
		got := b.ask("GET /v1/kv/a?wait=30s&index=1", "").expect(429)
		if got.header.Get("Retry-After") == "" {
			t.Error("nothing says when to come back")
		}
		for _, wait := range all {
			(<-wait).expect(404)
		}
	})
}

// A client that leaves while it waits is nobody's fault: the log has no word of it.
func TestClientsThatLeaveAreNotLogged(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.ask("PUT /v1/kv/a", "v").is("true")
		index := b.ask("GET /v1/kv/a", "").index()
		var said bytes.Buffer
		d := New(door.NewBackend(b.engine, door.Options{Log: slog.New(slog.NewTextHandler(&said, nil))}), Config{})
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r := httptest.NewRequestWithContext(ctx, "GET", "/v1/kv/a?index="+index, nil)
			d.ServeHTTP(httptest.NewRecorder(), r)
		}()
		synctest.Wait()
		leave()
		<-ended
		if said.Len() > 0 {
			t.Errorf("the log says %s", &said)
		}
	})
}
