// Package install tests the modules of this tree as others get them: from a proxy, outside of the
// workspace.
package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	tree    = "github.com/leasehold/leasehold"
	command = tree + "/cmd/leasehold"
	maxSize = 80 << 20 // bytes of the command, without debugging symbols
)

// A machine has Go, and no clone of this repository. What the tree depends on comes from the module
// cache of the machine that the test runs on, or else from the ordinary proxy.
type machine struct {
	*testing.T
	bin string
	env []string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(out))
	bin := t.TempDir()
	return machine{t, bin, append(os.Environ(),
		"GOWORK=off",
		"GOPROXY=file://"+proxy(t)+",file://"+filepath.ToSlash(known[0])+"/cache/download,"+known[1],
		"GOSUMDB=off", // it cannot know ours; the others are in go.sum
		"GOMODCACHE="+t.TempDir(),
		// Paths are trimmed, so that what was compiled for one folder need not be for the next.
		"GOFLAGS=-mod=mod -modcacherw -trimpath",
		"GOBIN="+bin, "CGO_ENABLED=0", // as make build has it
	)}
}

func (m machine) run(dir, name string, args ...string) string {
	m.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, m.env
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		m.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &complaint)
	}
	return string(out)
}

func TestCommandIsInstalledFromAProxy(t *testing.T) {
	m := newMachine(t)
	m.run(t.TempDir(), "go", "install", "-ldflags=-s -w", command+"@"+version)
	binary := filepath.Join(m.bin, "leasehold")
	if said := m.run(t.TempDir(), binary, "version"); !strings.Contains(said, "leasehold "+version) {
		t.Errorf("leasehold version says %q, and it is %s", said, version)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the command has %d MB", info.Size()>>20)
	if info.Size() > maxSize {
		t.Errorf("the command has %d bytes, and may have %d", info.Size(), maxSize)
	}
}

// systems are those that a program may use leases on, by what it links for one of them.
var systems = map[string]string{
	"a Leasehold server": tree + "/internal/node",
	"Azure":              "github.com/Azure",
	"Consul":             "github.com/hashicorp",
	"etcd":               "go.etcd.io",
	"gRPC":               "google.golang.org/grpc",
	"Kubernetes":         "k8s.io",
	"PostgreSQL":         "github.com/jackc",
	"Prometheus":         "github.com/prometheus",
	"Redis":              "github.com/redis",
	"ZooKeeper":          "github.com/go-zookeeper",
}

func TestProgramLinksWhatItImports(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct {
		imports string
		module  string   // in which it is, if that is not the root
		links   []string // some of systems
	}{
		{imports: tree},
		{imports: tree + "/client"},
		{imports: tree + "/fence"},
		{imports: tree + "/fence/fencegrpc", links: []string{"gRPC"}},
		{imports: tree + "/store/memory"},
		{imports: tree + "/store/redis", module: tree + "/store/redis", links: []string{"Redis"}},
		{imports: tree + "/store/postgres", module: tree + "/store/postgres", links: []string{"PostgreSQL"}},
		{imports: tree + "/store/etcd", module: tree + "/store/etcd", links: []string{"etcd", "gRPC"}},
		{imports: tree + "/store/consul", module: tree + "/store/consul", links: []string{"Consul"}},
		{imports: tree + "/store/kubernetes", module: tree + "/store/kubernetes"}, // plain HTTP
		{imports: tree + "/store/zookeeper", module: tree + "/store/zookeeper", links: []string{"ZooKeeper"}},
	} {
		t.Run(strings.TrimPrefix(c.imports, "github.com/leasehold/"), func(t *testing.T) {
			dir := t.TempDir()
			requires := "require " + tree + " " + version + "\n"
			if c.module != "" {
				requires += "require " + c.module + " " + version + "\n"
			}
			write(t, filepath.Join(dir, "go.mod"), "module example.com/job\n\ngo 1.26.0\n\n"+requires)
			write(t, filepath.Join(dir, "main.go"), "package main\n\nimport _ \""+c.imports+"\"\n\nfunc main() {}\n")
			m := machine{t, m.bin, m.env}
			links := strings.Fields(m.run(dir, "go", "list", "-deps", "."))
			if !slices.Contains(links, c.imports) {
				t.Fatalf("only %v is linked", links)
			}
			for system, prefix := range systems {
				i := slices.IndexFunc(links, func(p string) bool { return p == prefix || strings.HasPrefix(p, prefix+"/") })
				if linked := i >= 0; linked != slices.Contains(c.links, system) {
					t.Errorf("what %s needs is linked: %v; it should be: %v", system, linked, !linked)
				}
			}
		})
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
