package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// lookAtServers asks each server that was named, where there are several: commands go on to the
// next one, so nobody would notice that one is away.
func (d *Diagnosis) lookAtServers(ctx context.Context, c *cli.Conn) {
	if len(c.Client.Servers) < 2 {
		return
	}
	var away []answer
	for _, server := range c.Client.Servers {
		one := c.Client
		one.Server, one.Servers = server, []string{server}
		alone, err := cli.NewConn(one, c.Cmd)
		if err == nil {
			_, err = alone.Version(ctx)
			alone.CloseIdle()
		}
		if err != nil {
			away = append(away, answer{server, err})
		}
	}
	d.Add(judgeServers(c.Client.Servers, away))
}

// An answer is why a server that was named cannot be used.
type answer struct {
	server string
	err    error
}

// judgeServers judges the servers that were named, by which of them answered.
func judgeServers(all []string, away []answer) finding {
	f := fine("servers", "%d of %d answer", len(all)-len(away), len(all)).with("named", float64(len(all))).with("away",
		float64(len(away)))
	if len(away) == 0 {
		return f
	}
	f.Detail += ": not"
	for i, a := range away {
		// Most errors name the server, and end with what to do, which comes below.
		why := strings.TrimPrefix(a.err.Error(), "cannot reach the server at "+a.server+": ")
		why = strings.TrimPrefix(why, "the server at "+a.server+" ")
		why, _, _ = strings.Cut(why, ": is it running?")
		f.Detail += fmt.Sprintf("%s %s (%s)", strings.Repeat(",", min(i, 1)), a.server, why)
	}
	return f.warn("commands go on to the next one; start those again, " +
		"or take them out of --server and LEASEHOLD_SERVER")
}

// lookAtCluster judges the health of the servers, if they are a cluster. Of servers that are not ready
// it is no news if they cannot tell.
func (d *Diagnosis) lookAtCluster(ctx context.Context, c *cli.Conn, ready bool) {
	cluster, err := c.Cluster(ctx)
	if err != nil && !ready {
		return
	}
	switch codeOf(err) {
	case leasehold.Refused, leasehold.NotFound:
		return // it is none, or is too old to know what one is
	}
	if err != nil {
		d.Add(fine("cluster", "%v", err).warn("see their health: " + c.Again("cluster", "status")))
		return
	}
	d.Add(judgeAsDoctor(c, cluster))
	if q := cluster.Quarantine; q != nil {
		d.Add(fine("quarantine", "%s", QuarantineText(*q)).with("remaining_seconds",
			time.Duration(*q.Remaining).Seconds()).warn(QuarantineAdvice(c)))
	}
}

// QuarantineText says how long nothing is granted after a restore, and why.
func QuarantineText(q v1.Quarantine) string {
	until := ""
	if q.Ends != nil {
		until = " (until " + cli.Absolute(q.Ends.Time) + ")"
	}
	return fmt.Sprintf("nothing is granted for another %s%s: the cluster was restored from a backup of %s",
		cli.Short(time.Duration(*q.Remaining)), until, cli.Absolute(q.Backup.Time))
}

// QuarantineAdvice says what to do about a quarantine.
func QuarantineAdvice(c *cli.Conn) string {
	return "wait for the quarantine to end; or, if no lease granted after the backup can still be held, end it now: " +
		c.Again("cluster", "end-quarantine", "--reason", "all holders were stopped")
}

// judgeAsDoctor makes one finding of the condition of a cluster.
func judgeAsDoctor(c *cli.Conn, cluster v1.Cluster) finding {
	found := JudgeCluster(cluster)
	f := fine("cluster", "%s", found.State).with("servers", float64(len(cluster.Servers)))
	var advice []string
	for _, line := range found.Wrong {
		advice = append(advice, line(c))
	}
	switch {
	case found.Stuck:
		return f.fail(leasehold.Unavailable, strings.Join(advice, "; "))
	case len(advice) > 0:
		return f.warn(strings.Join(advice, "; "))
	}
	if urls := clientURLs(cluster); len(c.Client.Servers) == 1 && len(urls) > 1 {
		f.Detail += "; only one of them is named here"
		return f.warn("name all, so that commands go on when one is away: LEASEHOLD_SERVER=" + strings.Join(urls, ","))
	}
	return f
}

