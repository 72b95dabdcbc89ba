//go:build !linux

package child

import "syscall"

// dieWithParent: no other system can promise it. The guard does it.
func dieWithParent(*syscall.SysProcAttr) {}

func adopt() {}
