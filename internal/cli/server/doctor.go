package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/doctor"
	"github.com/leasehold/leasehold/store"
)

// Doctor returns the command doctor.
func Doctor(a *cli.App) *cobra.Command {
	length := cli.SpanOf(2 * time.Second)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this machine and the server are fit for leases",
		Long: `Doctor looks at what leases depend on: whether the server answers, how fast, and
whether it is ready; whether all servers of its cluster are healthy; whether client and
server are of the same version; whether this machine's clock runs at the right rate,
compared with the server's clock and according to the kernel; whether TTLs are long
enough for the latency to the server; whether there is a proxy in between; and where the
settings come from. It changes nothing.

Each finding is ok, a warning or a problem, with what to do about it. A holder counts
the time of its lease on its own clock: a rate more than 0.5 % off is a problem. The date
is only for display; a wrong one is a warning.

The exit code is 0 if nothing is worse than a warning, 64 if a setting is wrong, 69 if
the server can't be reached or is not ready, and 71 if this machine is not fit.`,
		Example: `  leasehold doctor
  leasehold doctor --for 30s --server http://leases.example:4653
  leasehold doctor -o json |
      jq -r '.findings[] | select(.result != "ok") | .advice'`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return examine(cmd.Context(), a, cmd, length.Value)
	}
	cmd.Flags().Var(&length, "for", "how long to compare the clocks; longer is more exact")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

func examine(ctx context.Context, a *cli.App, cmd *cobra.Command, length time.Duration) error {
	src, err := a.ClientSources(cmd)
	if err != nil {
		return cli.Usage("%v", err)
	}
	settings, origins, err := config.ForClient(src)
	d := &doctor.Diagnosis{Result: doctor.ResultOK}
	d.Add(doctor.JudgeSettings(origins, err))
	d.Add(doctor.JudgeKernel(doctor.ReadKernelClock()))
	if err == nil {
		c, err := a.Connect(cmd)
		if err != nil {
			return err
		}
		d.Add(doctor.JudgeProxy(settings.Client.Servers[0], a.Getenv))
		a.Say("asking %s; this takes %s", store.Redact(settings.Client.Server), cli.Short(length))
		d.AskServer(ctx, c, length, a.Version)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := printDiagnosis(a, d); err != nil {
		return err
	}
	return d.Problem()
}

func printDiagnosis(a *cli.App, d *doctor.Diagnosis) error {
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(d)
	}
	var b strings.Builder
	for _, f := range d.Findings {
		result := cli.Pad(f.Result, len(doctor.ResultWarning))
		if a.Colour() {
			result = paintResult(f.Result, result)
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", result, cli.Pad(f.Check, len("clock rate")), oneLine(f.Detail))
		if f.Advice != "" {
			fmt.Fprintf(&b, "%s  %s\n", cli.Pad("", len(doctor.ResultWarning)+2+len("clock rate")),
				"-> "+oneLine(f.Advice))
		}
	}
	_, err := fmt.Fprint(a.Stdout, b.String())
	return cli.Written(err)
}

// oneLine returns a text of several lines, such as what each of several servers said, as one line.
func oneLine(text string) string {
	return cli.Printable(strings.ReplaceAll(strings.ReplaceAll(text, ":\n  ", ": "), "\n  ", "; "))
}

func paintResult(result, text string) string {
	codes := map[string]string{doctor.ResultOK: "32", doctor.ResultWarning: "33", doctor.ResultProblem: "31"}
	return "\x1b[" + codes[result] + "m" + text + "\x1b[0m"
}
