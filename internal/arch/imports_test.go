package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/leasehold/leasehold"

// pure are the standard packages that neither do I/O nor read a clock. time is
// among them for its types; TestCoreReadsNoClock sees to the rest. sync/atomic lets an immutable value
// remember what was worked out from it.
var pure = []string{
	"bufio", "bytes", "cmp", "encoding/binary", "errors", "fmt", "hash/crc32", "hash/fnv", "io", "iter", "maps", "math", "slices", "sort", "strconv", "strings", "sync/atomic", "time",
	"unicode/utf8",
}

// subjects are the packages below the core, each of which stands on its own. They are as pure as
// the core is, and none of them knows the state.
var subjects = []string{"internal/core/command", "internal/core/record", "internal/core/timeline",
	"internal/core/waitgraph", "internal/core/usage", "internal/core/access", "internal/core/pool",
	"internal/core/reservation", "internal/core/tagged", "internal/pattern"}

// grpc is what a guard before a gRPC service needs, and only that: see TestFenceIsLight.
var grpc = []string{"google.golang.org/grpc", "google.golang.org/grpc/codes", "google.golang.org/grpc/metadata", "google.golang.org/grpc/status"}

// raft is what the pure node is made of: none of these does I/O, reads a clock or starts a goroutine.
var raft = []string{
	"go.etcd.io/raft/v3", "go.etcd.io/raft/v3/raftpb", "go.etcd.io/raft/v3/tracker",
	"go.etcd.io/etcd/server/v3/storage/wal/walpb", "google.golang.org/protobuf/proto",
}

// A rule says what a package, and all below it, may import. Tests are free.
type rule struct {
	of    string
	alone bool     // only the package itself
	only  []string // if set: nothing of ours or others' but these
	std   []string // if set: nothing of the standard library but these
	never []string // and nothing below them; with a slash at the end: only what is below
}

