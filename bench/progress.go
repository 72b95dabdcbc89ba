//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress tells how far it is: in one line that changes on a terminal, else in a line for each step.
type progress struct {
	to       io.Writer
	terminal bool
	began    time.Time

	mu       sync.Mutex // guards what follows
	done, of int
}

func newProgress(to io.Writer) *progress {
	f, ok := to.(*os.File)
	return &progress{to: to, terminal: ok && term.IsTerminal(int(f.Fd())), began: time.Now()}
}

// expect says how many steps there will be.
func (p *progress) expect(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of += n
}

// step says that the next step begins.
func (p *progress) step(format string, args ...any) {
	p.mu.Lock()
	p.done++
	p.mu.Unlock()
	p.say(format, args...)
}

// say tells what is going on in a step.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("%4s  %d of %d  ", time.Since(p.began).Truncate(time.Second), min(p.done, p.of), p.of)
	line += fmt.Sprintf(format, args...)
	if p.terminal {
		fmt.Fprintf(p.to, "\r\033[K%.150s", line)
		return
	}
	fmt.Fprintln(p.to, line)
}

// end leaves the line.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.to, "\r\033[K")
	}
}
