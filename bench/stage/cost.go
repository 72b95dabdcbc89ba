//go:build linux

package stage

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// CPU returns the processor time that processes have used in those of their threads that there are. The
// kernel has it in nanoseconds there; what it says about whole processes is rounded down to 10 ms, which
// is all that one of many processes uses in a short time.
func CPU(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, name := range threads {
			b, _ := os.ReadFile(name) // it may have ended
			used, _, _ := bytes.Cut(b, []byte(" "))
			n, _ := strconv.ParseInt(string(used), 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}

// OwnCPU returns the processor time that this process has used.
func OwnCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Resident returns the bytes of memory that processes have in use, without what they share.
func Resident(pids []int) int64 {
	var sum int64
	for i, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		fields := bytes.Fields(b)
		if err != nil || len(fields) < 3 {
			continue
		}
		pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
		if i > 0 { // the first one's counts once
			pages -= shared
		}
		sum += pages * int64(os.Getpagesize())
	}
	return sum
}

// SyncTime returns how long the disk takes to make 4 KiB at the end of a file durable: the median of n.
func SyncTime(dir string, n int) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	times := make([]time.Duration, n)
	for i := range times {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[n/2], nil
}

// Connections returns how many connections to an address there are on this machine.
func Connections(address string) (n int) {
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host).To4()
	number, _ := strconv.Atoi(port)
	b, readErr := os.ReadFile("/proc/net/tcp")
	if err != nil || ip == nil || readErr != nil {
		return 0
	}
	local := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], number) // as the kernel writes it
	for line := range bytes.Lines(b) {
		fields := bytes.Fields(line)
		if len(fields) > 3 && string(fields[1]) == local && string(fields[3]) == "01" {
			n++
		}
	}
	return n
}
