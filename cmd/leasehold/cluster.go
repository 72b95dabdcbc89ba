package main

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
	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Look at the servers of a cluster, take some in, let some go",
		Long: `Cluster is about the servers that are one: who belongs to them, who leads, who is
behind or away, and what to do about it. Three servers go on while one is away, five
while two are; a server that was added has no vote until it has caught up.

Any of the servers can be asked. Each change goes through the log like everything
else: when a command says that it is done, it is.`,
		Example: `  leasehold cluster status
  leasehold cluster remove n2
  leasehold cluster transfer n3`,
		Args: cobra.ArbitraryArgs,
		RunE: a.onlySubcommands,
	}
	cmd.AddCommand(a.clusterStatusCommand(), a.clusterAddCommand(), a.clusterPromoteCommand(), a.clusterRemoveCommand(), a.clusterTransferCommand(),
		a.clusterUpgradeCommand(), a.clusterLimitsCommand())
	return cmd
}

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

// silence is for how long nobody has heard of a server; 0: it is not known.
func silence(s v1.Server) time.Duration {
	ms := s.HeardMS
	if ms == nil {
		ms = s.SilentMS
	}
	if ms == nil {
		return 0
	}
	return time.Duration(*ms) * time.Millisecond
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

// lag is by how many entries a server is behind who leads, if both are known.
func lag(c v1.Cluster, s v1.Server) (entries uint64, known bool) {
	for _, leader := range c.Servers {
		if leader.Name == c.Leader && leader.Reachable && s.Reachable {
			return max(leader.Applied, s.Applied) - s.Applied, true
		}
	}
	return 0, false
}

func lagCell(c v1.Cluster, s v1.Server) string {
	entries, known := lag(c, s)
	if !known {
		return ""
	}
	return strconv.FormatUint(entries, 10)
}

// A condition is how a cluster does: in a few words, what is wrong with it, and what is
// merely worth knowing. A line is written for whoever asked: it has commands in it.
type condition struct {
	state string
	stuck bool // nothing can be decided, as far as the server knows that was asked
	wrong []func(*conn) string
	notes []func(*conn) string
}

func (f *condition) bad(format string, args ...any) {
	f.wrong = append(f.wrong, func(*conn) string { return fmt.Sprintf(format, args...) })
}

func (f *condition) note(format string, args ...any) {
	f.notes = append(f.notes, func(*conn) string { return fmt.Sprintf(format, args...) })
}

// farBehind is a lag that does not come from what is under way.
const farBehind = 5000

// judgeCluster says how a cluster does, and what to do.
func judgeCluster(c v1.Cluster) condition {
	var f condition
	voters, up := 0, 0
	var away []string
	if c.Next != 0 {
		f.note("all servers know level %d: when none has to go back to an older version, run leasehold cluster upgrade", c.Next)
	}
	for _, s := range c.Servers {
		if !s.Voter {
			continue
		}
		voters++
		if s.Reachable {
			up++
		} else {
			away = append(away, s.Name)
		}
	}
	needed := voters/2 + 1
	f.state = fmt.Sprintf("%d of %s up", up, plural(voters, "voter is", "voters are"))
	f.stuck = !c.Confirmed && (up < needed || c.Leader == "")
	switch {
	case up < needed && c.Confirmed:
		f.state = fmt.Sprintf("the cluster works, and a majority confirms who leads, but %s hears of only %d of %d voters", c.Self, up, voters)
		f.bad("look at the network between %s and %s", c.Self, strings.Join(away, ", "))
	case up < needed:
		f.state += fmt.Sprintf(" as %s sees it, and %d are needed: nothing can be granted or renewed there", c.Self, needed)
		f.judgeMinority(c, away)
	case c.Leader == "" && !c.Confirmed:
		f.state += ", and they choose a leader: look again in a moment"
		f.bad("if nobody leads for long, the servers can't reach each other at their peer addresses: see their logs")
	case voters == 1:
		f.state += ": it is alone"
	case up == needed:
		f.state += "; none may fail now"
	default:
		f.state += fmt.Sprintf("; %d may fail", up-needed)
	}
	for _, s := range c.Servers {
		f.judgeServer(c, s, up >= needed || c.Confirmed)
	}
	f.judgeAll(c, voters)
	return f
}

// Cluster returns the cluster as the server sees it that is asked. Before there was
// Answered, all who are reachable had answered; the one that is asked always does.
func (c *conn) Cluster(ctx context.Context) (v1.Cluster, error) {
	cluster, err := c.Caller.Cluster(ctx)
	if !slices.ContainsFunc(cluster.Servers, func(s v1.Server) bool { return s.Answered }) {
		for i := range cluster.Servers {
			cluster.Servers[i].Answered = cluster.Servers[i].Reachable
		}
	}
	return cluster, err
}

// judgeMinority says what to do where a server reaches no majority. The others may go on
// without it, so nothing is advised that would harm a cluster which works.
func (f *condition) judgeMinority(c v1.Cluster, away []string) {
	var urls []string
	for _, s := range c.Servers {
		if !s.Reachable && s.Client != "" {
			urls = append(urls, s.Client)
		}
	}
	ask := "ask one of them"
	if len(urls) > 0 {
		ask += ": leasehold cluster status --server " + quote(strings.Join(urls, ","))
	}
	f.bad("the others may go on without %s: %s", c.Self, ask)
	f.bad("if %s do not run, start them again: while their data are there, nothing is lost", strings.Join(away, ", "))
}

func (f *condition) judgeServer(c v1.Cluster, s v1.Server, works bool) {
	behind, _ := lag(c, s)
	switch {
	case !s.Reachable && s.LowRoom:
		f.bad("%s is away, and the last that it said is that its disk is nearly full: make room there, then start it", s.Name)
	case s.Reachable && !s.Answered:
		f.bad("%s did not answer %s in time, but %s: it is just gone, or the network between them is slow", s.Name, c.Self, wasHeard(s))
	case !s.Reachable && s.Name == c.Leader && works:
		f.bad("%s, which led, is away: the others choose another leader in a second or two; look again, and start it", s.Name)
	case !s.Reachable && s.Voter && works:
		f.wrong = append(f.wrong, func(c *conn) string {
			return fmt.Sprintf("%s is away%s: start it again. If it is lost for good: %s, then prepare a place for another one (leasehold cluster add) and start it with --join", s.Name, lastHeard(s), c.again("cluster", "remove", s.Name))
		})
	case !s.Reachable && !s.Voter:
		f.wrong = append(f.wrong, func(c *conn) string {
			return fmt.Sprintf("%s was added and is not there: start it with --join, or take it out again: %s", s.Name, c.again("cluster", "remove", s.Name))
		})
	case s.Reachable && !s.Voter && behind <= farBehind:
		f.note("%s is catching up, and gets its vote by itself", s.Name)
	case s.Reachable && behind > farBehind:
		f.bad("%s is behind by %d entries: if that does not shrink, its disk or its network is too slow", s.Name, behind)
	}
	if s.Reachable && s.LowRoom {
		f.bad("the disk of %s is nearly full: make room, or give it a larger one", s.Name)
	}
}

func wasHeard(s v1.Server) string {
	return fmt.Sprintf("%s heard of it %s ago", s.HeardBy, short(silence(s)))
}

func lastHeard(s v1.Server) string {
	if s.HeardBy == "" || s.HeardMS == nil {
		return ""
	}
	return ", last heard of by " + s.HeardBy + " " + short(silence(s)) + " ago"
}

func (f *condition) judgeAll(c v1.Cluster, voters int) {
	if len(c.Differ) > 0 {
		f.bad("the states of %s differ from the others': one that the majority is against stops by itself, and has to join anew. If it lasts, see what the logs say, and docs/cluster.md", strings.Join(c.Differ, ", "))
	}
	switch {
	case voters == 2:
		f.note("with 2 voters nothing works when either fails: add a third server")
	case voters > 2 && voters%2 == 0:
		f.note("%d voters survive no more failures than %d: add a server, or remove one", voters, voters-1)
	}
	versions := map[string]bool{}
	for _, s := range c.Servers {
		if s.Version != "" {
			versions[s.Version] = true
		}
	}
	if len(versions) > 1 {
		f.note("the servers have %d versions: fine for the time of an upgrade", len(versions))
	}
}

func (a *app) clusterAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME HOST:PORT",
		Short: "Prepare a place in the cluster for a server",
		Long: `Add prepares a place in the cluster for a server, by its name and the address at which
the other servers will reach it. It has no vote until it runs and has caught up, and so
can do no harm; the leader then gives it its vote by itself.

Only a server that has a place can join: one that is started with --join and has none
waits for it, and says in its log what to do. The place belongs to the first server of
its name that comes for it; with certificates, that has to have one for the name. To
add what is there already changes nothing.`,
		Example: `  leasehold cluster add n4 10.0.0.4:4654
  leasehold cluster add n4 10.0.0.4:4654 -o json | jq .id
  leasehold cluster add n4 10.0.0.4:4654 && leasehold cluster status`,
		Args: takes(2, 2),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		server, err := c.AddServer(ctx, v1.ServerRequest{Name: args[0], Peer: args[1]})
		if err != nil {
			return c.explainCluster(err)
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(server)
		case formatName:
			return a.printLine(server.Name)
		}
		if server.Voter {
			a.say("%s is a member already, with a vote", server.Name)
			return nil
		}
		a.say("added: %s is a learner, and has no vote until it has caught up", server.Name)
		a.say("start it, with certificates or --insecure as the others: leasehold serve --name %s --peer-listen %s --join %s", quote(server.Name), quote(server.Peer), c.somePeers(ctx, server.Name))
		return nil
	})
	serverFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}

