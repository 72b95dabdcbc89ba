package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/config"
)

func (a *app) doctorCommand() *cobra.Command {
	length := spanOf(2 * time.Second)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether this machine and the server are fit, and say what to do",
		Long: `Doctor looks at what leases depend on: whether the server answers, how fast, and
whether it is ready; whether all servers of its cluster do well; whether both speak
the same version; whether this machine's clock runs at the right rate, by the
server's clock and by what the kernel says of it; whether TTLs are long enough for
the way to the server; whether a proxy stands in between; and where the settings
come from. It changes nothing.

Each finding is ok, a warning or a problem, with what to do about it. A holder knows
when its lease ends by the rate of its clock: more than 0.5 % off is a problem. The
date is only for display; a wrong one is a warning.

The code is 0 if nothing is worse than a warning, 64 if a setting is wrong, 69 if the
server can't be reached or is not ready, and 71 if this machine is not fit.`,
		Example: `  leasehold doctor
  leasehold doctor --for 30s --server http://leases.example:4653
  leasehold doctor -o json | jq -r '.findings[] | select(.result != "ok") | .advice'`,
		Args: takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.doctor(cmd.Context(), cmd, length.value)
	}
	cmd.Flags().Var(&length, "for", "how long to compare the clocks; longer is more exact")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON)
	return cmd
}

func (a *app) doctor(ctx context.Context, cmd *cobra.Command, length time.Duration) error {
	settings, origins, err := config.ForClient(a.sources(cmd))
	d := &diagnosis{Result: resultOK}
	d.add(judgeSettings(origins, err))
	d.add(judgeKernel(readKernelClock()))
	if err == nil {
		c, err := a.connect(cmd)
		if err != nil {
			return err
		}
		d.add(judgeProxy(settings.Client.Servers[0], a.getenv))
		a.say("asking %s; this takes %s", settings.Client.Server, short(length))
		d.askServer(ctx, c, length, a.version)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := a.printDiagnosis(d); err != nil {
		return err
	}
	return d.problem()
}

func (a *app) printDiagnosis(d *diagnosis) error {
	if a.output == formatJSON {
		return a.printJSON(d)
	}
	var b strings.Builder
	for _, f := range d.Findings {
		result := pad(f.Result, len(resultWarning))
		if a.colour() {
			result = paintResult(f.Result, result)
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", result, pad(f.Check, len("clock rate")), oneLine(f.Detail))
		if f.Advice != "" {
			fmt.Fprintf(&b, "%s  %s\n", pad("", len(resultWarning)+2+len("clock rate")), "-> "+oneLine(f.Advice))
		}
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return written(err)
}

// oneLine is a text of several lines, such as what each of several servers said, as one.
func oneLine(text string) string {
	return printable(strings.ReplaceAll(strings.ReplaceAll(text, ":\n  ", ": "), "\n  ", "; "))
}

func paintResult(result, text string) string {
	codes := map[string]string{resultOK: "32", resultWarning: "33", resultProblem: "31"}
	return "\x1b[" + codes[result] + "m" + text + "\x1b[0m"
}
