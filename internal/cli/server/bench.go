package server

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/load"
)

// benchNamespace is where the load goes unless the flag names another. The environment cannot
// change it: that usually names the namespace people work in, and a forgotten variable would fill
// it with load.
const benchNamespace = "bench"

// everyOperation is the word for all of them.
const everyOperation = "all"

type benchFlags struct {
	clients, leases int
	watchers, rate  int
	warmUp          cli.Span
	duration        cli.Span
	namespace       string
}

func (f *benchFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.clients, "clients", 64, fmt.Sprintf("how many clients there are, at most %s",
		thousands(load.MaxClients)))
	flags.IntVar(&f.leases, "leases", 0, fmt.Sprintf("how many leases they share, at most %s; in handover how many "+
		"resources they queue for, "+
		"at most half as many as clients (default: 1,000 or one each; in handover one for two)",
		thousands(load.MaxLeases)))
	flags.IntVar(&f.watchers, "watchers", 1000, fmt.Sprintf("in watch: how many there are, at most %s",
		thousands(load.MaxWatchers)))
	flags.IntVar(&f.rate, "rate", 1000, fmt.Sprintf("in watch: how many events per second, at most %s",
		thousands(load.MaxRate)))
	flags.Var(&f.duration, "duration", "how long to measure each operation")
	flags.Var(&f.warmUp, "warm-up", "how long to run each operation before that")
	flags.StringVarP(&f.namespace, "namespace", "N", benchNamespace, "namespace to load; only this flag changes it")
}

// Bench returns the command bench.
func Bench(a *cli.App) *cobra.Command {
	f := benchFlags{warmUp: cli.SpanOf(time.Second), duration: cli.SpanOf(10 * time.Second)}
	words := append(slices.Clone(load.Operations), load.Watch, everyOperation)
	cmd := &cobra.Command{
		Use:   "bench [OPERATION]",
		Short: "Load a server and measure it",
		Long: `Bench loads a server as hard as its clients can, and shows how many operations it did
per second and how long they took. Each client has one connection.

  cycle      acquire and release a resource that nobody else wants, timed as one
  renew      renew one of the leases, of which each client holds its share
  handover   clients queue for the same resources: from the moment that a holder
             sends its release to the moment that the next one has its grant
  watch      watchers follow one resource on which events happen at a fixed rate:
             from the moment that an event is due to the moment that each of them
             has it; an event out of order is an error
  all        cycle, renew and handover, one after the other (the default)

In the first three a client sends its next request when it has the answer to the
last one (a closed loop). While the server stalls nothing is sent, so a stall counts
once for each client, and not once for each request that might have come: percentiles
say how long answers take at this rate, not how long callers would wait that arrive at a
rate of their own. Percentiles are exact to 2 %, the maximum is exact.

Do not run this against a server that others depend on. The load is in a namespace of
its own, bench (LEASEHOLD_NAMESPACE is ignored), so the lists, tokens and watches of
others are not touched. But a server keeps a limited number of events and ended leases
for all namespaces together, and a long run pushes out the older ones.

Resources are named bench/ and a random word. The clients release what they hold at the
end, also after ctrl-C, which ends the run early and shows what was measured. If the run
is killed, its leases end by themselves: after 30 s, and in renew after a millisecond
more for each lease.

The exit code is 0 if there were no errors, otherwise that of the first.`,
		Example: `  leasehold bench handover --clients 64 --leases 1 -o json   # one queue of 64
  leasehold bench renew --clients 256 --leases 100000 --duration 30s
  leasehold bench watch --watchers 1000 --rate 1000`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			word := everyOperation
			if len(args) == 1 {
				word = args[0]
			}
			if !slices.Contains(words, word) {
				return cli.SeeHelp(cmd, cli.Usage("there is no operation %q: use %s", word, cli.OrList(words)))
			}
			return bench(a, cmd, f, word)
		},
	}
	f.add(cmd)
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

