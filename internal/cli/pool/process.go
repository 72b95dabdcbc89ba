package pool

import (
	"bytes"
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/config"
)

// Which lease a process runs under is told by its environment: run puts what it holds into LEASEHOLD_HELD, and
// children inherit that. A process that cleared its environment has ancestors that did not, up to run's command itself.
// What adopts a process has LEASEHOLD_ADOPTS beside it.

// A procfs is where the kernel of Linux shows processes.
type procfs string

// there reports whether processes can be looked at. Elsewhere nobody can tell whose they are.
func (root procfs) there() bool {
	_, err := os.Stat(filepath.Join(string(root), "self"))
	return err == nil
}

// read returns what the kernel says of a process in one of its files. What cannot be read is empty: the process may
// have ended, or be somebody else's.
func (root procfs) read(pid int, file string) []byte {
	text, _ := os.ReadFile(filepath.Join(string(root), strconv.Itoa(pid), file))
	return text
}

// variable returns a variable of the environment that a process was started with.
func (root procfs) variable(pid int, name string) string {
	for entry := range bytes.SplitSeq(root.read(pid, "environ"), []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// parent returns the parent of a process; 0 if it is gone. The name before it is in parentheses, and may have some.
func (root procfs) parent(pid int) int {
	stat := string(root.read(pid, "stat"))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	return max(0, number(fields[1]))
}

// maxAncestors is how far up a tree of processes is looked at.
const maxAncestors = 64

// leaseOf returns the lease on a pool that a process runs under; empty if there is none.
func (root procfs) leaseOf(pid int, pool string, adopted map[int]string) string {
	for range maxAncestors {
		if lease := adopted[pid]; lease != "" {
			return lease
		}
		if lease := heldLease(root.variable(pid, config.EnvHeld), pool); lease != "" {
			return lease
		}
		if pid = root.parent(pid); pid <= 1 {
			break
		}
	}
	return ""
}

// heldLease finds the lease on a resource in lines of an id and a name each.
func heldLease(lines, pool string) (lease string) {
	for line := range strings.Lines(lines) {
		if id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && name == pool {
			lease = id
		}
	}
	return lease
}

// adopted returns the leases that adopted processes on a pool, by the numbers of the processes.
func (root procfs) adopted(pool string) map[int]string {
	all := map[int]string{}
	entries, _ := os.ReadDir(string(root))
	for _, entry := range entries {
		pid := number(entry.Name())
		if pid < 1 {
			continue
		}
		adopts := root.variable(pid, config.EnvAdopts)
		if adopts == "" {
			continue
		}
		if lease := heldLease(root.variable(pid, config.EnvHeld), pool); lease != "" {
			for text := range strings.SplitSeq(adopts, ",") {
				all[number(text)] = lease
			}
		}
	}
	return all
}

// owner returns who runs a process, by name if it is known.
func (root procfs) owner(pid int) string {
	info, err := os.Stat(filepath.Join(string(root), strconv.Itoa(pid)))
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	id := strconv.Itoa(int(stat.Uid))
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// describe returns the processes on a card for a report: those without a lease first, and one of each lease, since
// there is room for few.
func (root procfs) describe(all []process, pool string, adopted map[int]string) (list []pools.Process) {
	if !root.there() {
		return nil
	}
	for _, p := range all {
		name := cmp.Or(p.name, strings.TrimSpace(string(root.read(p.pid, "comm"))))
		one := pools.Process{PID: p.pid, User: short(root.owner(p.pid)), Name: short(name),
			Lease: root.leaseOf(p.pid, pool, adopted)}
		if one.User == "" {
			continue // it has ended meanwhile
		}
		if one.Lease == "" || !slices.ContainsFunc(list, func(q pools.Process) bool { return q.Lease == one.Lease }) {
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(p, q pools.Process) int {
		return cmp.Or(cmp.Compare(min(len(p.Lease), 1), min(len(q.Lease), 1)), cmp.Compare(p.PID, q.PID))
	})
	return list[:min(len(list), leasehold.MaxUnitProcesses)]
}

// short cuts a text to what a report has room for.
func short(text string) string {
	text = strings.ToValidUTF8(text, "?")
	for len(text) > leasehold.MaxProcessText {
		text = strings.ToValidUTF8(text[:len(text)-1], "")
	}
	return text
}
