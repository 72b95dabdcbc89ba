package native

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

// A reader reads a watch as it is on the wire.
type reader struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
}

func (h *house) watch(query string, headers ...string) *reader {
	h.t.Helper()
	r, _ := http.NewRequestWithContext(h.t.Context(), "GET", "http://pipe/v1/watch?"+query, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := h.client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" || response.Header.Get("Cache-Control") != "no-store" {
		h.t.Fatalf("the watch is answered with %v", response)
	}
	return &reader{h.t, response, bufio.NewReader(response.Body)}
}

func (r *reader) close() { r.response.Body.Close() }

// block reads up to the next empty line.
func (r *reader) block() (block string) {
	r.t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			r.t.Fatalf("the watch ended: %v", err)
		}
		if line == "\n" {
			return block
		}
		block += line
	}
}

func (r *reader) hello() v1.Hello {
	r.t.Helper()
	block := r.block()
	head, data, ok := strings.Cut(block, "data: ")
	var hello v1.Hello
	if err := json.Unmarshal([]byte(data), &hello); !ok || err != nil {
		r.t.Fatalf("the watch began with %q", block)
	}
	if head != fmt.Sprintf("retry: 1000\nevent: hello\nid: %v\n", hello.Position) {
		r.t.Errorf("the watch began with %q", block)
	}
	return hello
}

// event reads one event, and passes over signs of life.
func (r *reader) event() v1.Event {
	r.t.Helper()
	block := r.block()
	for block == ": still here\n" {
		block = r.block()
	}
	head, data, ok := strings.Cut(block, "\ndata: ")
	var e v1.Event
	if err := json.Unmarshal([]byte(data), &e); !ok || err != nil || head != "id: "+e.Position().String() {
		r.t.Fatalf("not an event: %q", block)
	}
	return e
}

// rest reads to the end.
func (r *reader) rest() string {
	r.t.Helper()
	b, err := io.ReadAll(r.lines)
	if err != nil {
		r.t.Fatalf("the watch was cut off: %v", err)
	}
	r.close()
	return string(b)
}

func (h *house) hold(resource, id string) {
	h.t.Helper()
	h.acquire(v1.AcquireRequest{Resource: resource, Holder: "h", ID: id})
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.hold("before", "x")
		w := h.watch("")
		defer w.close()
		hello := w.hello()
		if hello.Namespace != "default" || hello.Position.String() != "1" || !hello.Time.Equal(time.Now()) {
			t.Errorf("hello is %+v", hello)
		}
		if got := value(h.door.backend.Metrics().Watches); got != 1 {
			t.Errorf("%v watches", got)
		}
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", Reason: "why", TTL: ttl(time.Minute)})
		e := w.event()
		if e.Kind != "acquired" || e.Resource != "r" || e.Holder != "ann" || e.Token != 2 || e.Reason != "why" || e.Position().String() != "2.0" || e.Until.Sub(e.At.Time) != time.Minute {
			t.Errorf("the event is %+v", e)
		}
		// An event of time alone arrives as well, in its moment.
		if e = w.event(); e.Kind != "ended" || e.ID != "x" || e.How != "expired" || !e.At.Equal(time.Now()) {
			t.Errorf("at %v the event is %+v", time.Now(), e)
		}
	})
}

func TestWatchSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.hold("a/1", "1")
		h.hold("b/2", "2")
		h.hold("a/3", "3")
		for _, test := range []struct {
			query, header string
			want          string
		}{
			{"since=0", "", "1.0 2.0 3.0"},
			{"since=1", "", "2.0 3.0"},
			{"since=1.0", "", "2.0 3.0"},
			{"since=0.7", "", "1.0 2.0 3.0"},
			{"since=2", "", "3.0"},
			{"since=0&prefix=a/", "", "1.0 3.0"},
			{"since=1&prefix=a/", "", "3.0"},
			{"since=0&resource=a/3", "", "3.0"},
			{"since=3&resource=a/3", "", ""},
			{"since=0", "2.0", "3.0"},
			{"", "1", "2.0 3.0"},
			{"since=3", "", ""},
			{"", "", ""},
		} {
			w := h.watch(test.query, "Last-Event-ID", test.header)
			w.hello()
			var got []string
			for range strings.Fields(test.want) {
				got = append(got, w.event().Position().String())
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%+v: got %v", test, got)
			}
			synctest.Wait()
			if n := w.lines.Buffered(); n > 0 {
				t.Errorf("%+v: there is more", test)
			}
			w.close()
		}
	})
}

