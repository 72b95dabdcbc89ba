package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/config"
)

func (a *app) doctorCommand() *cobra.Command {
	length := span{value: 2 * time.Second, given: true}
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

// The results of one look, best first.
const (
	resultOK      = "ok"
	resultWarning = "warning"
	resultProblem = "problem"
)

// A finding is what one look found.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`

	// Values is what was measured, for programs; each name says in what unit.
	Values map[string]float64 `json:"values,omitempty"`

	err error // of a problem: what to end with
}

func fine(check, format string, args ...any) finding {
	return finding{Check: check, Result: resultOK, Detail: fmt.Sprintf(format, args...)}
}

// with adds what was measured.
func (f finding) with(name string, value float64) finding {
	values := map[string]float64{name: value}
	maps.Copy(values, f.Values)
	f.Values = values
	return f
}

func (f finding) warn(advice string) finding {
	f.Result, f.Advice = resultWarning, advice
	return f
}

func (f finding) fail(code leasehold.Code, advice string) finding {
	f.Result, f.Advice, f.err = resultProblem, advice, failure(code, "%s: %s", f.Check, f.Detail)
	return f
}

func (f finding) unfit(advice string) finding {
	f.Result, f.Advice, f.err = resultProblem, advice, unfitError(f.Check+": "+f.Detail)
	return f
}

// An unfitError says why this machine should hold no leases.
type unfitError string

func (e unfitError) Error() string { return string(e) }

// A diagnosis is all findings, and the worst result among them.
type diagnosis struct {
	Result   string    `json:"result"`
	Findings []finding `json:"findings"`
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
		d.askServer(ctx, c, length)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := a.printDiagnosis(d); err != nil {
		return err
	}
	return d.problem()
}

func (d *diagnosis) add(f finding) {
	d.Findings = append(d.Findings, f)
	if f.Result == resultProblem || f.Result == resultWarning && d.Result == resultOK {
		d.Result = f.Result
	}
}

// problem is the first of them: the others often follow from it.
func (d *diagnosis) problem() error {
	for _, f := range d.Findings {
		if f.err != nil {
			return hint(f.err, "%s", f.Advice)
		}
	}
	return nil
}

// askServer looks at what only a server can tell.
func (d *diagnosis) askServer(ctx context.Context, c *conn, length time.Duration) {
	trips, theirs, err := c.roundTrips(ctx)
	d.add(judgeTrips(c.client.Server, trips, err))
	if err != nil {
		return
	}
	d.add(judgeHealth(c.Ready(ctx)))
	d.lookAtServers(ctx, c)
	d.lookAtCluster(ctx, c)
	d.add(judgeVersions(buildVersion(), theirs))
	d.add(c.judgeTTLs(ctx, trips))
	before, err := c.readServerClock(ctx)
	if err == nil {
		d.add(judgeDate(before))
		pause(ctx, length)
		var after clockReading
		if after, err = c.readServerClock(ctx); err == nil {
			d.add(judgeRate(before, after))
		}
	}
	if err != nil {
		d.add(fine("clock rate", "the server's clock could not be read: %v", err).warn("see whether the server goes on to answer: leasehold doctor"))
	}
}