var rules = []rule{
	{of: "", only: []string{}, std: []string{"time"}},
	{of: "internal/core", only: append([]string{"", "internal/btree", "internal/core/internal/kernel", "internal/core/internal/alarm", "internal/core/internal/area", "internal/core/internal/learn", "internal/core/internal/records", "internal/core/internal/reserve", "internal/core/internal/task", "internal/core/internal/unit"}, subjects...), std: append(pure, "hash/maphash")}, // for ids, whose order nobody sees
	// The subjects know the kernel; it knows none of them.
	{of: "internal/core/internal/kernel", only: append([]string{"", "internal/btree"}, subjects...)},
	{of: "internal/core/internal/alarm", only: []string{"", "internal/btree", "internal/core/internal/kernel", "internal/core/timeline", "internal/core/usage"}},
	{of: "internal/core/internal/area", only: []string{"", "internal/core/internal/kernel", "internal/pattern"}},
	{of: "internal/core/internal/learn", only: []string{"", "internal/btree", "internal/core/internal/kernel", "internal/core/pool", "internal/core/usage"}},
	{of: "internal/core/internal/records", only: []string{"", "internal/btree", "internal/core/internal/kernel", "internal/core/record", "internal/pattern"}},
	{of: "internal/core/internal/reserve", only: []string{"", "internal/btree", "internal/core/internal/kernel", "internal/core/access", "internal/core/pool", "internal/core/reservation", "internal/core/timeline"}},
	{of: "internal/core/internal/task", only: []string{"", "internal/btree", "internal/core/internal/kernel", "internal/core/record"}},
	{of: "internal/core/internal/unit", only: []string{"", "internal/btree", "internal/core/internal/kernel", "internal/core/pool", "internal/core/timeline"}},
	{of: "internal/core/timeline", only: []string{}},
	{of: "internal/core/access", only: []string{"", "internal/btree"}},
	{of: "internal/core/usage", only: []string{"", "internal/core/timeline"}},
	{of: "internal/core/waitgraph", only: []string{"", "internal/btree"}},
	{of: "internal/core/record", only: []string{"", "internal/btree", "internal/core/timeline"}},
	{of: "internal/core/command", only: []string{"", "internal/btree", "internal/core/record", "internal/core/access", "internal/core/pool", "internal/core/reservation", "internal/core/tagged", "internal/pattern"}},
	{of: "internal/core/tagged", only: []string{""}},
	{of: "internal/core/reservation", only: []string{"", "internal/btree", "internal/core/access"}},
	{of: "internal/pattern", only: []string{"internal/btree"}},
	{of: "internal/core/pool", only: []string{"", "internal/btree", "internal/core/timeline"}},
	{of: "internal/wire", only: []string{"", "internal/core", "internal/core/access", "internal/core/command", "internal/core/pool", "internal/core/reservation", "internal/core/tagged"}, std: pure},
	{of: "internal/audit", only: []string{"", "internal/core", "internal/core/command"}},
	{of: "internal/engine/replica", only: append([]string{"", "internal/core", "internal/core/access", "internal/wire", "internal/engine"}, raft...), std: append(pure, "encoding/json", "log/slog")},
	{of: "internal/engine/storage", never: []string{"internal/engine/cluster", "internal/engine/peer"}},
	{of: "internal/engine/peer", never: []string{"internal/core", "internal/wire", "internal/engine"}},                                                                      // connections, no leases
	{of: "internal/access/credential", only: []string{"", "internal/core/access", "internal/socket", "github.com/coreos/go-oidc/v3/oidc", "github.com/go-jose/go-jose/v4"}}, // who asks, not what they may
	{of: "internal/engine", never: []string{"internal/door", "internal/node", "internal/config", "cmd"}},
	{of: "internal/door", never: []string{"internal/engine/", "internal/node", "internal/config", "cmd"}},
	{of: "internal/access", never: []string{"internal/door", "internal/engine/", "internal/node", "internal/config", "cmd"}},
	{of: "internal/telemetry", never: []string{"internal/door", "internal/engine", "internal/node", "cmd"}},
	{of: "internal/config", never: []string{"internal/door", "internal/engine", "internal/core", "internal/node", "cmd"}},
	{of: "internal/load", only: []string{"", "api/v1"}},                                                                                                                                              // it must see what any client sees
	{of: "internal/metric", only: []string{"github.com/prometheus/client_golang/prometheus"}},                                                                                                        // names, no figures
	{of: "internal/resp", alone: true, only: []string{}},                                                                                                                                             // a protocol, for both of its ends
	{of: "internal/resp/server", only: []string{"internal/limit", "internal/resp", "internal/metric", "internal/socket", "github.com/prometheus/client_golang/prometheus", "golang.org/x/sys/unix"}}, // connections, no leases
	{of: "internal/resp/pipeline", only: []string{"internal/limit", "internal/resp"}},
	{of: "internal/resp/words", only: []string{"internal/resp"}},
	{of: "internal/listen", only: []string{"", "internal/limit", "internal/metric", "internal/socket", "github.com/prometheus/client_golang/prometheus"}}, // connections, no leases
	{of: "internal/certificate", only: []string{}},                                                                                                        // files and keys, no leases
	{of: "internal/limit", only: []string{}},                         // time, no leases
	{of: "internal/socket", only: []string{"golang.org/x/sys/unix"}}, // connections, no leases
	{of: "internal/redial", only: []string{}},                        // connections, no leases
	{of: "internal/tokenfile", only: []string{""}},
	{of: "internal/id", only: []string{}},                                                    // text, no leases
	{of: "internal/child", only: []string{"golang.org/x/sys/unix", "golang.org/x/term"}},     // processes and clocks, no leases
	{of: "internal/tfstate", only: []string{"", "api/v1"}},                                   // the format, for the door and who asks it
	{of: "internal/azureblob", only: []string{"", "internal/azureaccount", "internal/core"}}, // how blobs are kept, for both doors
	{of: "internal/azureaccount", only: []string{}},                                          // files and names, for the door and the command line
	{of: "web", only: []string{}},                                                            // files, and no idea what is in them
	{of: "internal/demo", only: []string{"", "api/v1", "client"}},                            // its actors are clients like any other
	{of: "internal/sim", never: []string{"internal/door", "internal/node", "internal/config", "cmd"}},
	{of: "internal/trace", only: []string{"", "internal/core"}}, // it drives the core and nothing else
	{of: "internal/peer", only: []string{"test/process"}},       // every store's tests import it: no client library
	{of: "internal/flatjson", only: []string{"internal/resp"}},
	{of: "internal/eventstream", only: []string{}},
	{of: "api/v1/pools", only: []string{"", "api/v1"}},
	{of: "api/v1/reports", only: []string{"", "api/v1"}},
	{of: "internal/report", only: []string{"", "api/v1", "api/v1/reports"}}, // sums and texts, for the door and the command line
	{of: "api/v1/doors", only: []string{"", "api/v1"}},
	{of: "api/v1/reservations", only: []string{"", "api/v1"}},
	{of: "api/v1/kinds", only: []string{"", "api/v1"}},
	{of: "api/v1/tasks", only: []string{"", "api/v1"}},
	{of: "api/v1", alone: true, only: []string{"", "internal/backoff", "internal/eventstream", "internal/flatjson", "internal/limit", "internal/redial", "internal/resp", "internal/resp/pipeline", "internal/resp/words", "internal/tokenfile"}},
	{of: "client", only: []string{"", "api/v1", "fence", "internal/id", "internal/limit", "store", "store/server"}}, // users get nothing else with it
	{of: "store", alone: true, only: []string{"", "golang.org/x/sys/unix"}},
	{of: "store/server", only: []string{"", "api/v1", "api/v1/kinds", "api/v1/tasks", "store"}},
	{of: "store/memory", only: []string{"", "store", "internal/core", "internal/engine", "internal/engine/memory"}},
	{of: "store/storetest", only: []string{"", "store", "client", "fence"}}, // others run it on their own stores
	{of: "store", never: []string{"internal/door", "internal/engine/cluster", "internal/engine/replica", "internal/engine/storage", "internal/node", "internal/config", "internal/cli", "cmd"}},
	{of: "fence", only: append([]string{"", "fence"}, grpc...)},

	// The command line asks a server, or has node start one.
	{of: "cmd", never: []string{"internal/door", "internal/engine", "internal/core"}},
	{of: "internal/cli", never: []string{"internal/door", "internal/core", "cmd"}},
	{of: "internal/tui", never: []string{"internal/door", "internal/engine", "internal/node", "cmd"}},
	{of: "internal/doctor", never: []string{"internal/door", "internal/engine", "internal/node", "cmd"}},
	{of: "internal/statediff", only: []string{""}}, // two texts in, the differences out

	{of: "leasetest", never: []string{"internal/engine/cluster", "internal/engine/replica", "internal/engine/storage", "internal/node", "internal/config", "cmd"}},
}