// Sessions are shown to those who see all; a namespace shows its own alone.
func TestWatchFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		all, some, one, other := h.watch(""), h.watch("prefix=jobs/"), h.watch("resource=jobs"), h.watch("namespace=other")
		for _, w := range []*reader{all, some, one, other} {
			defer w.close()
			w.hello()
		}
		if _, err := h.caller.OpenSession(t.Context(), v1.SessionRequest{ID: "s", TTL: ttl(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		h.hold("jobs/1", "1")
		h.hold("job", "2")
		h.hold("jobs", "3")
		h.hold("jobs/2", "4")
		for _, want := range []string{"session opened ", "acquired jobs/1", "acquired job", "acquired jobs", "acquired jobs/2"} {
			if e := all.event(); e.Kind+" "+e.Resource != want {
				t.Errorf("%q comes instead of %q", e.Kind+" "+e.Resource, want)
			}
		}
		for _, want := range []string{"jobs/1", "jobs/2"} {
			if e := some.event(); e.Resource != want {
				t.Errorf("%q comes instead of %q", e.Resource, want)
			}
		}
		if e := one.event(); e.Resource != "jobs" {
			t.Errorf("%q comes instead of jobs", e.Resource)
		}
		var again []string
		for e, err := range h.caller.Watch(t.Context(), v1.WatchQuery{Resource: "jobs/2", Since: "0"}) {
			if again = append(again, e.ID); err != nil || e.ID == "4" {
				break
			}
		}
		if strings.Join(again, " ") != "4" {
			t.Errorf("of jobs/2 the caller sees %q", again)
		}
		elsewhere, _ := v1.NewCaller(v1.CallerConfig{Server: "http://pipe", Client: h.client, Namespace: "other"})
		if _, err := elsewhere.Acquire(t.Context(), v1.AcquireRequest{Resource: "x", Holder: "h"}); err != nil {
			t.Fatal(err)
		}
		if e := other.event(); e.Resource != "x" || e.Namespace != "other" || e.Revision != 1 {
			t.Errorf("the event is %+v", e)
		}
	})
}

// A client whose sessions begin alike hears of them, and of what they hold, and of
// nothing else.
func TestWatchSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		mine := h.watch("session=me.")
		defer mine.close()
		mine.hello()
		for _, id := range []string{"me.1", "you.1", "me.2"} {
			if _, err := h.caller.OpenSession(t.Context(), v1.SessionRequest{ID: id, TTL: ttl(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			h.acquire(v1.AcquireRequest{Resource: "of " + id, Holder: "h", Session: id})
		}
		h.hold("of nobody", "1")
		if _, err := h.caller.Ask(t.Context(), v1.AskRequest{Resource: "of me.1", Message: "please"}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"session opened me.1", "acquired me.1", "session opened me.2", "acquired me.2", "asked me.1"} {
			if e := mine.event(); e.Kind+" "+e.Session != want {
				t.Errorf("%q comes instead of %q", e.Kind+" "+e.Session, want)
			}
		}
	})
}

// A client that watches its own sessions for interventions is not told what it did itself.
func TestWatchInterventions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		mine := h.watch("session=me&interventions=true")
		defer mine.close()
		mine.hello()
		if _, err := h.caller.OpenSession(t.Context(), v1.SessionRequest{ID: "me", TTL: ttl(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			h.acquire(v1.AcquireRequest{Resource: "of " + id, ID: id, Holder: "h", Session: "me"})
		}
		now := v1.Duration(0)
		_, failed := h.caller.Ask(t.Context(), v1.AskRequest{Resource: "of b", Message: "please"})
		_, failed2 := h.caller.Break(t.Context(), v1.BreakRequest{ID: "b", Period: &now})
		_, failed3 := h.caller.Change(t.Context(), v1.ChangeRequest{ID: "d", Holder: "another"})
		err := errors.Join(
			h.caller.Release(t.Context(), v1.ReleaseRequest{ID: "a", Session: "me"}), failed, failed2,
			h.caller.Release(t.Context(), v1.ReleaseRequest{ID: "c"}), failed3, // by somebody else
			h.caller.CloseSession(t.Context(), "me"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"asked b", "ended b", "changed d", "ended c", "session ended ", "ended d"} {
			if e := mine.event(); e.Kind+" "+e.ID != want {
				t.Errorf("%q comes instead of %q", e.Kind+" "+e.ID, want)
			}
		}
		// It passes what it does not show, and says so.
		h.hold("of nobody", "1")
		if block := mine.block(); block != ": still here\n" {
			t.Errorf("a quiet watch sends %q", block)
		}
		if block := mine.block(); !strings.HasPrefix(block, "id: ") {
			t.Errorf("a quiet watch does not tell how far it is, and sends %q", block)
		}
	})
}

