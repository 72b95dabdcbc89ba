package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) clusterStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the servers, how they do, and what to do about it",
		Long: `Status shows the servers of the cluster and how each of them does:

  ROLE   the leader; a voter, whose vote counts; or a learner, which is catching up
  STATE  up; no answer, if it did not answer the server that was asked, and others have
         heard of it in the last seconds; away, with how long nobody has; low room, if
         its disk is nearly full
  LAG    by how many entries of the log it is behind the leader

It is what the server knows that was asked: -o wide and -o json say who heard of each
server last, and how long ago. Lines that begin with -> say what is wrong, and what to
do about it.

The code is 0 while all is well; 1 if the cluster works and something is wrong, such as
a server that is away; and 69 if nothing can be decided, since nobody leads or no
majority can be reached from the server that was asked.`,
		Example: `  leasehold cluster status
  leasehold cluster status -q > /dev/null || page-somebody
  leasehold cluster status -o json | jq -r '.servers[] | select(.reachable | not).name'`,
		Args: takes(0, 0),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, _ []string) error {
		cluster, err := c.Cluster(ctx)
		if err != nil {
			return err
		}
		return a.showCluster(c, cluster)
	})
	cmd.Flags().Bool("check", true, "end with code 1 if anything is wrong, as it always does")
	_ = cmd.Flags().MarkHidden("check") // scripts have it
	serverFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) showCluster(c *conn, cluster v1.Cluster) error {
	found := judgeCluster(cluster)
	if err := a.printCluster(c, cluster, found); err != nil {
		return err
	}
	switch {
	case found.stuck:
		return failure(leasehold.Unavailable, "%s", found.state)
	case len(found.wrong) > 0:
		return alarmed(plural(len(found.wrong), "thing is wrong", "things are wrong") + " with the cluster: see above")
	}
	return nil
}

func (a *app) printCluster(c *conn, cluster v1.Cluster, found condition) error {
	switch a.output {
	case formatJSON:
		return a.printJSON(cluster)
	case formatName:
		for _, s := range cluster.Servers {
			if err := a.printLine(s.Name); err != nil {
				return err
			}
		}
		return nil
	}
	s := &sheet{}
	s.line("Cluster", "%s, term %d", printable(cluster.Cluster), cluster.Term)
	s.line("Leader", "%s", cmp.Or(printable(cluster.Leader), "nobody"))
	s.line("State", "%s", found.state)
	s.line("Level", "%d", cluster.Level)
	if _, err := fmt.Fprintf(a.stdout, "%s\n", s); err != nil {
		return written(err)
	}
	if err := a.printServers(cluster); err != nil {
		return err
	}
	var b strings.Builder
	for i, line := range append(found.wrong, found.notes...) {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "-> %s\n", printable(line(c)))
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return written(err)
}

func (a *app) printServers(cluster v1.Cluster) error {
	columns := []column{{name: "NAME"}, {name: "ROLE"}, {name: "STATE", paint: paintHealth}, {name: "LAG", right: true}, {name: "CLIENTS AT", flexible: true}}
	if a.output == formatWide {
		columns = append(columns, column{name: "HEARD"}, column{name: "SERVERS AT"}, column{name: "ID", right: true}, column{name: "APPLIED", right: true}, column{name: "VERSION"}, column{name: "LEVELS"})
	}
	var rows [][]string
	for _, s := range cluster.Servers {
		row := []string{s.Name, role(cluster, s), health(s), lagCell(cluster, s), s.Client}
		if a.output == formatWide {
			row = append(row, heard(s), s.Peer, strconv.FormatUint(s.ID, 10), numberOrNone(s.Applied), s.Version, levelRange(s))
		}
		rows = append(rows, row)
	}
	return a.printTable(columns, rows)
}

// levelRange is the levels that a server's program knows.
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
	case !s.Reachable && silence(s) > 0:
		return "away " + short(silence(s)) + lastWord(s)
	case !s.Reachable:
		return "away" + lastWord(s)
	case !s.Answered:
		return "no answer"
	case s.LowRoom:
		return "low room"
	}
	return "up"
}

// lastWord is what a server said before it was away.
func lastWord(s v1.Server) string {
	if s.LowRoom {
		return ", low room"
	}
	return ""
}

// heard says who heard of a server last, and when.
func heard(s v1.Server) string {
	if s.HeardBy == "" || s.HeardMS == nil {
		return ""
	}
	return short(silence(s)) + " ago by " + s.HeardBy
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
	entries, known := lag(c, s)
	if !known {
		return ""
	}
	return strconv.FormatUint(entries, 10)
}