// somePeers are addresses that a new server can ask to be taken in.
func (c *conn) somePeers(ctx context.Context, but string) string {
	var peers []string
	if cluster, err := c.Cluster(ctx); err == nil {
		for _, s := range cluster.Servers {
			if s.Name != but && s.Voter {
				peers = append(peers, s.Peer)
			}
		}
	}
	if len(peers) == 0 {
		return "HOST:PORT"
	}
	return strings.Join(peers, ",")
}

func (a *app) clusterPromoteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "promote NAME",
		Short: "Give a server its vote",
		Long: `Promote gives a learner its vote. It is refused while that is too far behind: a vote of
one who knows nothing would only delay the others.

The leader does so by itself for whoever has caught up, within a second or two; this
is for those who do not want to wait, or want to know what is in the way.`,
		Example: `  leasehold cluster promote n4
  leasehold cluster promote n4 -q || leasehold cluster status
  leasehold cluster promote n4 --server http://10.0.0.1:4653`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.asks(1, serverNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if err := c.PromoteServer(ctx, args[0]); err != nil {
			return c.explainCluster(err)
		}
		a.say("promoted: %s has a vote", args[0])
		return nil
	})
	serverFlags(cmd)
	return cmd
}

func (a *app) clusterUpgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Raise the level of the cluster, once all servers run a newer version",
		Long: `Upgrade raises the level of the cluster: the rules by which all servers decide, and with
them what a newer version brought. Until then, servers of two versions work side by
side, and each can go back to the older one.

It is refused while some server does not know the level that others know. A level is
never lowered: afterwards, versions that do not know it refuse the data, and are
refused by the other servers. A new cluster begins at the newest level.`,
		Example: `  leasehold cluster status -o wide      # which levels each server knows
  leasehold cluster upgrade
  leasehold cluster upgrade -o json`,
		Args: takes(0, 0),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, _ []string) error {
		level, err := c.UpgradeCluster(ctx)
		if err != nil {
			return c.explainCluster(err)
		}
		if a.output == formatJSON {
			return a.printJSON(level)
		}
		a.say("the cluster is at level %d", level.Level)
		return nil
	})
	serverFlags(cmd)
	a.outputFlag(cmd, formatJSON)
	return cmd
}

