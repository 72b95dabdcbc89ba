//go:build linux

package postgres

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func TestProgramsThatStartAtTheSameTime(t *testing.T) {
	c := Config{URL: theServer(t).URL(), Schema: newSchema()}
	_, err := Open(t.Context(), c)
	if code(err) != leasehold.Refused || !strings.Contains(err.Error(), "migrate=yes") {
		t.Errorf("before it is set up: %v", err)
	}
	c.Migrate = true
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s, err := Open(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			acquire(t, s, request(fmt.Sprint(i), "one"))
			_ = s.Close()
		})
	}
	all.Wait()
	if err := Migrate(t.Context(), c); err != nil {
		t.Errorf("once more: %v", err)
	}
	s := openStore(t, c)
	conn := connect(t, theServer(t).URL())
	s.execute(t, conn, "drop function @.acquire")
	if _, err := s.Acquire(t.Context(), request("a", "b")); code(err) != leasehold.Refused {
		t.Errorf("without its function: %v", err)
	}
	s.execute(t, conn, "create or replace function @.version() returns integer language sql as 'select 99'")
	if _, err := Open(t.Context(), c); code(err) != leasehold.Refused || !strings.Contains(err.Error(), "99") {
		t.Errorf("of another version: %v", err)
	}
}

// documented returns the statements of the page about this store that begin with a word.
func documented(t *testing.T, word string) []string {
	page, err := os.ReadFile("../../docs/stores/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^`+word+` [^;]*;`).FindAllString(string(page), -1)
}

// The page lists the exact rights: without them everything is denied, with them everything works.
func TestPermissions(t *testing.T) {
	p := theServer(t)
	p.SQL("create role app login")
	p.SQL("create role lease_owner login")
	url := func(role string) string { return p.URLOf(role) }
	if _, err := Open(t.Context(), Config{URL: url("lease_owner"), Migrate: true}); code(err) != leasehold.Denied ||
		!strings.Contains(err.Error(), "authorization") {
		t.Errorf("migrated without the right to: %v", err)
	}
	for _, statement := range documented(t, "create") {
		p.SQL(statement)
	}
	if err := Migrate(t.Context(), Config{URL: url("lease_owner")}); err != nil {
		t.Fatal(err)
	}
	grants := documented(t, "grant")
	if len(grants) != 2 {
		t.Fatalf("the page has the grants %q", grants)
	}
	for i, statement := range grants {
		_, err := Open(t.Context(), Config{URL: url("app")})
		if code(err) != leasehold.Denied || !strings.Contains(err.Error(), "grant usage on schema") {
			t.Errorf("opened with %d of the rights: %v", i, err)
		}
		p.SQL(statement)
	}
	s := openStore(t, Config{URL: url("app")})
	g := acquire(t, s, request("a", "one"))
	if _, err := s.Renew(t.Context(), store.Ref{Resource: "a", ID: "one"}); err != nil {
		t.Error(err)
	}
	tx, err := connect(t, url("app")).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Fence(t.Context(), tx, pass(g)); err != nil {
		t.Error(err)
	}
	commit(t, tx)
	if _, err := s.Read(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if _, err := s.List(t.Context(), store.Query{}); err != nil {
		t.Error(err)
	}
	if _, err := s.Break(t.Context(), store.BreakRequest{Ref: store.Ref{Resource: "a", ID: "one"}}); err != nil {
		t.Error(err)
	}
	release(t, s, "a", "one")
	if err := s.cleanOnce(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := connect(t, url("app")).Exec(t.Context(), "select from leasehold.resources"); err == nil {
		t.Error("a program may read the tables")
	}
}

func TestTheViewAndTheQueryOfThePage(t *testing.T) {
	s := newStore(t)
	acquire(t, s, request("reports/nightly", "one"))
	enqueue(t, s, request("reports/nightly", "two"))
	acquire(t, s, request("zero\x00", "\x00"))
	conn := connect(t, theServer(t).URL())
	var resource, holder string
	err := conn.QueryRow(t.Context(), "select resource, note::text from "+s.schema+".leases where waiting = 1").
		Scan(&resource, &holder)
	if err != nil || resource != "reports/nightly" || holder != `{"holder":"holder of one"}` {
		t.Errorf("the view shows %s %s, %v", resource, holder, err)
	}
	var n int
	for _, query := range documented(t, "select") {
		query = strings.TrimSuffix(strings.ReplaceAll(query, "leasehold.", s.schema+"."), ";")
		if err := conn.QueryRow(t.Context(), "select count(*) from ("+query+") q").Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows, %v of %s", n, err, query)
		}
	}
	if n == 0 {
		t.Error("the page has no query")
	}
}

// A database of another encoding cannot hold most texts, but any lease.
func TestADatabaseOfAnotherEncoding(t *testing.T) {
	p := theServer(t)
	for _, encoding := range []string{"latin1", "sql_ascii"} {
		p.SQL("create database " + encoding + " encoding '" + encoding + "' template template0 locale 'C'")
		c := Config{URL: strings.Replace(p.URL(), "/postgres?", "/"+encoding+"?", 1), Migrate: true}
		s := openStore(t, c)
		r := store.Request{Resource: "räume/漢字\x00", ID: "🎈\x00", Holder: "漢字\x00🎈", TTL: time.Minute}
		acquire(t, s, r)
		state, err := s.Read(t.Context(), r.Resource)
		if err != nil || state.Holding != 1 || state.Holders[0].Holder != r.Holder || state.Holders[0].ID != r.ID {
			t.Errorf("%s: read %+v, %v", encoding, state, err)
		}
	}
}

func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://u:secret@h/d?schma=x":           `unknown parameter "schma"`,
		"postgres://u:secret@h/d?max-ttl=soon":      "such as 5m",
		"postgres://u:secret@h/d?migrate=true":      "yes or no",
		"postgres://u:secret@h/d?failover=maybe":    "wait or lossless",
		"postgres://u:secret@h/d?schema=a&schema=b": "twice",
		"postgres://u:secret@h/d?sslmode=perhaps":   "malformed",
		"postgres://u:secret@h/d?max-ttl=1000h":     "largest TTL",
		"postgres://u:secret@127.0.0.1:1/d":         "database=d`: 127.0.0.1:1 (127.0.0.1): dial error",
		"postgresql://u:secret@127.0.0.1:1/d":       "cannot be reached",
	} {
		_, err := store.Open(t.Context(), text, store.Settings{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	u, err := url.Parse("postgres://u:p@h:1/d?schema=s&max-ttl=2m&migrate=yes&failover=lossless&sslmode=disable&listen=postgres://x")
	if err != nil {
		t.Fatal(err)
	}
	c, err := configOf(u)
	want := Config{URL: "postgres://u:p@h:1/d?sslmode=disable", Schema: "s", MaxTTL: 2 * time.Minute, Migrate: true,
		Lossless: true, Listen: "postgres://x"}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLimits(t *testing.T) {
	s := newStore(t)
	ok := request("a", "one")
	ok.Resource, ok.ID = strings.Repeat("ä", leasehold.MaxName/2), strings.Repeat("i", leasehold.MaxName)
	ok.Value = make([]byte, leasehold.MaxValue)
	acquire(t, s, ok)
	for name, change := range map[string]func(*store.Request){
		"resource":     func(r *store.Request) { r.Resource += "x" },
		"no resource":  func(r *store.Request) { r.Resource = "" },
		"id":           func(r *store.Request) { r.ID += "x" },
		"no id":        func(r *store.Request) { r.ID = "" },
		"not UTF-8":    func(r *store.Request) { r.Resource = "\xff" },
		"holder":       func(r *store.Request) { r.Holder = strings.Repeat("x", leasehold.MaxName+1) },
		"value":        func(r *store.Request) { r.Value = make([]byte, leasehold.MaxValue+1) },
		"labels":       func(r *store.Request) { r.Labels = leasehold.Labels{{Key: "k", Value: strings.Repeat("x", 4096)}} },
		"a label":      func(r *store.Request) { r.Labels = leasehold.Labels{{Key: "k", Value: "\xff"}} },
		"floor":        func(r *store.Request) { r.Floor = leasehold.MaxToken },
		"a short TTL":  func(r *store.Request) { r.TTL = time.Millisecond },
		"a long TTL":   func(r *store.Request) { r.TTL = time.Hour },
		"an exact TTL": func(r *store.Request) { r.TTL = time.Second + 1 },
	} {
		r := ok
		change(&r)
		if _, err := s.Acquire(t.Context(), r); code(err) != leasehold.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := ok
	r.TTL = time.Hour
	if _, err := s.Acquire(t.Context(), r); err == nil || !strings.Contains(err.Error(), "max-ttl") {
		t.Errorf("the error does not say how to allow more: %v", err)
	}
	if err := s.Features().CheckTTL(time.Hour); err == nil || !strings.Contains(err.Error(), "max-ttl") {
		t.Errorf("nor does that of those who check before: %v", err)
	}
	r = request("floor", "one")
	r.Floor = leasehold.MaxToken - 1
	if g := acquire(t, s, r); g.Token != leasehold.MaxToken {
		t.Errorf("the largest token: %d", g.Token)
	}
	before := store.ReleaseRequest{Leases: []store.Ref{{Resource: r.Resource, ID: r.ID}}}
	if err := s.Release(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), request("floor", "two")); code(err) != leasehold.Limited {
		t.Errorf("a token above the largest: %v", err)
	}
}

func FuzzNotes(f *testing.F) {
	f.Add("holder", "key", "reason \x00 🎈 \u2028 </script>")
	f.Fuzz(func(t *testing.T, holder, label, reason string) {
		n := note{Holder: holder, Labels: [][2]string{{label, holder}}, Reason: reason, By: label}
		text := n.encode()
		if !json.Valid([]byte(text)) || strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || r < ' ' }) {
			t.Fatalf("%q", text)
		}
		if valid := utf8.ValidString(holder + label + reason); valid && !reflect.DeepEqual(decodeNote([]byte(text)), n) {
			t.Errorf("%+v came back as %+v", n, decodeNote([]byte(text)))
		}
	})
}

func TestSuccessor(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "a": "b", "a\xff": "b", "\xff\xff": "", "a/": "a0"} {
		if got := string(successor(prefix)); got != want {
			t.Errorf("after %q comes %q, want %q", prefix, got, want)
		}
	}
}