// A file is one Go source file of ours.
type file struct {
	dir, name string
	set       *token.FileSet
	*ast.File
}

// contract is what only tests import: it opens a door on an engine.
const contract = "internal/door/doortest"

func (f file) test() bool { return strings.HasSuffix(f.name, "_test.go") || f.dir == contract }

// ofCore reports whether a file belongs to the core, or to a subject of it.
func (f file) ofCore() bool {
	return f.dir == "internal/core" || strings.HasPrefix(f.dir, "internal/core/")
}

func (f file) imports() (paths []string) {
	for _, i := range f.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	return paths
}

const root = "../.."

// sources returns the files of the whole tree.
func sources(t *testing.T) []file {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files were found: the walk is wrong", len(files))
	}
	return files
}

// parsed reads the tree once for all tests.
var parsed = sync.OnceValues(func() (files []file, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != root || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		files = append(files, file{path.Dir(filepath.ToSlash(rel)), path.Base(name), set, tree})
		return err
	})
	return files, err
})

func TestImportsPointInward(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() {
			continue
		}
		for _, imported := range f.imports() {
			for _, r := range rules {
				if r.covers(f.dir) && !r.allows(imported) {
					t.Errorf("%s/%s imports %s, which it must not", f.dir, f.name, imported)
				}
			}
		}
	}
}

