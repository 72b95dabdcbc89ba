package agent

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// How a file is locked. Locks are the kernel's: whatever becomes of a process, its locks are gone with it.
const (
	shared    = syscall.LOCK_SH
	exclusive = syscall.LOCK_EX
)

// lockFile locks a file, and waits for those who have it locked. The lock goes when the file is closed, or with the
// process.
func lockFile(ctx context.Context, path string, how int) (*os.File, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		file, err := tryLock(path, how)
		if err != nil || file != nil {
			return file, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, errors.New("another process has had " + path + " locked for too long")
		}
	}
}

// tryLock locks a file; nil if somebody else has it locked.
func tryLock(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ok, err := flock(file, how)
	if err != nil || !ok {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// flock locks an open file, or reports that somebody else has it.
func flock(file *os.File, how int) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return err == nil, err
		}
	}
}

// detach lets a process go on when the agent's terminal is closed or interrupted.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// alive reports whether there is a process with a number.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