func (a *app) clusterRemoveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "End the membership of a server for good",
		Long: `Remove ends the membership of a server. If it runs, it says so and stops; if it was
away, it hears so when it comes back. Its data can't be used in this cluster any
more, its id is never given to another; its name may be.

What the cluster keeps is not touched, and no lease ends. A removal that would leave
the cluster without a majority is refused. To replace a server, remove it, prepare a
place for another one with cluster add, and start that with --join.

On a terminal it shows what it would do and asks; elsewhere give --yes.`,
		Example: `  leasehold cluster remove n2
  leasehold cluster remove n2 --yes
  leasehold cluster remove n2 --yes && leasehold cluster status`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.asks(1, serverNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if !yes {
			if err := a.confirmRemoval(ctx, c, args[0]); err != nil {
				return err
			}
		}
		if err := c.RemoveServer(ctx, args[0]); err != nil {
			return c.explainCluster(err)
		}
		a.say("removed: %s belongs to the cluster no more", args[0])
		return nil
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	serverFlags(cmd)
	return cmd
}

func (a *app) confirmRemoval(ctx context.Context, c *conn, name string) error {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	for _, s := range cluster.Servers {
		if s.Name != name {
			continue
		}
		what := fmt.Sprintf("%s (%s, %s) at %s", s.Name, role(cluster, s), health(s), s.Peer)
		if !a.terminal(a.stdin) {
			return hint(usage("remove ends a membership for good, and there is no terminal to ask on: give --yes if you are sure"), "it would remove %s", what)
		}
		fmt.Fprintf(a.stderr, "This will remove %s for good.\n%s\n", printable(what), afterwards(cluster, s))
		answer, err := a.ask(ctx, "Remove it? [y/N] ")
		if err != nil {
			return err
		}
		if answer != "y" && answer != "yes" {
			return usage("the answer was not y: nothing was done")
		}
		return nil
	}
	return c.explainCluster(failure(leasehold.NotFound, "there is no server called %s", name))
}