func (r rule) covers(dir string) bool {
	if r.of == "" {
		return dir == "."
	}
	return dir == r.of || !r.alone && strings.HasPrefix(dir, r.of+"/")
}

func (r rule) allows(imported string) bool {
	ours, own := strings.CutPrefix(imported, module)
	ours = strings.TrimPrefix(ours, "/")
	standard := !own && !strings.Contains(strings.Split(imported, "/")[0], ".")
	if standard {
		return r.std == nil || slices.Contains(r.std, imported)
	}
	if r.only != nil {
		return slices.Contains(r.only, imported) || own && slices.Contains(r.only, ours)
	}
	return !own || !slices.ContainsFunc(r.never, func(never string) bool {
		return ours == never || strings.HasPrefix(ours, strings.TrimSuffix(never, "/")+"/")
	})
}

func TestRulesCanBeBroken(t *testing.T) {
	for _, c := range []struct {
		dir, imported string
		want          bool
	}{
		{"internal/core", "os", false},
		{"internal/core", "time", true},
		{"internal/core", module, true},
		{"internal/core", module + "/internal/wire", false},
		{"internal/core", "go.etcd.io/raft/v3", false},
		{"internal/core", module + "/internal/core/command", true},
		{"internal/core/command", module + "/internal/core", false},
		{"internal/core/command", module + "/internal/core/internal/kernel", false},
		{"internal/core", module + "/internal/core/internal/kernel", true},
		{"internal/core/internal/kernel", module + "/internal/core", false},
		{"internal/core/internal/kernel", module + "/internal/core/internal/area", false},
		{"internal/core/record", module + "/internal/core/command", false},
		{"internal/core/record", "os", false},
		{"internal/door/native", module + "/internal/engine", true},
		{"internal/door/native", module + "/internal/engine/cluster", false},
		{"internal/door/native", "net/http", true},
		{"internal/engine/cluster", module + "/internal/door/native", false},
		{"cmd/leasehold", module + "/internal/door/terraform", false},
		{"internal/cli/state", module + "/internal/door/terraform", false},
		{"internal/cli/state", module + "/internal/tfstate", true},
		{"internal/engine/replica", "go.etcd.io/raft/v3", true},
		{"internal/engine/replica", "os", false},
		{"internal/engine/replica", "sync", false},
		{"internal/engine/replica", module + "/internal/engine/storage", false},
		{"internal/engine/storage", module + "/internal/engine/replica", true},
		{"internal/engine/storage", module + "/internal/engine/cluster", false},
		{"internal/engine/peer", module + "/internal/engine/replica", false},
		{".", "os", false},
		{"api/v1", module + "/internal/core", false},
		{"internal/load", module + "/api/v1", true},
		{"internal/load", module + "/internal/engine", false},
		{"client", module + "/api/v1", true},
		{"client", module + "/internal/core", false},
		{"client", "github.com/prometheus/client_golang/prometheus", false},
		{"fence/fencegrpc", "google.golang.org/grpc", true},
		{"fence", module + "/client", false},
		{"leasetest", module + "/internal/engine/memory", true},
		{"leasetest", module + "/internal/engine/cluster", false},
	} {
		allowed := true
		for _, r := range rules {
			allowed = allowed && (!r.covers(c.dir) || r.allows(c.imported))
		}
		if allowed != c.want {
			t.Errorf("%s imports %s: allowed is %v", c.dir, c.imported, allowed)
		}
	}
}

