// Package testsignal lets tests send signals to what they start, however they were started themselves.
package testsignal

import (
	"os"
	"os/signal"
	"syscall"
)

// Heed makes processes that are started from now on heed SIGINT and SIGHUP. What a process ignores its children ignore
// as well, and nohup, or a script that runs something in the background, starts it so: a test that interrupts what it
// started would then wait for ever.
func Heed() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // a signal with a handler has none after exec
		}
	}
}
