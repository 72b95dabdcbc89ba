package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// The linker sets these, as the Makefile tells it to.
var version, commit string

// buildVersion is what the linker was told, or else what the Go toolchain noted: that
// is all there is after "go install".
func buildVersion() v1.Version {
	v := v1.Version{Version: version, Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = cmp.Or(v.Commit, s.Value[:min(12, len(s.Value))])
			}
		}
	}
	v.Version, v.Commit = cmp.Or(v.Version, "(devel)"), cmp.Or(v.Commit, "unknown")
	return v
}
