//go:build linux

package peer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// signalTree sends a signal to a process and to all that it started, and returns them. A process
// group would not do: PostgreSQL puts each of its processes into a group of its own.
func signalTree(pid int, sig syscall.Signal) []int {
	var sent []int
	for {
		before := len(sent)
		for _, p := range tree(pid) {
			if !slices.Contains(sent, p) {
				_ = syscall.Kill(p, sig)
				sent = append(sent, p)
			}
		}
		if len(sent) == before {
			return sent
		}
	}
}

// tree returns a process and its descendants, parents first.
func tree(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		if child, parent, _, ok := stat(name); ok {
			children[parent] = append(children[parent], child)
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// stat reads one line such as "42 (a name) S 7 …": id, name, state, parent.
func stat(name string) (pid, parent int, state byte, ok bool) {
	line, err := os.ReadFile(name)
	end := bytes.LastIndexByte(line, ')')
	if err != nil || end < 0 {
		return 0, 0, 0, false
	}
	fields := bytes.Fields(line[end+1:])
	pid, _ = strconv.Atoi(string(line[:bytes.IndexByte(line, ' ')]))
	parent, _ = strconv.Atoi(string(fields[1]))
	return pid, parent, fields[0][0], true
}

// awaitEnd waits until a killed process is gone, or is left over for a parent that never asks.
func awaitEnd(pid int) error {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if _, _, state, ok := stat(fmt.Sprintf("/proc/%d/stat", pid)); !ok || state == 'Z' || state == 'X' {
			return nil
		}
	}
	return fmt.Errorf("process %d was killed and is still there", pid)
}