// A watch that is asked to ends with its connection, and another one goes on where
// it was.
func TestWatchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		cut := &cutting{Transport: h.client.Transport.(*http.Transport).Clone()}
		defer cut.CloseIdleConnections()
		caller, _ := v1.NewCaller(v1.CallerConfig{Server: "http://pipe", Client: &http.Client{Transport: cut}})
		query := v1.WatchQuery{Once: true, Started: func(v1.Hello) { h.hold("jobs/1", "1") }}
		query.Passed = func(at string) { query.Since = at }
		seen := ""
		for e, err := range caller.Watch(t.Context(), query) {
			if err != nil {
				if !errors.Is(err, leasehold.ErrUnavailable) {
					t.Errorf("the watch ended with %v", err)
				}
				break
			}
			seen += e.ID + " "
			cut.cut()
		}
		h.hold("jobs/2", "2")
		query.Started = nil
		for e, err := range caller.Watch(t.Context(), query) {
			if err != nil {
				t.Fatal(err)
			}
			seen += e.ID
			break
		}
		if seen != "1 2" {
			t.Errorf("seen: %s", seen)
		}
	})
}

// A silent watch says that it is there, and a quiet prefix learns of its place.
func TestWatchKeepsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		w := h.watch("prefix=quiet/")
		defer w.close()
		w.hello()
		began := time.Now()
		for i := range 3 {
			if got := w.block(); got != ": still here\n" {
				t.Errorf("the watch says %q", got)
			}
			if passed := time.Since(began); passed != time.Duration(i+1)*keepAlive {
				t.Errorf("after %v", passed)
			}
		}
		h.acquire(v1.AcquireRequest{Resource: "loud", Holder: "h", TTL: v1.TTL{None: true}})
		if got := w.block(); got != ": still here\n" {
			t.Errorf("the watch says %q", got)
		}
		if got := w.block(); got != "id: 1.0\n" {
			t.Errorf("the watch says %q", got)
		}
		if got := w.block(); got != ": still here\n" {
			t.Errorf("the watch says %q", got)
		}
		// An hour later it is still open: no time limit of the server holds for it.
		for time.Since(began) < time.Hour {
			if got := w.block(); got != ": still here\n" {
				t.Fatalf("the watch says %q", got)
			}
		}
		h.hold("quiet/r", "q")
		if e := w.event(); e.ID != "q" {
			t.Errorf("the event is %+v", e)
		}
	})
}

// What happens within one pause goes out in one write, and nothing is lost of it.
func TestWatchCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		w := h.watch("")
		defer w.close()
		w.hello()
		const n = 2000 // more than one batch
		for i := range n {
			h.hold(fmt.Sprint("r", i), fmt.Sprint("i", i))
		}
		for i := range n {
			if e := w.event(); e.Revision != uint64(i+1) || e.ID != fmt.Sprint("i", i) {
				t.Fatalf("event %d is %+v", i, e)
			}
		}
	})
}

