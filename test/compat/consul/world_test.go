//go:build linux

package consul

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/test/process"
)

const patience = time.Minute // after which something hangs

// binary builds the program once.
var binary = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "compat")
	if err != nil {
		panic(err)
	}
	return process.BuildTree(building, dir)
})

// building is the test that builds.
var building testing.TB

// A server is a Leasehold, with the addresses of its ports for Consul's clients.
type server struct {
	*peer.Leasehold
	urls []string
}

func leasehold(t testing.TB, members int, args ...string) (s server) {
	t.Helper()
	building = t
	config := peer.LeaseholdConfig{Binary: binary(), Members: members, Args: args, Consul: true}
	s.Leasehold = peer.StartLeasehold(t, config)
	for _, m := range s.Members {
		s.urls = append(s.urls, m.ConsulURL)
	}
	return s
}

// A world is a server, and what a program was told by it.
type world struct {
	*testing.T
	name string
	url  string
	node string // the name of its node
	ctx  context.Context

	mu    sync.Mutex
	lines []string
}

func newWorld(t *testing.T, name, url string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	w := &world{T: t, name: name, url: url, ctx: ctx}
	self, err := w.client().Agent().Self()
	w.must(err)
	w.node = self["Config"]["NodeName"].(string)
	return w
}

// client returns a client of Consul.
func (w *world) client() *api.Client {
	w.Helper()
	client, err := api.NewClient(&api.Config{Address: w.url})
	w.must(err)
	return client
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", w.name, err)
	}
}

// say notes what the program was told.
func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// differs notes something that is different on purpose.
func (w *world) differs(name, format string, args ...any) {
	w.say("differs %s|%s", name, fmt.Sprintf(format, args...))
}

// A reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) index() string { return r.header.Get("X-Consul-Index") }

// send sends a request: "PUT /v1/kv/a" and a body.
func (w *world) send(what, body string) reply {
	w.Helper()
	method, path, _ := strings.Cut(what, " ")
	r, err := http.NewRequestWithContext(w.ctx, method, w.url+path, strings.NewReader(body))
	w.must(err)
	answer, err := http.DefaultClient.Do(r)
	w.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	w.must(err)
	return reply{answer.StatusCode, answer.Header, string(text)}
}

// news waits until something is answered in another way than before. Consul may wake a query although nothing that it
// asks for has changed: then it is asked again, with the index that it told.
func (w *world) news(what, index string, was reply) reply {
	and := "?"
	if strings.Contains(what, "?") {
		and = "&"
	}
	for {
		r := w.send(what+and+"wait=60s&index="+index, "")
		if r.status != was.status || r.body != was.body {
			return r
		}
		index = r.index()
	}
}

// ask sends a request, and notes what it is answered.
func (w *world) ask(what, body string) reply {
	w.Helper()
	r := w.send(what, body)
	var headers []string
	for _, name := range []string{"X-Consul-Knownleader", "X-Consul-Effective-Consistency", "Content-Type", "Allow"} {
		if value := r.header.Get(name); value != "" {
			headers = append(headers, value)
		}
	}
	index := ""
	if (strings.HasPrefix(r.body, `[{"LockIndex"`) || strings.Contains(what, "raw")) && !strings.Contains(what, "recurse") {
		index = " at index " + r.index()
	} else if r.index() != "" {
		index = " with an index"
	}
	asked := sentForm.ReplaceAllString(fmt.Sprintf("%.200s %.200s", what, body), "${1}N")
	w.say("%s: %d %s [%s]%s", asked, r.status, r.body, strings.Join(headers, "; "), index)
	return r
}

var (
	indexForm = regexp.MustCompile(`("(?:Create|Modify)Index": ?|at index )(\d+)`)
	lockForm  = regexp.MustCompile(`"LockIndex":\d+,"Key":"([^"]*)"`)
	sentForm  = regexp.MustCompile(`("Index":|cas=|index=)\d+`)
	idForm    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aboutForm = regexp.MustCompile(`("NodeChecks".*?)"CreateIndex":\d+,"ModifyIndex":\d+`)
)

// told is what the program was told, with indexes by their order and sessions by when they were first seen: their
// numbers are a server's own business.
func (w *world) told() []string {
	text := aboutForm.ReplaceAllString(strings.Join(w.lines, "\x00"), `$1"CreateIndex":about`)
	text = byOrder(text, indexForm)
	for _, m := range lockForm.FindAllStringSubmatch(text, -1) { // those of one key are compared with each other
		text = byOrder(text, regexp.MustCompile(`("LockIndex":)(\d+),"Key":"`+regexp.QuoteMeta(m[1])+`"`))
	}
	seen := map[string]int{}
	text = idForm.ReplaceAllStringFunc(text, func(s string) string {
		if _, known := seen[s]; !known {
			seen[s] = len(seen) + 1
		}
		return fmt.Sprint("session-", seen[s])
	})
	text = strings.ReplaceAll(text, `"`+w.node+`"`, `"the node"`)
	return strings.Split(text, "\x00")
}

// byOrder replaces numbers, the second group of a form, by their place in the order of all. 0 stays what it is.
func byOrder(text string, form *regexp.Regexp) string {
	all := []int{0}
	for _, m := range form.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[2])
		all = append(all, n)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return form.ReplaceAllStringFunc(text, func(s string) string {
		m := form.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2])
		return strings.Replace(s, m[1]+m[2], m[1]+fmt.Sprint(slices.Index(all, n)), 1)
	})
}

// compare runs a program against both, and compares what it was told.
func compare(t *testing.T, program func(*world)) {
	t.Helper()
	own := newWorld(t, "leasehold", leasehold(t, 1).urls[0])
	program(own)
	if t.Failed() {
		return
	}
	if !there() {
		t.Skip("left out: the comparison, since there is no Consul: make peers")
	}
	other := newWorld(t, "consul", peer.StartConsul(t, peer.ConsulConfig{}).Members[0].URL())
	program(other)
	compareLines(t, other.told(), own.told())
}

// there reports whether a Consul can be started.
func there() bool {
	_, err := os.Stat(peersDir() + "/consul")
	return err == nil
}

// differences are what a client is told otherwise than by Consul, and why.
var differences = map[string]string{
	"lock index after a plain put": "LockIndex is the fencing token, which stays; Consul forgets how often the key was acquired",
	"lock index after a delete":    "LockIndex is the fencing token, which grows; Consul begins anew",
	"text of an unknown session":   "Consul puts \"raft apply failed: \" before it; Patroni looks for the text without it",
	"text of a body too large":     "Consul adds the address of a page of its documentation",
	"text of a wrong body":         "Consul's JSON package words it otherwise",
}

func compareLines(t *testing.T, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		a, b := at(want, i), at(got, i)
		if difference, ok := strings.CutPrefix(a, "differs "); ok {
			difference, _, _ = strings.Cut(difference, "|")
			if differences[difference] == "" {
				t.Errorf("the difference %q has no reason", difference)
			}
			if a == b {
				t.Errorf("nothing differs any more: %s", a)
			}
			continue
		}
		if a != b {
			t.Errorf("line %d is\n\t%s\nand Consul's\n\t%s", i+1, b, a)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
