package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// procOf is what a kernel says of a process's clock. What is empty has no file.
type procOf struct {
	boot, space, children, offsets string
	noNamespaces                   bool
}

func (p procOf) name(t *testing.T) string {
	t.Helper()
	proc := t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(proc, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p.boot != "" {
		write("sys/kernel/random/boot_id", p.boot)
	}
	if p.offsets != "" {
		write("self/timens_offsets", p.offsets)
	}
	if !p.noNamespaces {
		write("self/ns/mnt", "")
	}
	for link, to := range map[string]string{"time": p.space, "time_for_children": p.children} {
		if to == "" {
			continue
		}
		if err := os.Symlink(to, filepath.Join(proc, "self/ns", link)); err != nil {
			t.Fatal(err)
		}
	}
	return clockName(proc)
}

// A clock has the name of another only if both count alike. The kernel gives the number of a time
// namespace that is gone to the next one: only the offsets differ then.
func TestClocksThatCountAlikeHaveOneName(t *testing.T) {
	const (
		boot  = "3a1c4a1e-77a3-4e5b-9a40-0f9d8a5e7b11\n"
		space = "time:[4026532200]"
		zero  = "monotonic           0         0\nboottime            0         0\n"
	)
	usual := procOf{boot: boot, space: space, children: space, offsets: zero}
	name := usual.name(t)
	if name == "" {
		t.Fatal("the usual clock has no name")
	}
	if again := usual.name(t); again != name {
		t.Errorf("the same clock is %q and %q", name, again)
	}
	old := procOf{boot: boot}
	if got := old.name(t); got == "" || got == name || got != old.name(t) {
		t.Errorf("the clock of a kernel without time namespaces is %q", got)
	}
	for what, p := range map[string]procOf{
		"another boot":      {boot: "c0ffee00-77a3-4e5b-9a40-0f9d8a5e7b11\n", space: space, children: space, offsets: zero},
		"another namespace": {boot: boot, space: "time:[4026532201]", children: "time:[4026532201]", offsets: zero},
		"other offsets":     {boot: boot, space: space, children: space, offsets: "monotonic 1000 0\nboottime 0 0\n"},
		"offsets by less than a second": {boot: boot, space: space, children: space,
			offsets: "monotonic 0 1000\nboottime 0 0\n"},
	} {
		if got := p.name(t); got == name || got == "" {
			t.Errorf("%s: the clock is %q", what, got)
		}
	}
	for what, p := range map[string]procOf{
		"no boot id":                       {space: space, children: space, offsets: zero},
		"an empty boot id":                 {boot: "\n", space: space, children: space, offsets: zero},
		"no offsets":                       {boot: boot, space: space, children: space},
		"the offsets of another namespace": {boot: boot, space: space, children: "time:[4026532201]", offsets: zero},
		"no link for children":             {boot: boot, space: space, offsets: zero},
		"the /proc of other processes":     {boot: boot, noNamespaces: true},
	} {
		if got := p.name(t); got != "" {
			t.Errorf("%s: the clock is %q, and should have no name", what, got)
		}
	}
}

// The clock of the machine that runs this test has one name as long as the test runs.
func TestTheSystemClockHasAName(t *testing.T) {
	if a, b := SystemClock().Boot(), SystemClock().Boot(); a != b {
		t.Errorf("the clock is %q, and then %q", a, b)
	}
}