func bench(a *cli.App, cmd *cobra.Command, f benchFlags, word string) error {
	c, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	operations, config := benchOperations(word, f.clients), benchConfig(a, c, f)
	for _, operation := range operations {
		err := config.Check(operation)
		if cmd.Flags().Changed("leases") && f.leases == 0 {
			err = cli.Usage("with 0 leases there is nothing to measure: leave --leases out, or give a number")
		}
		if err != nil {
			return cli.SeeHelp(cmd, err)
		}
	}
	runner, err := load.New(config)
	if err != nil {
		return err
	}
	defer runner.Close()
	if err := runner.Reach(cmd.Context()); err != nil {
		return err
	}
	if word == everyOperation && len(operations) < len(load.Operations) {
		a.Say("%s is skipped: it needs 2 clients", load.Handover)
	}
	warnOfLoad(a, runner, config, len(operations))
	return benchAll(cmd.Context(), a, runner, config, operations)
}

func warnOfLoad(a *cli.App, runner *load.Runner, config load.Config, operations int) {
	clients := "1 client"
	if config.Clients > 1 {
		clients = thousands(config.Clients) + " clients"
	}
	lasts := cli.Short(time.Duration(operations) * (config.WarmUp + config.Duration))
	a.Say("warning: %s will load %s for %s: others who use it will notice, and may lose old history", clients,
		strings.Join(config.Servers, ", "), lasts)
	a.Say("resources are %s… in namespace %s; ctrl-C ends it early\n", runner.Prefix(), config.Namespace)
}

// benchOperations returns the operations of a word. "all" leaves out what one client alone cannot
// do.
func benchOperations(word string, clients int) []string {
	switch {
	case word != everyOperation:
		return []string{word}
	case clients == 1:
		return slices.DeleteFunc(slices.Clone(load.Operations), func(o string) bool { return o == load.Handover })
	}
	return load.Operations
}

func benchConfig(a *cli.App, c *cli.Conn, f benchFlags) load.Config {
	config := load.Config{
		Servers: c.Client.Servers, TLS: c.TLS, Token: c.Client.Token, Insecure: c.Client.Insecure,
		Namespace: f.namespace, Holder: cli.Holder(), Clients: f.clients,
		Leases: f.leases,
		WarmUp: f.warmUp.Value, Duration: f.duration.Value, Timeout: cli.Patience,
		Watchers: f.watchers, EventRate: f.rate,
	}
	if a.Terminal(a.Stderr) && !a.Quiet && a.Output != cli.FormatJSON {
		config.Progress = func(p load.Progress) { showProgress(a, progressLine(p, config.Duration)) }
	}
	return config
}

func benchAll(ctx context.Context, a *cli.App, runner *load.Runner, config load.Config, operations []string) error {
	var results []load.Result
	var failed cli.Several
	for _, operation := range operations {
		if ctx.Err() != nil {
			break
		}
		r := runner.Run(ctx, operation)
		results = append(results, r)
		if config.Progress != nil {
			showProgress(a, "")
		}
		if r.First != nil {
			failed = append(failed, benchError(r))
		}
		if r.Left > 0 {
			a.Say("%s leases could not be released and end by themselves", thousands(r.Left))
		}
		if r.First != nil && runner.Reach(ctx) != nil {
			break // the others would tell the same
		}
	}
	stopped := ctx.Err() != nil
	if err := printBench(a, runner, config, results, stopped); err != nil {
		return err
	}
	switch {
	case stopped && len(failed) > 0:
		a.Say("%v", failed) // nobody hears of errors behind a signal
		return failed
	case stopped:
		return ctx.Err()
	case len(failed) > 0:
		return failed
	}
	return nil
}

// benchError returns the first error of a run, whose code becomes the exit code.
func benchError(r load.Result) error {
	if r.Errors == 1 {
		return fmt.Errorf("%s: one error: %w", r.Operation, r.First)
	}
	return fmt.Errorf("%s: %s errors, the first: %w", r.Operation, thousands(int(r.Errors)), r.First)
}

// progressWidth is more than the longest line of progress, and less than the
// narrowest terminal.
const progressWidth = 78

// showProgress writes a line over the one before; an empty line clears it.
func showProgress(a *cli.App, line string) {
	fmt.Fprintf(a.Stderr, "\r%s\r%s", strings.Repeat(" ", progressWidth), line)
}