// afterwards says what a cluster is without a server.
func afterwards(c v1.Cluster, gone v1.Server) string {
	voters, up := 0, 0
	for _, s := range c.Servers {
		if s.Voter && s.ID != gone.ID {
			voters++
			if s.Reachable {
				up++
			}
		}
	}
	return fmt.Sprintf("Then %d of %s up, and %d are needed.", up, plural(voters, "voter is", "voters are"), voters/2+1)
}

func (a *app) clusterTransferCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transfer [NAME]",
		Short: "Give the lead to another server",
		Long: `Transfer gives the lead to a server, or without a name to whichever is best. Nothing
is lost: requests that come meanwhile wait for some milliseconds, and no lease ends.

A server that is told to stop does so by itself. This is for moving the lead away from
a machine that is slow, or about to be worked on.`,
		Example: `  leasehold cluster transfer
  leasehold cluster transfer n3
  leasehold cluster transfer n3 -o name`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.asks(1, serverNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		lead, err := c.TransferLead(ctx, v1.TransferRequest{To: strings.Join(args, "")})
		if err != nil {
			return c.explainCluster(err)
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(lead)
		case formatName:
			return a.printLine(lead.Leader)
		}
		a.say("%s leads", lead.Leader)
		return nil
	})
	serverFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}

// explainCluster adds where to look.
func (c *conn) explainCluster(err error) error {
	var e *leasehold.Error
	if errors.As(err, &e) {
		switch e.Code {
		case leasehold.NotFound:
			return hint(err, "see who belongs to it: %s", c.again("cluster", "status"))
		case leasehold.Refused, leasehold.Undecided, leasehold.Unavailable:
			return hint(err, "see how they do: %s", c.again("cluster", "status"))
		}
	}
	return err
}

// serverNames are those of the cluster's servers.
func serverNames(ctx context.Context, c *conn, _ string) (list []cobra.Completion) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return nil
	}
	for _, s := range cluster.Servers {
		list = append(list, cobra.CompletionWithDesc(s.Name, printable(role(cluster, s)+", "+health(s))))
	}
	return list
}