func clientURLs(cluster v1.Cluster) (urls []string) {
	for _, s := range cluster.Servers {
		if s.Client != "" {
			urls = append(urls, s.Client)
		}
	}
	return urls
}

// A Condition is the health of a cluster: a summary, what is wrong, and what is merely worth
// knowing. Each line is a function because the commands in it name the server of the connection
// that asked.
type Condition struct {
	State string
	Stuck bool // nothing can be decided, as far as the server knows that was asked
	Wrong []func(*cli.Conn) string
	Notes []func(*cli.Conn) string
}

func (f *Condition) bad(format string, args ...any) {
	f.Wrong = append(f.Wrong, func(*cli.Conn) string { return fmt.Sprintf(format, args...) })
}

func (f *Condition) note(format string, args ...any) {
	f.Notes = append(f.Notes, func(*cli.Conn) string { return fmt.Sprintf(format, args...) })
}

// farBehind is a lag that entries under way do not explain.
const farBehind = 5000

// JudgeCluster judges the health of a cluster, and says what to do. It is one server's view: what
// that server cannot reach may still work, so a majority that confirms the leader outweighs what it
// sees itself.
func JudgeCluster(c v1.Cluster) Condition {
	var f Condition
	voters, up := 0, 0
	var away, silent []string
	if c.Next != 0 {
		f.note("all servers know level %d: when none has to go back to an older version, run leasehold cluster upgrade",
			c.Next)
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
		if s.Reachable && !s.Answered {
			silent = append(silent, s.Name)
		}
	}
	// A server that is still catching up has no vote, and so does not count.
	needed := voters/2 + 1
	f.State = fmt.Sprintf("%d of %s up", up, cli.Plural(voters, "voter is", "voters are"))
	f.Stuck = !c.Confirmed && (up < needed || c.Leader == "")
	switch {
	case up < needed && c.Confirmed:
		f.State = fmt.Sprintf("the cluster works, and a majority confirms who leads, but %s hears from only %d of %d "+
			"voters", c.Self, up, voters)
		f.bad("look at the network between %s and %s", c.Self, strings.Join(away, ", "))
	case up < needed:
		f.State += fmt.Sprintf(" as %s sees it, and %d are needed: nothing can be granted or renewed there", c.Self,
			needed)
		f.judgeMinority(c, away)
	case c.Leader == "" && !c.Confirmed:
		f.State += "; they are electing a leader: look again in a moment"
		f.bad("if nobody leads for long, the servers can't reach each other at their peer addresses: see their logs")
	case voters == 1 && len(c.Servers) == 1:
		f.State = "single server, no redundancy"
	case voters == 1:
		f.State += "; no redundancy until another server has a vote"
	case len(silent) > 0:
		// They count as up until nobody has heard of them for a while, and may be dead already.
		f.State = fmt.Sprintf("%d of %d voters were heard from in the last seconds; no answer from %s", up, voters,
			strings.Join(silent, ", "))
	case up == needed:
		f.State += "; none may fail now"
	default:
		f.State += fmt.Sprintf("; %d may fail", up-needed)
	}
	for _, s := range c.Servers {
		f.judgeServer(c, s, up >= needed || c.Confirmed)
	}
	f.judgeAll(c, voters)
	return f
}

// judgeMinority says what to do where a server reaches no majority. The others may go on without
// it, so it never advises a removal or a new cluster, which would harm one that works.
func (f *Condition) judgeMinority(c v1.Cluster, away []string) {
	var urls []string
	for _, s := range c.Servers {
		if !s.Reachable && s.Client != "" {
			urls = append(urls, s.Client)
		}
	}
	ask := "ask one of them"
	if len(urls) > 0 {
		ask += ": leasehold cluster status --server " + cli.Quote(strings.Join(urls, ","))
	}
	f.bad("the others may go on without %s: %s", c.Self, ask)
	verb, them := "are", "them"
	if len(away) == 1 {
		verb, them = "is", "it"
	}
	f.bad("if %s %s not running, start %s again: as long as the data still exist, nothing is lost",
		strings.Join(away, ", "), verb, them)
}

