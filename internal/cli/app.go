package cli

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
	"github.com/leasehold/leasehold/internal/config"
)

// An App is the program with everything that it touches, so that a test can put
// something else in its place.
type App struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string
	Now     func() time.Time

	// Terminal reports whether a person sits at the other end of a stream; width is
	// how many columns there are and height how many lines, 0 if nobody can tell.
	Terminal func(stream any) bool
	Width    func() int
	Height   func() int

	Version v1.Version    // of this program
	Doors   []config.Door // whose settings a server has, beside its own
	Args    []string      // as they were given
	Ignored []os.Signal   // when it was started
	Output  string        // of the flag -o
	Quiet   bool
}

// New returns the program as users start it.
func New() *App {
	return &App{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Now: time.Now,
		Terminal: isTerminal, Width: terminalWidth, Height: terminalHeight, Output: FormatTable,
	}
}

// Run does what the arguments say, and returns the exit code. The root is made by a function
// because some commands look at the arguments when they define their flags.
func (a *App) Run(args []string, makeRoot func() *cobra.Command) (code int) {
	// A panic of a command becomes an exit code of its own, so that a script does not take it for
	// "held" or "lost".
	defer func() {
		if p := recover(); p != nil {
			code = ExitBug
			a.reportBug(p, debug.Stack())
		}
	}()
	a.Args, a.Ignored = args, ignored()
	ctx, stop := untilSignal(context.Background())
	defer stop()
	root := makeRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	err = interrupted(ctx, err)
	a.Report(err)
	return ExitCode(err)
}

func (a *App) reportBug(p any, stack []byte) {
	if isJSON(a.Output) {
		a.reportJSON(fmt.Errorf("this is a bug: %v; please report it with the command that you gave and this stack: %s",
			p, stack))
		return
	}
	fmt.Fprintf(a.Stderr, "leasehold: this is a bug: %v\nPlease report it with the command that you gave and "+
		"these lines:\n\n%s", p, stack)
}

// untilSignal returns a context that ends, with a signalError as its cause, at the
// first signal that asks the program to stop. The second one is no longer caught
// and ends it at once.
func untilSignal(parent context.Context) (context.Context, func()) {
	return UntilSignalIf(parent, func() bool { return true }, syscall.SIGINT, syscall.SIGTERM)
}

// UntilSignalIf is like untilSignal for other signals, and counts them only while meant returns
// true.
func UntilSignalIf(parent context.Context, meant func() bool, wanted ...os.Signal) (context.Context, func()) {
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
				cancel(SignalError(s.(syscall.Signal)))
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

// ignored returns the signals that the program was started to ignore: SIGHUP under nohup, ctrl-C in
// the background of a script.
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

// Getenv reads the environment that the app was given.
func (a *App) Getenv(name string) string {
	value := ""
	for _, entry := range a.Environ {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			value = rest
		}
	}
	return value
}

// Say talks to the person, never to a program: it prints nothing with --quiet and beside JSON, and
// its text may change at any time.
func (a *App) Say(format string, args ...any) {
	if a.Quiet || isJSON(a.Output) {
		return
	}
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		fmt.Fprintln(a.Stderr, Printable(line))
	}
}

// Pause waits for a while, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