// What a user of fence gets is the dictionary; gRPC comes only with fence/fencegrpc.
func TestFenceIsLight(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || f.dir != "fence" {
			continue
		}
		for _, imported := range f.imports() {
			if slices.Contains(grpc, imported) {
				t.Errorf("%s/%s imports %s, which belongs in fence/fencegrpc", f.dir, f.name, imported)
			}
		}
	}
}

// A door must know no other door: what two of them share belongs in the core, the
// engine or a package of its own.
func TestDoorsDoNotKnowEachOther(t *testing.T) {
	for _, f := range sources(t) {
		door, ok := strings.CutPrefix(f.dir, "internal/door/")
		if !ok || f.test() {
			continue
		}
		for _, imported := range f.imports() {
			other, ok := strings.CutPrefix(imported, module+"/internal/door/")
			if ok && strings.Split(other, "/")[0] != strings.Split(door, "/")[0] {
				t.Errorf("%s/%s imports the door %s", f.dir, f.name, other)
			}
			if imported == module+"/internal/listen" && !strings.HasPrefix(door, "doortest") {
				t.Errorf("%s/%s imports internal/listen: what a door needs of a port is in internal/door", f.dir, f.name)
			}
		}
	}
}

// The contract of doors belongs to tests, and to no program.
func TestContractIsForTests(t *testing.T) {
	for _, f := range sources(t) {
		if !f.test() && slices.Contains(f.imports(), module+"/"+contract) {
			t.Errorf("%s/%s imports %s, which is for tests alone", f.dir, f.name, contract)
		}
	}
}

// What an engine can do beside its contract, a door.Backend says. A door that asked by itself
// would look past what stands between the two.
func TestDoorsAssertNothingOfEngines(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || !strings.HasPrefix(f.dir, "internal/door/") {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			assertion, ok := n.(*ast.TypeAssertExpr)
			if !ok {
				return true
			}
			if s, ok := assertion.Type.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "engine" {
					t.Errorf("%s: engine.%s is asked for by a type assertion", f.set.Position(n.Pos()), s.Sel.Name)
				}
			}
			return true
		})
	}
}

// The whole family, since time.Since reads the clock too.
var clockReaders = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// clockless are the packages, beside those of the core, that are given the time and start no
// goroutine.
var clockless = []string{".", "internal/wire", "internal/engine/replica"}

func TestCoreReadsNoClock(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || !f.ofCore() && !slices.Contains(clockless, f.dir) {
			continue
		}
		for _, i := range f.Imports {
			if i.Name != nil {
				t.Errorf("%s/%s renames %s: this test could not see what it is used for", f.dir, f.name, i.Path.Value)
			}
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clockReaders, n.Sel.Name) {
					t.Errorf("%s: time.%s reads a clock", f.set.Position(n.Pos()), n.Sel.Name)
				}
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine", f.set.Position(n.Pos()))
			}
			return true
		})
	}
}

// mapped are the files of the core that may have maps: checks, whose order decides nothing, and a set that is never
// ranged over.
var mapped = []string{"check.go", "invariants.go", "snapshot.go", "names.go"}

// Map iteration order differs from node to node.
func TestCoreRangesOverNoMap(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || !f.ofCore() {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if m, ok := n.(*ast.MapType); ok && !slices.Contains(mapped, f.name) {
				t.Errorf("%s: a map in the core; what ranges over it is not deterministic", f.set.Position(m.Pos()))
			}
			return true
		})
	}
}

// Metrics are named in internal/metric alone, from which the documentation is checked.
func TestMetricsAreNamedInOnePlace(t *testing.T) {
	for _, f := range sources(t) {
		// The table of fence and the cookie of doors have such names.
		if f.test() || f.dir == "internal/metric" || f.dir == "fence" || f.path() == "internal/door/cookie.go" {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(l.Value, `"leasehold_`) {
				t.Errorf("%s: %s belongs in internal/metric/names.go", f.set.Position(l.Pos()), l.Value)
			}
			return true
		})
	}
}

