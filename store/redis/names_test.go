package redis

import (
	"context"
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// documentedACL returns the rules that the documentation tells users to give.
func documentedACL(t testing.TB) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/stores/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)ACL SETUSER jobs (.*?)\n` + "```").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/stores/redis.md has no ACL SETUSER jobs")
	}
	rules := strings.NewReplacer("\\\n", " ", "'", "").Replace(string(found[1]))
	return rules
}

var hostile = []string{
	"{}", "}", "{", "a}b{c}", "{a}{b}", "%7D", "ü", "日本", " ", "a b\tc", "\"'\\", "*", "[a-z]", "a:b", "lease:r", "\x7f",
	strings.Repeat("x", leasehold.MaxName), "💥/💥",
}

// Whatever the namespace and the resource are called, all keys of a namespace have one hash tag, and two
// namespaces share no key.
func TestHostileTags(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	tokens := map[leasehold.Token]string{}
	for _, namespace := range hostile {
		c := config(server.Address)
		c.Namespace = namespace
		s := openWith(t, c)
		for _, resource := range hostile {
			grant := mustAcquire(t, s, resource, resource)
			if was := tokens[grant.Token]; was == namespace {
				t.Errorf("%q/%q: the token %d was given twice", namespace, resource, grant.Token)
			}
			tokens[grant.Token] = namespace
		}
		page, err := s.List(t.Context(), store.Query{Limit: 5})
		seen := len(page.Items)
		for err == nil && page.Next != "" {
			page, err = s.List(t.Context(), store.Query{Limit: 5, After: page.Next})
			seen += len(page.Items)
		}
		if err != nil || seen != len(hostile) {
			t.Errorf("%q: listed %d of %d, %v", namespace, seen, len(hostile), err)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, name := range hostile {
		f.Add(name, name, "r")
	}
	f.Fuzz(func(t *testing.T, one, two, resource string) {
		a, b := newNames(DefaultPrefix, one), newNames(DefaultPrefix, two)
		if one != "" && tag(a.record()) != tag(a.lease(resource)) || one != "" && tag(a.record()) != tag(a.mark(resource)) {
			t.Errorf("keys of %q have different hash tags", one)
		}
		if one != "" && tag(a.record()) != escape(one) {
			t.Errorf("the hash tag of %q is %q", one, tag(a.record()))
		}
		if back, err := url.PathUnescape(escape(one)); err != nil || back != one {
			t.Errorf("%q is escaped as %q", one, escape(one))
		}
		if (one == two) != (a.base == b.base) {
			t.Errorf("%q and %q have the keys %q and %q", one, two, a.base, b.base)
		}
	})
}

// tag returns what Redis Cluster hashes of a key.
func tag(key string) string {
	_, after, found := strings.Cut(key, "{")
	name, _, closed := strings.Cut(after, "}")
	if !found || !closed || name == "" {
		return key
	}
	return name
}

func TestURLs(t *testing.T) {
	for _, test := range []struct{ url, say string }{
		{"redis://h", ""},
		{"rediss://u:p@h:1/2?max-ttl=10m&init=true&strict=true&replicas=2&prefix=p", ""},
		{"redis+cluster://h:1?addr=i:2&addr=j", ""},
		{"redis+sentinel://h/name?addr=i&sentinel-user=a&sentinel-password=b&tls=true&db=3", ""},
		{"redis://h?max_ttl=1m", `unknown parameter "max_ttl"`},
		{"redis://h?addr=i", `unknown parameter "addr"`},
		{"redis://h?max-ttl=soon", "a duration"},
		{"redis://h?replicas=x", "a number"},
		{"redis://h?strict=perhaps", "true or false"},
		{"redis://h?ca=/does/not/exist", "PEM"},
		{"redis://h/name", "number of a database"},
		{"redis+cluster://h/1", "number of a database"},
		{"redis+sentinel://h", "names no primary"},
		{"redis://h?init=%zz", "malformed"},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parseURL(u)
		if test.say == "" && err != nil || test.say != "" && (err == nil || !strings.Contains(err.Error(), test.say)) {
			t.Errorf("%s: %v", test.url, err)
		}
	}
	u, _ := url.Parse("redis+sentinel://u:p@h/name?addr=i:5&max-ttl=10m&db=3")
	c, err := parseURL(u)
	o := c.Options
	if err != nil || c.MaxTTL != 10*time.Minute || o.Sentinel.MasterSet != "name" || o.SelectDB != 3 || o.Username != "u" ||
		o.Password != "p" || strings.Join(o.InitAddress, " ") != "h:26379 i:5" {
		t.Errorf("parsed %+v, %v", c, err)
	}
}

func TestConfigsThatAreRefused(t *testing.T) {
	for _, c := range []Config{
		{Prefix: "a{b"}, {MaxTTL: -1}, {MaxTTL: 31 * 24 * time.Hour}, {Replicas: 1}, {Strict: true, Replicas: -1},
		{Namespace: "\xff"}, {Namespace: strings.Repeat("x", leasehold.MaxName+1)},
	} {
		if _, err := Open(t.Context(), c); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	s := &Store{maxTTL: time.Minute}
	for _, r := range []store.Request{
		{ID: "a", TTL: testTTL},
		{Resource: "r", TTL: testTTL},
		{Resource: "r", ID: "a"},
		{Resource: "r", ID: "a", TTL: time.Hour},
		{Resource: "r", ID: "a", TTL: testTTL, Floor: leasehold.MaxToken},
		{Resource: "r", ID: "a", TTL: testTTL, Value: make([]byte, leasehold.MaxValue+1)},
		{Resource: "r\xff", ID: "a", TTL: testTTL},
		{Resource: "r", ID: "a", TTL: testTTL, Labels: leasehold.Labels{{Key: "k", Value: "\xff"}}},
	} {
		if err := store.Check(s, r); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, r := range []store.Request{
		{Resource: "r", ID: "a", TTL: testTTL, Slots: 1}, {Resource: "r", ID: "a", Session: "s"},
		{Resource: "r", ID: "a", TTL: testTTL, Priority: 1},
	} {
		if err := store.Check(s, r); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "Leasehold server") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// What the documentation says to type shows what is there.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s := openAt(t, server.Address)
	mustAcquire(t, s, "reports/nightly", "a")
	ctx, cancel := context.WithTimeout(t.Context(), testTTL/5)
	defer cancel()
	r := store.Request{Resource: "reports/nightly", ID: "b", TTL: 10 * testTTL, Wait: time.Minute}
	if _, err := s.Acquire(ctx, r); !store.Transient(err) { // its place outlives the call
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/stores/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^redis-cli (.*)$`).FindAllSubmatch(page, -1)
	if len(commands) == 0 {
		t.Fatal("docs/stores/redis.md has no commands")
	}
	for _, c := range commands {
		if said := server.Do(strings.Fields(strings.ReplaceAll(string(c[1]), "'", ""))...); said == "" {
			t.Errorf("redis-cli %s shows nothing", c[1])
		}
	}
}
