package run

import (
	"io/fs"
	"syscall"
)

// ownedBy returns the user whose a file is; -1 if nobody can tell.
func ownedBy(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
