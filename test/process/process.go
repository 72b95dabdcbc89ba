//go:build linux

package process

import (
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"syscall"
	"testing"
)

// A Process is one run of a binary. All methods may be called at any time, by anybody.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start runs a binary without any variables of this environment. What it writes to standard
// error goes to said. The kernel kills it when the test's own process ends.
func Start(said io.Writer, binary string, args ...string) (*Process, error) {
	cmd := exec.Command(binary, args...)
	// A LEASEHOLD_ variable of the person who runs the tests would change what the server does.
	cmd.Env = []string{}
	cmd.Stderr = said
	return StartCommand(cmd)
}

// StartCommand runs a prepared command, with the environment that it names. The kernel kills it
// when the test's own process ends.
func StartCommand(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // Code says how it ended
		close(p.ended)
	}()
	return p, nil
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Runs reports whether there is a process and it has not ended.
func (p *Process) Runs() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Pid returns the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal. A process that has ended gets none.
func (p *Process) Signal(s syscall.Signal) {
	if p.Runs() {
		_ = p.cmd.Process.Signal(s) // it may end in this moment
	}
}

// End sends a signal that ends the process, and returns its exit code.
func (p *Process) End(s syscall.Signal) int {
	p.Signal(s)
	return p.Code()
}

// Code waits until the process has ended, and returns its exit code; -1 if a signal ended it.
func (p *Process) Code() int {
	<-p.ended
	return p.cmd.ProcessState.ExitCode()
}

// Reserve returns an address at which nobody else will listen. Between its close and the server's
// start another test could take a port; so it uses a loopback address of its own, out of sixteen
// million.
func Reserve(t testing.TB) string {
	t.Helper()
	for {
		ip := net.IPv4(127, byte(1+rand.N(254)), byte(rand.N(256)), byte(1+rand.N(254)))
		listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
		if err != nil {
			continue
		}
		address := listener.Addr().String()
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
}