func judgeSettings(settings []config.Setting, err error) finding {
	if err != nil {
		return fine("settings", "%s", strings.ReplaceAll(err.Error(), "\n", "; ")).fail(leasehold.Invalid, "all settings: leasehold help configuration")
	}
	var parts []string
	for _, s := range toShown(settings) {
		if s.Value == "" {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", s.Key, s.Value, s.Origin))
	}
	return fine("settings", "%s", strings.Join(parts, ", "))
}

// tripCount is how many times the server is asked for its version.
const tripCount = 20

// roundTrips measures the way to the server and back, on a connection that is open.
func (c *conn) roundTrips(ctx context.Context) (trips []time.Duration, theirs v1.Version, err error) {
	if theirs, err = c.Version(ctx); err != nil {
		return nil, theirs, err
	}
	for range tripCount {
		began := time.Now()
		if _, err = c.Version(ctx); err != nil {
			return nil, theirs, err
		}
		trips = append(trips, time.Since(began))
	}
	slices.Sort(trips)
	return trips, theirs, nil
}

// slowTrip is what a person begins to notice, and a wait in a queue too.
const slowTrip = 250 * time.Millisecond

func judgeTrips(server string, trips []time.Duration, err error) finding {
	if err != nil {
		return fine("server", "%v", err).fail(codeOf(err), "start one with leasehold serve, or name another with --server or LEASEHOLD_SERVER; then see whether a firewall stands in between")
	}
	median, longest := trips[len(trips)/2], trips[len(trips)-1]
	f := fine("server", "%s answers in %s (median of %d), %s at most", server, exact(median), len(trips), exact(longest))
	f = f.with("median_ms", milliseconds(median)).with("longest_ms", milliseconds(longest))
	if median > slowTrip {
		return f.warn("use a server that is nearer, or TTLs of a minute and more")
	}
	return f
}

func codeOf(err error) leasehold.Code {
	var e *leasehold.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return leasehold.Unavailable
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// exact writes a duration that may be far below a second.
func exact(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func judgeHealth(checks []string, err error) finding {
	if err != nil {
		return fine("health", "%v", err).fail(codeOf(err), "a server that begins or stops is not ready for a while; if it stays so, its log says why")
	}
	return fine("health", "ready: %s", strings.Join(checks, ", "))
}

func judgeVersions(ours, theirs v1.Version) finding {
	f := fine("version", "this program and the server are %s (commit %s)", ours.Version, ours.Commit)
	if ours.Version == theirs.Version && ours.Commit == theirs.Commit {
		return f
	}
	f.Detail = fmt.Sprintf("this program is %s, the server %s", versionLine(ours), versionLine(theirs))
	return f.warn("both speak /v1 and understand each other; for the same words and flags on both sides install the same version")
}

// A renewal is tried at a third of the TTL; what is left then should suffice for
// several tries that are slow.
const leastTripsInTTL = 20

// judgeTTLs compares the shortest TTL that is in use, or that is the default
// somewhere, with the slowest of the round trips.
func (c *conn) judgeTTLs(ctx context.Context, trips []time.Duration) finding {
	shortest, whose, err := c.shortestTTL(ctx)
	if err != nil {
		return fine("ttl", "the leases could not be read: %v", err).warn("see who may read them: leasehold list")
	}
	return judgeTTL(shortest, whose, trips[len(trips)-1])
}

func judgeTTL(shortest time.Duration, whose string, trip time.Duration) finding {
	if whose == "" {
		return fine("ttl", "no lease has one now; shorter than %s would be too short from here", exact(leastTripsInTTL*trip))
	}
	f := fine("ttl", "the shortest is %s, %s; the slowest answer took %s", short(shortest), printable(whose), exact(trip)).with("shortest_ms", milliseconds(shortest))
	if shortest < leastTripsInTTL*trip {
		return f.warn("one slow answer more and the lease is lost: make it " + exact(leastTripsInTTL*trip) + " or longer")
	}
	return f
}

// shortestTTL looks at one page of leases and one of definitions: it is a sample.
func (c *conn) shortestTTL(ctx context.Context) (shortest time.Duration, whose string, err error) {
	note := func(ttl *v1.Duration, of string) {
		if ttl != nil && (whose == "" || time.Duration(*ttl) < shortest) {
			shortest, whose = time.Duration(*ttl), of
		}
	}
	page, err := c.ResourcePage(ctx, v1.ResourceQuery{Limit: v1.MaxLimit})
	if err != nil {
		return 0, "", err
	}
	for _, r := range page.Items {
		for _, l := range r.Holders {
			note(l.TTL, "of "+l.Holder+" on "+r.Resource)
		}
	}
	definitions, err := c.Definitions(ctx, v1.DefinitionQuery{Limit: v1.MaxLimit})
	if err != nil {
		return 0, "", err
	}
	for _, d := range definitions.Items {
		note(d.DefaultTTL, "the default of "+d.Path)
	}
	return shortest, whose, nil
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
