package pool

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/pools"
)

func TestSample(t *testing.T) {
	const table = "GPU-1, NVIDIA H100 80GB HBM3, 81559, 97, 40000\nGPU-2, NVIDIA A100-SXM4-40GB, 40960, [N/A], [N/A]\nGPU-3, Tesla T4, 15360, 0, 0\n"
	const list = "GPU 1: NVIDIA A100 (UUID: GPU-2)\n  MIG 3g.20gb     Device  0: (UUID: MIG-a)\n"
	const apps = "GPU-1, 17, /usr/bin/python3 train.py, fast\nGPU-1, 18, python\n[Not Found]\nGPU-9, 5, x\nGPU-3, [N/A], y\n"
	cards, err := parseSample(table, instances(list))
	if err != nil || len(cards) != 3 {
		t.Fatalf("%+v, %v", cards, err)
	}
	addProcesses(cards, apps)
	if c := cards[0]; c.Name != "GPU-1" || *c.percent != 97 || c.memory != 40000 || !reflect.DeepEqual(c.processes, []process{{17, "python3"}, {18, "python"}}) {
		t.Errorf("the first card is %+v", c)
	}
	if c := cards[1]; c.Name != "MIG-a" || c.percent != nil || c.memory != 0 {
		t.Errorf("the instance is %+v", c)
	}
	if c := cards[2]; *c.percent != 0 || c.processes != nil {
		t.Errorf("the last card is %+v", c)
	}
	if _, err := parseSample("Failed to initialize NVML: Driver/library version mismatch\n", nil); err == nil {
		t.Error("what is no table was read")
	}
}

// FuzzSample reads anything that nvidia-smi may print, and what comes of it fits into a report.
func FuzzSample(f *testing.F) {
	f.Add("GPU-1, NVIDIA H100, 81559, 97, 40000\n", "GPU 0: H100 (UUID: GPU-1)\n", "GPU-1, 17, python\n")
	f.Add("GPU-1, A, [N/A], [N/A], [N/A]\n", "  MIG 1g Device 0: (UUID: MIG-a)\nGPU", ", , \n")
	f.Add("No devices were found\n", "", "")
	f.Fuzz(func(t *testing.T, table, list, apps string) {
		cards, err := parseSample(table, instances(list))
		if err != nil {
			return
		}
		addProcesses(cards, apps)
		for _, c := range cards {
			if c.percent != nil && (*c.percent < 0 || *c.percent > 100) || c.memory < 0 {
				t.Errorf("%q is read as %+v", table, c)
			}
			for _, p := range c.processes {
				if p.pid < 1 || len(short(p.name)) > leasehold.MaxProcessText {
					t.Errorf("%q is read as %+v", apps, p)
				}
			}
		}
	})
}

// A process belongs to the lease of its environment or of its ancestors', or to the one that adopted it.
func TestProcessesBelongToLeases(t *testing.T) {
	root := procfs(t.TempDir())
	put := func(pid, parent int, environ ...string) {
		dir := filepath.Join(string(root), strconv.Itoa(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"environ": strings.Join(environ, "\x00"), "stat": strconv.Itoa(pid) + " (a) b) S " + strconv.Itoa(parent) + " 1", "comm": "python\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(string(root), "self"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(10, 1, "HOME=/", "LEASEHOLD_HELD=other db\nid1 gpu")
	put(11, 10)
	put(12, 11, "LEASEHOLD_HELD=id9 gpu/other")
	put(20, 1, "LEASEHOLD_HELD=id2 gpu", "LEASEHOLD_ADOPTS=30,31")
	put(30, 1)
	put(32, 30)
	put(40, 1, "PATH=/bin")
	var all []process
	for _, pid := range []int{10, 11, 12, 32, 40, 99} {
		all = append(all, process{pid: pid})
	}
	got := root.describe(all, "gpu", root.adopted("gpu"))
	var leases []string
	for _, p := range got {
		leases = append(leases, strconv.Itoa(p.PID)+":"+p.Lease)
	}
	if want := []string{"40:", "10:id1", "32:id2"}; !reflect.DeepEqual(leases, want) {
		t.Errorf("%v, want %v", leases, want)
	}
	if none := procfs(t.TempDir()).describe(all, "gpu", nil); none != nil {
		t.Errorf("where no process can be looked at there are %v", none)
	}
	var many []process
	for range 2 * leasehold.MaxUnitProcesses {
		many = append(many, process{pid: 40})
	}
	if got := root.describe(many, "gpu", nil); len(got) != leasehold.MaxUnitProcesses || got[0] != (pools.Process{PID: 40, User: got[0].User, Name: "python"}) {
		t.Errorf("%d processes: %v", len(got), got[0])
	}
}
