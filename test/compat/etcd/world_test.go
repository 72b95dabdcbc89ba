//go:build linux

package etcd

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/status"

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

func leasehold(t testing.TB, members int, args ...string) *peer.Leasehold {
	t.Helper()
	building = t
	return peer.StartLeasehold(t, peer.LeaseholdConfig{Binary: binary(), Members: members, Args: args})
}

// A world is a server, and what a program was told by it.
type world struct {
	*testing.T
	name      string
	endpoints []string
	client    *clientv3.Client
	ctx       context.Context

	mu    sync.Mutex
	lines []string
}

func (w *world) dial(endpoints ...string) *clientv3.Client {
	w.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: patience})
	w.must(err)
	w.Cleanup(func() { _ = client.Close() })
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

// failed notes an error, as a client sees it.
func (w *world) failed(what string, err error) {
	s := status.Convert(err)
	w.say("%s: %v %q", what, s.Code(), s.Message())
}

// differs notes something that is different on purpose.
func (w *world) differs(name, format string, args ...any) {
	w.say("differs %s|%s", name, fmt.Sprintf(format, args...))
}

func rev(n int64) string   { return fmt.Sprintf("⟨rev %d⟩", n) }
func lease(n int64) string { return fmt.Sprintf("⟨lease %d⟩", n) }

func kv(kv *mvccpb.KeyValue) string {
	if kv == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%s=%q created %s changed %s version %d", kv.Key, kv.Value, rev(kv.CreateRevision),
		rev(kv.ModRevision), kv.Version)
	if kv.Lease != 0 {
		text += " " + lease(kv.Lease)
	}
	return text
}

func kvs(list []*mvccpb.KeyValue) string {
	var all []string
	for _, one := range list {
		all = append(all, kv(one))
	}
	return "[" + strings.Join(all, "; ") + "]"
}

func event(e *clientv3.Event) string {
	text := e.Type.String() + " " + kv(e.Kv)
	if e.PrevKv != nil {
		text += " before: " + kv(e.PrevKv)
	}
	return text
}

var (
	revForm   = regexp.MustCompile(`⟨rev (\d+)⟩`)
	leaseForm = regexp.MustCompile(`⟨lease (-?\d+)⟩`)
)

// told is what the program was told, with revisions by their order and leases by when they were first seen: their
// numbers are a server's own business.
func (w *world) told() []string {
	text := strings.Join(w.lines, "\n")
	var all []int
	for _, m := range revForm.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		all = append(all, n)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	text = revForm.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.Atoi(revForm.FindStringSubmatch(s)[1])
		return fmt.Sprint("r", slices.Index(all, n))
	})
	seen := map[string]int{}
	text = leaseForm.ReplaceAllStringFunc(text, func(s string) string {
		if _, known := seen[s]; !known {
			seen[s] = len(seen) + 1
		}
		return fmt.Sprint("lease ", seen[s])
	})
	return strings.Split(text, "\n")
}

// compare runs a program against both, and compares what it was told.
func compare(t *testing.T, program func(*world)) {
	t.Helper()
	real := peer.StartEtcd(t, peer.EtcdConfig{})
	own := process.Reserve(t)
	leasehold(t, 1, "--etcd-listen", own)
	shared := leasehold(t, 1)
	worlds := []*world{
		{T: t, name: "etcd", endpoints: real.Endpoints()},
		{T: t, name: "leasehold", endpoints: []string{"http://" + own}},
		{T: t, name: "leasehold, shared port", endpoints: shared.URLs()},
	}
	for _, w := range worlds {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		w.ctx, w.client = ctx, w.dial(w.endpoints...)
		program(w)
		cancel()
	}
	for _, w := range worlds[1:] {
		compareLines(t, worlds[0].told(), w.told(), w.name)
	}
}

// differences are what a client is told otherwise than by etcd, and why.
var differences = map[string]string{
	"twice from a key on":            "etcd does not notice that a delete to the end of all keys meets a put of the same transaction",
	"code of a lock without a lease": "etcd answers Unknown, since its own client does not know the code: ours is that of LeaseNotFound",
	"users":                          "who may do what is set for all doors at once, by leasehold access",
	"hash":                           "states are compared by leasehold cluster",
	"least ttl":                      "a TTL is granted as it is asked for; etcd raises it to 2 s or more",
	"largest ttl":                    "no session lasts longer than 30 days",
}

func compareLines(t *testing.T, want, got []string, name string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		a, b := at(want, i), at(got, i)
		if difference, ok := strings.CutPrefix(a, "differs "); ok {
			difference, _, _ = strings.Cut(difference, "|")
			if differences[difference] == "" {
				t.Errorf("%s: the difference %q has no reason", name, difference)
			}
			if a == b {
				t.Errorf("%s: nothing differs any more: %s", name, a)
			}
			continue
		}
		if a != b {
			t.Errorf("%s: line %d is\n\t%s\nand etcd's\n\t%s", name, i+1, b, a)
		}
	}
	if t.Failed() {
		t.Logf("%s was told:\n%s", name, strings.Join(got, "\n"))
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