// A place that is not in this history, behind or ahead, ends the watch with where
// to go on.
func TestWatchGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.hold("r", "a")
		w := h.watch("since=900.3")
		want := "event: gone\nid: 1\ndata: {\"since\":\"900.3\",\"oldest\":\"1\",\"revision\":1}\n\n"
		if got := w.rest(); got != want {
			t.Errorf("ahead: %q", got)
		}

		// Enough events to make the first ones go: history has a bound in bytes.
		reason := strings.Repeat("x", 1000)
		for i := range 60000 {
			h.door.backend.Do(t.Context(), acquireCommand(i, reason))
		}
		w = h.watch("since=1")
		got := w.rest()
		var gone v1.Gone
		_, data, _ := strings.Cut(got, "data: ")
		if err := json.Unmarshal([]byte(data), &gone); err != nil || gone.Since.String() != "1" || gone.Oldest.Revision < 2 || gone.Revision != 60001 {
			t.Fatalf("behind: %q", got)
		}
		if !strings.HasPrefix(got, fmt.Sprintf("event: gone\nid: %v\n", gone.Oldest)) {
			t.Errorf("behind: %q", got)
		}
		// From there on all are known.
		w = h.watch("since=" + gone.Oldest.String())
		w.hello()
		if e := w.event(); e.Revision != gone.Oldest.Revision+1 {
			t.Errorf("the next event is %+v", e)
		}
		w.close()

		page, err := h.caller.History(t.Context(), v1.HistoryQuery{Resource: "r"})
		for err == nil && page.Next != "" {
			page, err = h.caller.History(t.Context(), v1.HistoryQuery{Resource: "r", Before: page.Next})
		}
		if err != nil || !page.Gone {
			t.Errorf("history ends with %+v, %v", page, err)
		}

		for _, err := range h.caller.Watch(t.Context(), v1.WatchQuery{Since: "1"}) {
			var g *v1.Gone
			if !errors.Is(err, leasehold.ErrLost) || !errors.As(err, &g) || g.Oldest != gone.Oldest {
				t.Errorf("the error is %v", err)
			}
		}
	})
}

// A reader that lags until its place is forgotten gets what was under way, and then
// learns where it was.
func TestWatchGoneOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		w := h.watch("")
		w.hello()
		reason := strings.Repeat("x", 1000)
		for i := range 60000 {
			if _, err := h.engine.Do(t.Context(), acquireCommand(i, reason)); err != nil {
				t.Fatal(err)
			}
			if i == 1000 {
				time.Sleep(time.Second) // a first batch is under way
			}
		}
		seen := 0
		block := w.block()
		for ; strings.HasPrefix(block, "id: "); block = w.block() {
			if seen++; !strings.HasPrefix(block, fmt.Sprintf("id: %d.0\n", seen)) {
				t.Fatalf("event %d is %q", seen, block)
			}
		}
		_, data, _ := strings.Cut(block, "data: ")
		var gone v1.Gone
		if err := json.Unmarshal([]byte(data), &gone); err != nil || gone.Since.String() != fmt.Sprintf("%d.0", seen) || gone.Oldest.Revision <= uint64(seen) || seen == 0 {
			t.Fatalf("after %d events there is %q", seen, block)
		}
		if rest := w.rest(); rest != "" {
			t.Errorf("after the end there is %q", rest)
		}
	})
}

// What cannot be watched is said in a sentence.
func TestWatchRefuses(t *testing.T) {
	door := newDoor(t, Config{})
	for query, want := range map[string]string{
		"prefix=a&resource=b": "the query has both resource and prefix",
		"resource=":           "resource is missing",
		"resource=a//b":       "has the segment",
		"values=maybe":        "values \"maybe\" is neither true nor false",
		"previous=2":          "previous \"2\" is neither true nor false",
		"since=x":             "is not a position",
		"after=1":             "the query has \"after\", which is unknown here; known are: namespace, prefix, resource, session, interventions, since, values, previous",
	} {
		got := ask(t, door, "GET", "/v1/watch?"+query, "").expect(400)
		if p := read[v1.Problem](got); !strings.Contains(p.Detail, want) {
			t.Errorf("%s is answered with %q, want %q", query, p.Detail, want)
		}
	}
}