func progressLine(p load.Progress, of time.Duration) string {
	line := fmt.Sprintf("%-8s  ", p.Operation)
	switch p.Phase {
	case load.Acquiring:
		line += fmt.Sprintf("acquiring: %s of %s leases", thousands(p.Done), thousands(p.Of))
	case load.Releasing:
		line += fmt.Sprintf("releasing: %s of %s leases", thousands(p.Done), thousands(p.Of))
	case load.WarmingUp:
		line += "warming up"
	case load.Measuring:
		line += fmt.Sprintf("%4s of %s %9s/s   p50 %8s   p99 %8s", cli.Short(p.Elapsed.Round(time.Second)),
			cli.Short(of), rate(p.Rate), millis(p.P50), millis(p.P99))
	}
	if p.Errors > 0 {
		line += fmt.Sprintf("   errors %s", thousands(int(p.Errors)))
	}
	return line
}

func printBench(a *cli.App, runner *load.Runner, config load.Config, results []load.Result, stopped bool) error {
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(benchReport(runner, config, results, stopped))
	}
	columns := []cli.Column{{Name: "OPERATION"}}
	for _, name := range []string{"COUNT", "RATE", "P50", "P90", "P99", "P99.9", "MAX", "ERRORS"} {
		columns = append(columns, cli.Column{Name: name, Right: true})
	}
	var rows [][]string
	for _, r := range results {
		row := []string{r.Operation, thousands(int(r.Count)), rate(r.Rate) + "/s"}
		for _, d := range []time.Duration{r.P50, r.P90, r.P99, r.P999, r.Max} {
			if r.Count == 0 {
				row = append(row, "-")
				continue
			}
			row = append(row, millis(d))
		}
		rows = append(rows, append(row, thousands(int(r.Errors))))
	}
	return a.PrintTable(columns, rows)
}

// A benchRun is what a program reads.
type benchRun struct {
	Server    string        `json:"server"`
	Namespace string        `json:"namespace"`
	Prefix    string        `json:"prefix"`
	Clients   int           `json:"clients"`
	Stopped   bool          `json:"stopped"` // before its time was over
	Results   []benchResult `json:"results"`
}

type benchResult struct {
	Operation string  `json:"operation"`
	Leases    int     `json:"leases"`
	Watchers  int     `json:"watchers,omitempty"` // in watch
	Seconds   float64 `json:"seconds"`            // that were measured
	Count     uint64  `json:"count"`
	Rate      float64 `json:"rate"` // a second
	P50       float64 `json:"p50_ms"`
	P90       float64 `json:"p90_ms"`
	P99       float64 `json:"p99_ms"`
	P999      float64 `json:"p999_ms"`
	Max       float64 `json:"max_ms"`
	Errors    uint64  `json:"errors"`
	Lost      int64   `json:"lost"` // in watch: events that did not arrive
}

func benchReport(runner *load.Runner, config load.Config, results []load.Result, stopped bool) benchRun {
	report := benchRun{
		Server: strings.Join(config.Servers, ","), Namespace: config.Namespace, Prefix: runner.Prefix(),
		Clients: config.Clients, Stopped: stopped, Results: []benchResult{},
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for _, r := range results {
		watchers := 0
		if r.Operation == load.Watch {
			watchers = config.Watchers
		}
		report.Results = append(report.Results, benchResult{
			Operation: r.Operation, Leases: r.Leases, Seconds: ms(r.Measured) / 1000, Count: r.Count,
			Rate: math.Round(r.Rate*10) / 10,
			P50:  ms(r.P50), P90: ms(r.P90), P99: ms(r.P99), P999: ms(r.P999), Max: ms(r.Max), Errors: r.Errors,
			Watchers: watchers, Lost: r.Lost,
		})
	}
	return report
}

// millis writes every duration in the same unit, so that those in a column can be compared at a
// glance.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64) + "ms"
}

// rate writes a rate, with a digit behind the point where it is small.
func rate(r float64) string {
	if r < 100 {
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return thousands(int(math.Round(r)))
}

// thousands writes a number in groups of three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
