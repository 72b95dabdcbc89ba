//go:build !linux

package child

import "syscall"

// dieWithParent: no other system can promise it.
func dieWithParent(*syscall.SysProcAttr) {}

func adopt() {}
