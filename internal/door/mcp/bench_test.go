package mcp

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a door to an engine in memory, which is checked at the end.
type bench struct {
	t       testing.TB
	engine  *memory.Engine
	backend *door.Backend
	door    *Door
}

func newBench(t testing.TB, config Config) *bench {
	t.Helper()
	e := doortest.StartMemory(t)
	b := door.NewBackend(e, door.Options{})
	return &bench{t, e, b, New(b, config)}
}

// inTime runs a test in virtual time.
func inTime(t *testing.T, test func(*testing.T, *bench)) {
	synctest.Test(t, func(t *testing.T) { test(t, newBench(t, Config{})) })
}

// A told is what a tool said.
type told struct {
	t      testing.TB
	text   string
	failed bool

	entry
	All      []entry `json:"-"`
	Messages []message
	Released []ended
	Error    struct {
		Code, Message, Next string
		Retryable           bool
	}
}

// call calls a tool in an agent's name.
func (b *bench) call(agent, tool, arguments string) told {
	b.t.Helper()
	w := httptest.NewRecorder()
	r := request(b.t.Context(), agent, tool, arguments)
	r.RemoteAddr = "192.0.2.1:1234"
	b.door.ServeHTTP(w, r)
	got := told{t: b.t}
	if got.text, got.failed = resultOf(w.Body.String()); got.text == "" {
		b.t.Fatalf("%s answers %d %s", tool, w.Code, w.Body)
	}
	if tool == "lease_list" && !got.failed {
		return got
	}
	if tool == "lease_check" && !got.failed {
		var c checked
		if err := json.Unmarshal([]byte(got.text), &c); err != nil {
			b.t.Fatalf("%s: %v", got.text, err)
		}
		got.All, got.Messages, got.Next, got.Warnings = c.Leases, c.Messages, c.Next, c.Warnings
		if len(got.All) == 1 {
			got.entry = got.All[0]
		}
		return got
	}
	if err := json.Unmarshal([]byte(got.text), &got); err != nil {
		b.t.Fatalf("%s: %v", got.text, err)
	}
	return got
}

// is expects a status, and texts in the answer.
func (a told) is(status string, texts ...string) told {
	a.t.Helper()
	if a.failed || a.Status != status {
		a.t.Fatalf("the status is %q, want %s: %s", a.Status, status, a.text)
	}
	return a.says(texts...)
}

func (a told) says(texts ...string) told {
	a.t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			a.t.Errorf("the answer has no %q: %s", text, a.text)
		}
	}
	return a
}

// fails expects an error that the agent can read.
func (a told) fails(code leasehold.Code, texts ...string) told {
	a.t.Helper()
	if !a.failed || a.Error.Code != code.String() || a.Error.Next == "" {
		a.t.Fatalf("the answer is no %v with a next step: %s", code, a.text)
	}
	return a.says(texts...)
}

func (b *bench) acquire(agent, resource string, more ...string) told {
	b.t.Helper()
	return b.call(agent, "lease_acquire", `{"resources":["`+resource+`"],"reason":"fix the login"`+
		strings.Join(more, "")+`}`)
}

func (b *bench) check(agent string, ids ...string) told {
	b.t.Helper()
	if len(ids) == 0 {
		return b.call(agent, "lease_check", `{}`)
	}
	return b.call(agent, "lease_check", `{"ids":["`+strings.Join(ids, `","`)+`"]}`)
}

func (b *bench) release(agent string, ids ...string) told {
	b.t.Helper()
	return b.call(agent, "lease_release", `{"ids":["`+strings.Join(ids, `","`)+`"]}`)
}

// status is what the core knows of a resource.
func (b *bench) status(path string) (s leasehold.Status) {
	b.t.Helper()
	err := b.engine.Read(b.t.Context(), func(v core.View) { s = v.Status(leasehold.DefaultNamespace, path, 10) })
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) do(command core.Command) core.Answer {
	b.t.Helper()
	answer, err := b.engine.Do(b.t.Context(), command)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

// sleep lets time pass until what it makes due is done.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
