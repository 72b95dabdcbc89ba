//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/leasehold/leasehold/bench/report"
)

// machine describes where the benchmark runs.
func machine() report.Machine {
	m := report.Machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), CPU: "unknown processor"}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(b), &m.Load)
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
			}
		}
	}
	return m
}
