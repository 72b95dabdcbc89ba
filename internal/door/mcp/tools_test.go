package mcp

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

var update = flag.Bool("update", false, "write testdata/tools.json anew")

// What agents are told of the tools decides how they use them: it changes on purpose alone. All of it fits in 1,200
// tokens, counted as four bytes each, which is fewer than any tokenizer needs for such text.
func TestToolTexts(t *testing.T) {
	b := newBench(t, Config{Break: true})
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(AgentHeader, "ann")
	w := httptest.NewRecorder()
	b.door.ServeHTTP(w, r)
	_, data, _ := strings.Cut(w.Body.String(), "data: ")
	var answer struct {
		Result struct {
			Tools []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(data), &answer); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	var text bytes.Buffer
	bytesOf := len(instructions)
	for _, tool := range answer.Result.Tools {
		bytesOf += len(tool)
		if err := json.Indent(&text, tool, "", "  "); err != nil {
			t.Fatal(err)
		}
		text.WriteByte('\n')
	}
	if tokens := (bytesOf + 3) / 4; tokens > 1200 {
		t.Errorf("the tools take %d tokens, and may take 1200", tokens)
	}
	if *update {
		if err := os.WriteFile("testdata/tools.json", text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/tools.json")
	if err != nil || text.String() != string(want) {
		t.Errorf("the tools are not those of testdata/tools.json (%v); -update writes it anew:\n%s", err, &text)
	}
}

// There are five tools, and lease_break only where an operator wants it.
func TestOnlyOperatorsGiveBreak(t *testing.T) {
	for _, config := range []Config{{}, {Break: true}} {
		b := newBench(t, config)
		w := httptest.NewRecorder()
		r := request(t.Context(), "ann", "lease_break", `{"resource":"a","reason":"no"}`)
		b.door.ServeHTTP(w, r)
		if known := !strings.Contains(w.Body.String(), "unknown tool"); known != config.Break {
			t.Errorf("with %+v lease_break answers %s", config, w.Body)
		}
	}
}

// Arguments that mean nothing are told as such, with those that do.
func TestBadArguments(t *testing.T) {
	b := newBench(t, Config{})
	for arguments, want := range map[string]string{
		`{}`:                                               "give 1 to 16",
		`{"resources":[]}`:                                 "give 1 to 16",
		`{"resources":["a"]}`:                              "reason is missing",
		`{"resources":["a","a"]}`:                          "twice",
		`{"resources":["a/../b"]}`:                         "segment",
		`{"resource":"a","reason":"x"}`:                    "allowed are: resources, reason, wait_seconds",
		`{"resources":"a","reason":"x"}`:                   "cannot be read",
		`{"resources":["\u0000"]}`:                         "control character",
		`{"resources":["a"],"slots":-1}`:                   "slots is -1",
		`{"resources":["a"],"ttl_seconds":1,"reason":"x"}`: "10 to 14400",
		`[]`: "cannot be read",
	} {
		b.call("ann", "lease_acquire", arguments).fails(leasehold.Invalid, want)
	}
	b.call("", "lease_list", `{}`).fails(leasehold.Invalid, AgentHeader)
	b.call("ann", "lease_release", `{"ids":["`+newAgent("", "ann").id("1")+`"],"outcome":"bad"}`).fails(leasehold.Invalid,
		"done, failed or unclean")
}

// The same request of the same agent is one request; that of another agent, or of another principal, is not.
func TestOnceIsOnce(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		one := b.acquire("ann", "a", `,"request_id":"1"`).is(statusHeld)
		again := b.acquire("ann", "a", `,"request_id":"1"`).is(statusHeld)
		if one.ID != again.ID || one.Leases[0].Token != again.Leases[0].Token {
			t.Errorf("a request got %s and %s", one.text, again.text)
		}
		b.acquire("ann", "b", `,"request_id":"1"`).fails(leasehold.Refused, "belongs to ann on a")
		b.acquire("bob", "a", `,"request_id":"1"`).is(statusWaiting)
		// Without a name, what the agent has already is what it gets; it never waits for itself.
		if unnamed := b.acquire("ann", "a").is(statusHeld); unnamed.ID != one.ID {
			t.Errorf("ann has %s and %s", one.ID, unnamed.ID)
		}
		b.acquire("ann", "a", `,"request_id":"2"`).fails(leasehold.Refused, "you hold a already")
		if b.status("a").Waiting != 1 {
			t.Error("ann waits for herself")
		}
	})
	if newAgent("x", "ann").id("1") == newAgent("y", "ann").id("1") || newAgent("x", "").id("1") == newAgent("", "x").id("1") {
		t.Error("two principals have the same ids")
	}
}

// Any call renews what the agent holds, and nothing of others; who comes late is warned.
func TestActivityRenews(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		mine := b.acquire("ann", "a").is(statusHeld)
		other := b.acquire("bob", "b").is(statusHeld)
		sleep(9 * time.Minute)
		b.call("ann", "lease_list", `{}`).says("had only 1m of its 10m left")
		b.call("ann", "lease_list", `{}`)
		sleep(9 * time.Minute)
		b.check("ann", mine.ID).is(statusHeld)
		b.check("bob", other.ID).is(statusLost)
		ticket := b.acquire("bob", "a").is(statusWaiting)
		sleep(9 * time.Minute)
		b.call("bob", "lease_ask", `{"resource":"a","message":"hello"}`).says("ticket "+ticket.ID, "loses its place")
	})
}

