package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/doctor"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func status(a *cli.App) *cobra.Command {
	var wait cli.Span
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the servers, their health, and what to do",
		Long: `Status shows the servers of the cluster and how each of them is doing:

  ROLE   the leader; a voter, whose vote counts; or a learner, which is catching up
  STATE  up; starting, if it lets no clients in yet; no answer, if it did not answer the
         server that was asked, but others have heard from it in the last seconds; away,
         with how long nobody has; low room, if its disk is nearly full
  LAG    by how many entries of the log it is behind the leader

All of it is what the server that was asked knows: -o wide and -o json say who heard of each
server last, and how long ago. Lines that begin with -> say what is wrong, and what to
do about it.

The code is 0 if nothing is wrong; 1 if the cluster works and something is wrong, such as
a server that is away; and 69 if nothing can be decided, since nobody leads or no
majority can be reached from the server that was asked. With --wait it first waits until
nothing is wrong, and every server has its vote and lets clients in: for servers that
were just started.`,
		Example: `  leasehold cluster status
  leasehold cluster status --wait 1m
  leasehold cluster status -o json |
      jq -r '.servers[] | select(.reachable | not).name'`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		cluster, err := settled(ctx, c, wait.Value)
		if err != nil {
			return err
		}
		if cluster.Cluster == "" {
			return &leasehold.Error{Code: leasehold.Denied, Message: "you may not see how the servers are doing: " +
				"that needs the verb monitor for all namespaces; ask an admin"}
		}
		return show(a, c, cluster)
	})
	cmd.Flags().Var(&wait, "wait", "wait for up to this long until all is well")
	cmd.Flags().Bool("check", true, "end with code 1 if anything is wrong, as it always does")
	_ = cmd.Flags().MarkHidden("check") // scripts have it
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

// askAgain is how long status waits between two looks at a cluster that is not well yet.
const askAgain = 200 * time.Millisecond

// settled returns the cluster once nothing is wrong with it, or as it is when the time is over.
// Errors other than that no server can answer yet are returned at once: waiting does not mend them.
func settled(ctx context.Context, c *cli.Conn, wait time.Duration) (v1.Cluster, error) {
	over := time.Now().Add(wait)
	for {
		cluster, err := c.Cluster(ctx)
		var e *leasehold.Error
		starting := errors.As(err, &e) && e.Code == leasehold.Unavailable
		left := time.Until(over)
		if err == nil && well(cluster) || err != nil && !starting || left <= 0 || ctx.Err() != nil {
			return cluster, err
		}
		cli.Pause(ctx, min(askAgain, left))
	}
}

// well reports whether nothing is wrong with a cluster, and all of its servers have caught up and let clients in.
func well(c v1.Cluster) bool {
	found := doctor.JudgeCluster(c)
	return !found.Stuck && len(found.Wrong) == 0 && c.Quarantine == nil &&
		!slices.ContainsFunc(c.Servers, func(s v1.Server) bool { return !s.Voter || s.Starting })
}

func show(a *cli.App, c *cli.Conn, cluster v1.Cluster) error {
	found := doctor.JudgeCluster(cluster)
	if cluster.Quarantine != nil {
		found.Wrong = append(found.Wrong, doctor.QuarantineAdvice)
	}
	if err := printCluster(a, c, cluster, found); err != nil {
		return err
	}
	switch {
	case found.Stuck:
		return cli.Failure(leasehold.Unavailable, "%s", found.State)
	case len(found.Wrong) > 0:
		return cli.Alarmed(cli.Plural(len(found.Wrong), "thing is wrong", "things are wrong") +
			" with the cluster: see above")
	}
	return nil
}

func printCluster(a *cli.App, c *cli.Conn, cluster v1.Cluster, found doctor.Condition) error {
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(cluster)
	case cli.FormatName:
		for _, s := range cluster.Servers {
			if err := a.PrintLine(s.Name); err != nil {
				return err
			}
		}
		return nil
	}
	s := &cli.Details{}
	s.Line("Cluster", "%s, term %d", cli.Printable(cluster.Cluster), cluster.Term)
	s.Line("Leader", "%s", cmp.Or(cli.Printable(cluster.Leader), "nobody"))
	s.Line("State", "%s", found.State)
	s.Line("Level", "%d", cluster.Level)
	if q := cluster.Quarantine; q != nil {
		s.Line("Quarantine", "%s", doctor.QuarantineText(*q))
	}
	if _, err := fmt.Fprintf(a.Stdout, "%s\n", s); err != nil {
		return cli.Written(err)
	}
	if err := printServers(a, cluster); err != nil {
		return err
	}
	var b strings.Builder
	for i, line := range append(found.Wrong, found.Notes...) {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "-> %s\n", cli.Printable(line(c)))
	}
	_, err := fmt.Fprint(a.Stdout, b.String())
	return cli.Written(err)
}

func printServers(a *cli.App, cluster v1.Cluster) error {
	columns := []cli.Column{{Name: "NAME"}, {Name: "ROLE"}, {Name: "STATE", Paint: paintHealth},
		{Name: "LAG", Right: true}, {Name: "CLIENTS AT", Flexible: true}}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "HEARD"}, cli.Column{Name: "SERVERS AT"},
			cli.Column{Name: "ID", Right: true}, cli.Column{Name: "APPLIED",
				Right: true}, cli.Column{Name: "VERSION"}, cli.Column{Name: "LEVELS"})
	}
	var rows [][]string
	for _, s := range cluster.Servers {
		row := []string{s.Name, role(cluster, s), health(s), lagCell(cluster, s), s.Client}
		if a.Output == cli.FormatWide {
			row = append(row, heard(s), s.Peer, strconv.FormatUint(s.ID, 10), numberOrNone(s.Applied), s.Version,
				levelRange(s))
		}
		rows = append(rows, row)
	}
	return a.PrintTable(columns, rows)
}

// levelRange returns the levels that a server's program knows.
func levelRange(s v1.Server) string {
	if s.NewestLevel == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", s.OldestLevel, s.NewestLevel)
}

func numberOrNone(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func role(c v1.Cluster, s v1.Server) string {
	switch {
	case s.Name == c.Leader:
		return "leader"
	case s.Voter:
		return "voter"
	}
	return "learner"
}

func health(s v1.Server) string {
	switch {
	case !s.Reachable && doctor.Silence(s) > 0:
		return "away " + cli.Short(doctor.Silence(s)) + lastWord(s)
	case !s.Reachable:
		return "away" + lastWord(s)
	case !s.Answered:
		return "no answer"
	case s.LowRoom:
		return "low room"
	case s.Starting:
		return "starting"
	}
	return "up"
}

// lastWord returns what a server said before it went away.
func lastWord(s v1.Server) string {
	if s.LowRoom {
		return ", low room"
	}
	return ""
}

// heard returns who heard of a server last, and when.
func heard(s v1.Server) string {
	if s.HeardBy == "" || s.HeardMS == nil {
		return ""
	}
	return cli.Short(doctor.Silence(s)) + " ago by " + s.HeardBy
}

func paintHealth(text string) string {
	code := "32"
	switch {
	case strings.HasPrefix(text, "away"):
		code = "31"
	case text != "up":
		code = "33"
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func lagCell(c v1.Cluster, s v1.Server) string {
	entries, known := doctor.Lag(c, s)
	if !known {
		return ""
	}
	return strconv.FormatUint(entries, 10)
}
