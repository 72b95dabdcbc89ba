package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// An app is the program with everything that it touches, so that a test can put
// something else in its place.
type app struct {
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	environ []string
	now     func() time.Time

	// terminal tells whether a person sits at the other end of a stream; width is
	// how many columns there are and height how many lines, 0 if nobody can tell.
	terminal func(stream any) bool
	width    func() int
	height   func() int

	version v1.Version  // of this program
	args    []string    // as they were given
	ignored []os.Signal // when it was started
	output  string      // of the flag -o
	quiet   bool
}

func newApp() *app {
	return &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), now: time.Now,
		terminal: isTerminal, width: terminalWidth, height: terminalHeight, output: formatTable,
	}
}

// run does what the arguments say, with the commands of a root that is made when the
// arguments are known, and returns the exit code.
func (a *app) run(args []string, makeRoot func() *cobra.Command) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(a.stderr, "leasehold: this is a bug: %v\nPlease report it with the command that you gave and these lines:\n\n%s", p, debug.Stack())
			code = exitBug
		}
	}()
	a.args, a.ignored = args, ignored()
	ctx, stop := untilSignal(context.Background())
	defer stop()
	root := makeRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	err = interrupted(ctx, err)
	a.report(err)
	return exitCode(err)
}

// untilSignal returns a context that ends, with a signalError as its cause, at the
// first signal that asks the program to stop. The second one is not ours any more
// and ends it at once.
func untilSignal(parent context.Context) (context.Context, func()) {
	return untilSignalIf(parent, func() bool { return true }, syscall.SIGINT, syscall.SIGTERM)
}

// untilSignalIf is the same for other signals, and for those moments in which they are
// meant for us.
func untilSignalIf(parent context.Context, meant func() bool, wanted ...os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	for _, s := range wanted {
		signal.Notify(signals, s) // one by one: none would mean all
	}
	go func() {
		for {
			select {
			case s := <-signals:
				if !meant() {
					continue
				}
				signal.Stop(signals)
				cancel(signalError(s.(syscall.Signal)))
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// ignored is what whoever started the program told it to ignore: SIGHUP under nohup, ctrl-C
// in the background of a script.
func ignored() (list []os.Signal) {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func terminalWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func terminalHeight() int {
	_, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return height
}

// getenv reads the environment that the app was given.
func (a *app) getenv(name string) string {
	value := ""
	for _, entry := range a.environ {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			value = rest
		}
	}
	return value
}

// say talks to the person, never to a program: it is left out with --quiet and
// beside JSON, and may change at any time.
func (a *app) say(format string, args ...any) {
	if a.quiet || a.output == formatJSON || a.output == formatLines {
		return
	}
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		fmt.Fprintln(a.stderr, printable(line))
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