// An agent that stopped half-way says so, and the next one is warned where the definition wants it.
func TestUncleanRelease(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.do(&core.Define{Namespace: leasehold.DefaultNamespace, By: "ops",
			Definition: leasehold.Definition{Path: "db", Unclean: leasehold.WarnNext}, Fields: core.FieldUnclean})
		g := b.acquire("ann", "db").is(statusHeld)
		b.call("ann", "lease_release", `{"ids":["`+g.ID+`"],"outcome":"unclean"}`).says("left half-way")
		b.acquire("bob", "db").is(statusHeld, "the lease of ann before yours ended uncleanly")
	})
}

// An agent can have so many leases and tickets, and no more.
func TestAnAgentHasSoMany(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		for i := range maxGrips {
			b.acquire("ann", "r/"+strings.Repeat("x", i+1)).is(statusHeld)
		}
		b.acquire("ann", "one-more").fails(leasehold.Limited, "64")
		if got := b.check("ann"); len(got.All) != maxGrips {
			t.Errorf("%d are checked", len(got.All))
		}
	})
}

// Who an agent is, its token says; agents that share one are told apart by their names.
func TestIdentityIsTheTokens(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		secret, hash := credential.NewToken()
		_, other := credential.NewToken()
		b.do(&core.ChangeAccess{Put: access.Items{
			Tokens: []*access.Token{{ID: "t1", Hash: hash, Principal: "ci"},
				{ID: "t0", Hash: other, Principal: "root"}},
			Bindings: []*access.Binding{{Name: "a", Role: "admin", Principal: "root", Namespace: access.AllNamespaces}, {Name: "b", Role: "member", Principal: "ci", Namespace: "default", Prefix: "task/"}},
		}})
		ask := func(agent, token, tool, arguments string) (int, told) {
			r := request(t.Context(), agent, tool, arguments)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			b.door.ServeHTTP(w, r)
			got := told{t: t}
			got.text, got.failed = resultOf(w.Body.String())
			_ = json.Unmarshal([]byte(got.text), &got)
			return w.Code, got
		}
		if code, _ := ask("ann", "", "lease_list", `{}`); code != 401 {
			t.Errorf("without a token the answer is %d", code)
		}
		const task = `{"resources":["task/1"],"reason":"x","request_id":"1"}`
		_, got := ask("", secret, "lease_acquire", task)
		got.is(statusHeld)
		if s := b.status("task/1"); s.Holders[0].Holder != "ci" {
			t.Errorf("the holder is %s", s.Holders[0].Holder)
		}
		_, got = ask("worker-2", secret, "lease_acquire", task)
		got.is(statusWaiting, `"holder":"ci"`)
		_, got = ask("", secret, "lease_acquire", `{"resources":["prod"],"reason":"x"}`)
		got.fails(leasehold.Denied, "acquire")
	})
}

func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"resources":["a"],"reason":"x"}`, `{"ids":["mcp-a-b"]}`, `{"prefix":"a/"}`,
		`{"resource":"a","message":"hi"}`, `{"resource":"a","reason":"b","period_seconds":1}`, `{"slots":1e9}`, `nul`} {
		f.Add(1, seed)
	}
	b := newBench(f, Config{Break: true})
	f.Fuzz(func(t *testing.T, which int, arguments string) {
		o := &operations[1+uint(which)%uint(len(operations)-1)]
		if !json.Valid([]byte(arguments)) {
			arguments = `{}`
		}
		bench := *b
		bench.t = t
		if got := bench.call("fuzz", o.name, arguments); got.failed && (got.Error.Code == "" || got.Error.Next == "") {
			t.Errorf("%s %s is answered %s", o.name, arguments, got.text)
		}
	})
}