// A thousand watch a thousand events a second, each with a filter of its own. Every
// one sees all that it asked for, in order, in batches.
func TestAThousandWatchers(t *testing.T) {
	const watchers, events, groups = 1000, 2000, 10
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		var readers sync.WaitGroup
		over := make(chan struct{})
		for i := range watchers {
			query, wants := "", func(int) bool { return true }
			switch group := i % groups; i % 4 {
			case 1:
				query, wants = fmt.Sprintf("prefix=many/%d/", group), func(n int) bool { return n%groups == group }
			case 2:
				query, wants = fmt.Sprintf("resource=many/%d/%d", group, i), func(n int) bool { return n == i }
			case 3:
				query, wants = fmt.Sprintf("prefix=many/none/%d", i), func(int) bool { return false }
			}
			w := h.watch(query)
			w.hello()
			readers.Go(func() {
				defer w.close()
				for n := range events {
					if wants(n) && !w.next(fmt.Sprintf("id: %d.0\n", n+1)) {
						return
					}
				}
				<-over // who has all of its own stays and listens
			})
		}
		for n := range events {
			resource := fmt.Sprintf("many/%d/%d", n%groups, n)
			if _, err := h.engine.Do(t.Context(), &core.Acquire{Namespace: "default", Resource: resource, ID: fmt.Sprint(n), Holder: "h"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		close(over)
		readers.Wait()
		if got := counted(h.door.backend.Metrics().Cut); got != 0 {
			t.Errorf("%v watches were cut off", got)
		}
	})
}

// next reads on to the next id, and fails if it is another one.
func (r *reader) next(want string) bool {
	for {
		line, err := r.lines.ReadSlice('\n')
		if err == nil && !bytes.HasPrefix(line, []byte("id: ")) {
			continue
		}
		if err != nil || string(line) != want {
			r.t.Errorf("there is %q instead of %q, %v", line, want, err)
			return false
		}
		return true
	}
}

// However much has happened and happens, a reader that has stopped costs one batch,
// and holds nobody up. A batch ends with the event that makes it too large.
func TestAStoppedReaderCostsOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		const most = maxFlush + 2*leasehold.MaxValue*4/3 + 4<<10
		large := strings.Repeat("x", leasehold.MaxValue)
		put := func() {
			if _, err := h.caller.PutRecord(t.Context(), v1.PutRequest{Path: "r", Value: []byte(large)}); err != nil {
				t.Fatal(err)
			}
		}
		const before, n = 100, 200 // 16 MiB and more, with what was before each
		for range before {
			put()
		}
		stopped, quick := h.watch("since=0&values=true&previous=true"), h.watch("since=0")
		defer stopped.close()
		defer quick.close()
		stopped.hello()
		quick.hello()
		for i := range n {
			if i >= before {
				put()
			}
			if e := quick.event(); e.Revision != uint64(i+1) {
				t.Fatalf("event %d is %+v", i, e)
			}
			synctest.Wait()
			if got := value(h.door.backend.Metrics().Unsent); got < maxFlush || got > most {
				t.Fatalf("after event %d the server holds %v bytes, at most %d are allowed", i, got, most)
			}
		}
		time.Sleep(streamTime)
		synctest.Wait()
		if unsent, cut, open := value(h.door.backend.Metrics().Unsent), counted(h.door.backend.Metrics().Cut), value(h.door.backend.Metrics().Watches); unsent != 0 || cut != 1 || open != 1 {
			t.Errorf("the server holds %v bytes, %v were cut off, %v are open", unsent, cut, open)
		}
	})
}

// A reader that is only slow is told where to go on, and misses nothing if it does.
func TestASlowReaderIsSentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		w := h.watch("")
		w.hello()
		const n = 3000 // more than the client reads ahead
		for i := range n {
			h.hold(fmt.Sprint("r", i), fmt.Sprint(i))
		}
		time.Sleep(slowTime + time.Second)
		seen := 0
		block := w.block()
		for ; strings.HasPrefix(block, "id: "); block = w.block() {
			if seen++; !strings.HasPrefix(block, fmt.Sprintf("id: %d.0\n", seen)) {
				t.Fatalf("event %d is %q", seen, block)
			}
		}
		want := fmt.Sprintf("event: cut\nid: %d.0\ndata: {\"resume\":\"%[1]d.0\"}\n", seen)
		if block != want || seen == 0 || seen == n {
			t.Fatalf("after %d events there is %q", seen, block)
		}
		if rest := w.rest(); rest != "" {
			t.Errorf("after the end there is %q", rest)
		}
		w = h.watch(fmt.Sprintf("since=%d.0", seen))
		defer w.close()
		w.hello()
		for ; seen < n; seen++ {
			if e := w.event(); e.Revision != uint64(seen+1) {
				t.Fatalf("event %d is %+v", seen, e)
			}
		}
	})
}

