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

	"github.com/leasehold/leasehold/internal/node"
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

	serve serverFunc
	check checkFunc
	// createTemp makes a file that gets its name later.
	createTemp func(dir, pattern string) (file, error)

	args    []string    // as they were given
	ignored []os.Signal // when it was started
	output  string      // of the flag -o
	quiet   bool
}

func newApp() *app {
	return &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), now: time.Now,
		terminal: isTerminal, width: terminalWidth, height: terminalHeight, serve: node.Run, check: checkData, createTemp: createTemp, output: formatTable,
	}
}

// run does what the arguments say and returns the exit code.
func (a *app) run(args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(a.stderr, "leasehold: this is a bug: %v\nPlease report it with the command that you gave and these lines:\n\n%s", p, debug.Stack())
			code = exitBug
		}
	}()
	a.args, a.ignored = args, ignored()
	ctx, stop := untilSignal(context.Background())
	defer stop()
	root := a.root()
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

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "leasehold",
		Short: "Time-bound, exclusive, fenced ownership of named resources",
		Long: `Leasehold grants leases: the right of one holder to a named resource until a
moment. Each grant carries a token that is larger than every one before it, so
that what the lease protects can turn away a holder that is late.

` + exitHelp(),
		Example: `  leasehold serve                                   # a server on 127.0.0.1:4653
  leasehold run prod/deploy -- ./deploy.sh          # waits, runs it, gives it back
  leasehold list                                    # who holds what, who waits`,
		Args:              cobra.ArbitraryArgs,
		RunE:              a.onlySubcommands,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "only data and errors: no confirmations, hints or warnings")
	root.AddGroup(
		&cobra.Group{ID: "hold", Title: "Hold something:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "define", Title: "Say what holds for resources:"},
		&cobra.Group{ID: "keep", Title: "Keep values:"},
		&cobra.Group{ID: "server", Title: "Run servers:"},
		&cobra.Group{ID: "other", Title: "Other:"},
	)
	group(root, "hold", a.runCommand(), a.electCommand(), a.acquireCommand(), a.renewCommand(), a.releaseCommand(), a.changeCommand(), a.breakCommand(), a.askCommand(), a.moveCommand(), a.acknowledgeCommand())
	group(root, "look", a.listCommand(), a.describeCommand(), a.queueCommand(), a.topCommand(), a.watchCommand(), a.historyCommand(), a.auditCommand(), a.holdsCommand(), a.alarmsCommand(), a.adviseCommand())
	group(root, "define", a.defineCommand(), a.undefineCommand(), a.definitionsCommand())
	group(root, "keep", a.getCommand(), a.putCommand(), a.deleteCommand(), a.recordsCommand(), a.versionsCommand(), a.rollbackCommand(), a.stateCommand(), a.terraformCommand())
	group(root, "server", a.serveCommand(), a.clusterCommand(), a.certCommand(), a.configCommand(), a.checkCommand(), a.backupCommand(), a.restoreCommand(), a.benchCommand(), a.azureCommand())
	group(root, "other", a.doctorCommand(), a.versionCommand(), a.completionCommand())
	root.AddCommand(exitCodesTopic(), configurationTopic(), outputTopic())
	root.SetHelpCommand(a.helpCommand())
	root.SetHelpCommandGroupID("other")
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	return root
}

func group(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, command := range commands {
		command.GroupID = id
	}
	root.AddCommand(commands...)
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