// Doors follow events by engine.Watch alone: what a watch promises is written once.
func TestDoorsWatchByTheEngine(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || !strings.HasPrefix(f.dir, "internal/door") {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Feed" {
				t.Errorf("%s: a door uses the feed itself: use engine.Watch or engine.Acquire", f.set.Position(s.Pos()))
			}
			return true
		})
	}
}

func TestNamesSayWhatIsInside(t *testing.T) {
	drawers := []string{"util", "utils", "common", "helpers", "helper", "types", "manager", "misc", "base", "shared"}
	for _, f := range sources(t) {
		if slices.Contains(drawers, path.Base(f.dir)) {
			t.Errorf("%s: a drawer, not a package", f.dir)
		}
		stem := strings.TrimSuffix(strings.TrimSuffix(f.name, ".go"), "_test")
		if strings.HasSuffix(stem, "_impl") || slices.Contains(drawers, stem) {
			t.Errorf("%s/%s: a drawer, not a file", f.dir, f.name)
		}
	}
}

// The words of other systems live only inside their doors. Owner and revoke are ours where they are about principals.
var foreign = []string{"Lock", "Unlock", "Heartbeat", "KeepAlive", "Epoch", "Sequencer"}

func TestExportedNamesUseOurWords(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || f.dir != "." && !f.ofCore() && f.dir != "api/v1" {
			continue
		}
		for _, name := range exported(f.File) {
			for _, word := range foreign {
				if strings.Contains(name.Name, word) {
					t.Errorf("%s: %s says %q; see docs/glossary.md for our word", f.set.Position(name.Pos()), name.Name, word)
				}
			}
		}
	}
}

func exported(f *ast.File) (names []*ast.Ident) {
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.IsExported() && id.Obj != nil {
			names = append(names, id)
		}
		return true
	})
	return names
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	said := map[string]bool{}
	for _, f := range sources(t) {
		if !f.test() && !strings.HasPrefix(f.dir, "test/") {
			said[f.dir] = said[f.dir] || f.Doc != nil
		}
	}
	for dir, ok := range said {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

func TestEveryExportedNameIsExplained(t *testing.T) {
	for _, f := range sources(t) {
		if f.test() || f.Name.Name == "main" {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && !conventional(d) {
					t.Errorf("%s: %s has no comment", f.set.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				explained(t, f, d)
			}
		}
	}
}

// conventional tells methods whose meaning everybody knows, or that the interface
// explains which they belong to.
func conventional(d *ast.FuncDecl) bool {
	return d.Recv != nil
}

func explained(t *testing.T, f file, d *ast.GenDecl) {
	t.Helper()
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
				t.Errorf("%s: %s has no comment", f.set.Position(s.Pos()), s.Name.Name)
			}
		case *ast.ValueSpec:
			if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				t.Errorf("%s: %s has no comment", f.set.Position(s.Pos()), s.Names[0].Name)
			}
		}
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A package that names a type which leads to the core's State compiles every tree in it again, which takes longer than all
// the rest of the package: see core.View. These have to.
func TestFewNameWhatLeadsToTheState(t *testing.T) {
	may := []string{"internal/wire", "internal/engine/replica", "internal/engine/storage", "internal/engine/cluster", "internal/sim", "internal/trace"}
	leads := []string{"core.State", "core.New", "core.NewAt", "replica.Node", "replica.Snapshot", "storage.Recovered", "storage.Disk",
		"cluster.Engine", "cluster.Start"}
	for _, f := range sources(t) {
		if f.test() || slices.Contains(may, f.dir) || strings.HasPrefix(f.dir, "internal/sim/") {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(leads, typeName(s)) {
				t.Errorf("%s names %s: name core.View, core.Machine or cluster.Server", f.set.Position(n.Pos()), typeName(s))
			}
			return true
		})
	}
}