// The caller's watch comes back by itself after it was sent away.
func TestTheCallerComesBackAfterACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		const n = 3000
		for i := range n {
			h.hold(fmt.Sprint("r", i), fmt.Sprint(i))
		}
		seen, connections := 0, 0
		for e, err := range h.caller.Watch(t.Context(), v1.WatchQuery{Since: "0", Started: func(v1.Hello) { connections++ }}) {
			if seen++; err != nil || e.Revision != uint64(seen) {
				t.Fatalf("event %d is %+v, %v", seen, e, err)
			}
			if seen == 1 {
				time.Sleep(slowTime + time.Second)
			}
			if seen == n {
				break
			}
		}
		if connections != 2 || counted(h.door.backend.Metrics().Cut) != 1 {
			t.Errorf("there were %d connections, and %v were cut off", connections, counted(h.door.backend.Metrics().Cut))
		}
	})
}

// A reader that does not read is cut off after a while, and nobody waits for it.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		slow, quick := h.watch(""), h.watch("")
		defer slow.close()
		slow.hello()
		quick.hello()
		const n = 200
		read := make(chan int)
		go func() {
			defer close(read)
			for i := range n {
				if e := quick.event(); e.ID != fmt.Sprint(i) {
					t.Errorf("event %d is %+v", i, e)
				}
			}
			read <- n
			_, _ = io.Copy(io.Discard, quick.lines)
		}()
		began := time.Now()
		for i := range n {
			h.acquire(v1.AcquireRequest{Resource: fmt.Sprint("r", i), Holder: "h", ID: fmt.Sprint(i), Reason: strings.Repeat("y", 1000)})
		}
		if <-read; time.Since(began) > time.Second {
			t.Errorf("the quick reader had to wait for %v", time.Since(began))
		}
		time.Sleep(streamTime)
		synctest.Wait()
		if got := value(h.door.backend.Metrics().Watches); got != 1 {
			t.Errorf("%v watches are open", got)
		}
		quick.close()
		<-read
	})
}

// Over any number of broken connections, the caller's watch shows each event once
// and in order.
func TestWatchAcrossReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		random := rand.New(rand.NewPCG(1, 2))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cut := &cutting{Transport: h.client.Transport.(*http.Transport).Clone()}
		defer cut.CloseIdleConnections()
		caller, _ := v1.NewCaller(v1.CallerConfig{Server: "http://pipe", Client: &http.Client{Transport: cut}})

		const n = 500
		started := make(chan struct{}, 1000)
		var got []v1.Event
		done := make(chan error, 1)
		go func() {
			for e, err := range caller.Watch(ctx, v1.WatchQuery{Prefix: "jobs/", Started: func(v1.Hello) { started <- struct{}{} }}) {
				if err != nil {
					done <- err
					return
				}
				if got = append(got, e); len(got) == n {
					done <- nil
					return
				}
			}
		}()
		<-started
		for i := range n {
			h.hold(fmt.Sprintf("jobs/%d", i), fmt.Sprint(i))
			h.hold(fmt.Sprintf("other/%d", i), fmt.Sprint("o", i))
			if random.IntN(10) == 0 {
				cut.cut()
			}
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for i, e := range got {
			if e.ID != fmt.Sprint(i) {
				t.Fatalf("event %d is %+v", i, e)
			}
		}
		if len(cut.ends) < 10 {
			t.Errorf("there were only %d connections", len(cut.ends))
		}
	})
}

// cutting is a transport whose answers can be cut off.
type cutting struct {
	*http.Transport
	mu   sync.Mutex // guards what follows
	ends []func()
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	response, err := c.Transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, cancel)
	return response, nil
}

// cut ends the newest answer.
func (c *cutting) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[len(c.ends)-1]()
}

// A client that announces a body and sends none is refused in time: it must not hold up the server that stops.
func TestWatchDoesNotWaitForABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		conn, err := h.pipe.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go io.WriteString(conn, "GET /v1/watch HTTP/1.1\r\nHost: pipe\r\nContent-Length: 1\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != http.StatusRequestTimeout {
			t.Errorf("the answer is %v, %v", answer, err)
		}
	})
}