// judgeServer judges one server. It advises a removal only while the cluster works without it.
func (f *Condition) judgeServer(c v1.Cluster, s v1.Server, works bool) {
	// The cases are ordered from what stops a server to what slows it down: one line for each
	// server.
	behind, _ := Lag(c, s)
	switch {
	case !s.Reachable && s.LowRoom:
		f.bad("%s is away, and last reported that its disk is nearly full: make room there, then start it",
			s.Name)
	case s.Reachable && !s.Answered:
		f.bad("%s did not answer %s in time, but %s: it has just gone away, or the network between them is slow",
			s.Name, c.Self, wasHeard(s))
	case !s.Reachable && s.Name == c.Leader && works:
		f.bad("%s, which led, is away: the others elect another leader within a second or two; look again, "+
			"and start it",
			s.Name)
	case !s.Reachable && s.Voter && works:
		f.Wrong = append(f.Wrong, func(c *cli.Conn) string {
			return fmt.Sprintf("%s is away%s: start it again. If it is lost for good: %s, then "+
				"add another one (leasehold cluster add) and start it with --join", s.Name, lastHeard(s),
				c.Again("cluster", "remove", s.Name))
		})
	case !s.Reachable && !s.Voter:
		f.Wrong = append(f.Wrong, func(c *cli.Conn) string {
			return fmt.Sprintf("%s was added and does not run: start it with --join, or remove it again: %s", s.Name,
				c.Again("cluster", "remove", s.Name))
		})
	case s.Reachable && !s.Voter && behind <= farBehind:
		f.note("%s is catching up, and gets its vote by itself", s.Name)
	case s.Reachable && behind > farBehind:
		f.bad("%s is behind by %d entries: if that does not shrink, its disk or its network is too slow", s.Name,
			behind)
	}
	if s.Starting {
		f.note("%s is starting, and lets no clients in yet", s.Name)
	}
	if s.Reachable && s.LowRoom {
		f.bad("the disk of %s is nearly full: make room, or give it a larger one", s.Name)
	}
}

func wasHeard(s v1.Server) string {
	return fmt.Sprintf("%s heard from it %s ago", s.HeardBy, cli.Short(Silence(s)))
}

func lastHeard(s v1.Server) string {
	if s.HeardBy == "" || s.HeardMS == nil {
		return ""
	}
	return ", last heard from by " + s.HeardBy + " " + cli.Short(Silence(s)) + " ago"
}

// judgeAll judges what shows only in all servers together.
func (f *Condition) judgeAll(c v1.Cluster, voters int) {
	if len(c.Differ) > 0 {
		f.bad("the state of %s differs from that of the others: one that differs from the majority stops by itself, "+
			"and has to join again. If it lasts, see the logs and docs/cluster.md", strings.Join(c.Differ, ", "))
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
		f.note("the servers run %d versions: that is fine during an upgrade", len(versions))
	}
}

// Lag returns by how many entries a server is behind the leader, if both are known.
func Lag(c v1.Cluster, s v1.Server) (entries uint64, known bool) {
	for _, leader := range c.Servers {
		if leader.Name == c.Leader && leader.Reachable && s.Reachable {
			// They are not read at the same moment: a follower can seem to be ahead.
			return max(leader.Applied, s.Applied) - s.Applied, true
		}
	}
	return 0, false
}

// Silence returns for how long nobody has heard of a server; 0 if it is not known.
func Silence(s v1.Server) time.Duration {
	ms := s.HeardMS
	if ms == nil {
		ms = s.SilentMS
	}
	if ms == nil {
		return 0
	}
	return time.Duration(*ms) * time.Millisecond
}
