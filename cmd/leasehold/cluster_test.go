package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A village is a cluster of which nothing but its answers exists.
type village struct {
	*memory.Engine
	outlook engine.Outlook
	look    func() engine.Outlook // if set, instead of outlook
	err     error
	asked   []string
}

func (v *village) note(format string, args ...any) error {
	v.asked = append(v.asked, fmt.Sprintf(format, args...))
	return v.err
}

func (v *village) Outlook(context.Context) (engine.Outlook, error) {
	if v.look != nil {
		return v.look(), nil
	}
	return v.outlook, nil
}
func (v *village) Add(_ context.Context, name, address string) (engine.Server, error) {
	for _, s := range v.outlook.Servers {
		if s.Name == name {
			return s, v.note("add %s", name)
		}
	}
	return engine.Server{ID: 9, Name: name, Peer: address, Silent: -1}, v.note("add %s %s", name, address)
}
func (v *village) Promote(_ context.Context, name string) error { return v.note("promote %s", name) }
func (v *village) Remove(_ context.Context, name string) error  { return v.note("remove %s", name) }
func (v *village) Upgrade(context.Context) (core.Level, error)  { return 5, v.note("upgrade") }
func (v *village) Transfer(_ context.Context, name string) (string, error) {
	return "n2", v.note("transfer %q", name)
}
func (v *village) Sums(context.Context) (engine.Sums, error)   { return engine.Sums{}, v.note("sums") }
func (v *village) Backup(_ context.Context, _ io.Writer) error { return v.note("backup") }

// newVillage has three servers of which all is well, and a program to ask them with.
func newVillage(t *testing.T, atTerminal bool) (*village, *trial) {
	t.Helper()
	v := &village{}
	for i := uint64(1); i <= 3; i++ {
		v.outlook.Servers = append(v.outlook.Servers, engine.Server{
			ID: i, Name: fmt.Sprint("n", i),
			Peer: fmt.Sprintf("10.0.0.%d:4654", i), Client: fmt.Sprintf("http://10.0.0.%d:4653", i),
			Voter: true, Version: "1", Reachable: true, Applied: 100, Oldest: core.OldestLevel, Newest: core.NewestLevel,
		})
	}
	v.outlook.Cluster, v.outlook.Leader, v.outlook.Self, v.outlook.Term, v.outlook.Level = "c", 1, 2, 4,
		core.NewestLevel
	s, err := startBehind(func(e *memory.Engine) engine.Engine {
		v.Engine = e
		return v
	})
	if err != nil {
		t.Fatal(err)
	}
	tr := newTrialAt(t, s, atTerminal)
	tr.Width = func() int { return 200 }
	return v, tr
}

func TestClusterStatus(t *testing.T) {
	v, tr := newVillage(t, false)
	tr.does(t, 0, "cluster", "status")
	want := `Cluster:    c, term 4
Leader:     n1
State:      3 of 3 voters are up; 1 may fail
Level:      ` + fmt.Sprint(core.NewestLevel) + `

NAME  ROLE    STATE  LAG  CLIENTS AT
n1    leader  up       0  http://10.0.0.1:4653
n2    voter   up       0  http://10.0.0.2:4653
n3    voter   up       0  http://10.0.0.3:4653
`
	if tr.out.String() != want {
		t.Errorf("it shows\n%s", tr.out.String())
	}
	tr.does(t, 0, "cluster", "status", "--check", "-o", "wide")
	if !strings.Contains(tr.out.String(), fmt.Sprintf("10.0.0.2:4654   2      100  1        %d-%d\n",
		core.OldestLevel, core.NewestLevel)) {
		t.Errorf("it shows\n%s", tr.out.String())
	}
	tr.does(t, 0, "cluster", "status", "-o", "name")
	if tr.out.String() != "n1\nn2\nn3\n" {
		t.Errorf("the names are %q", tr.out.String())
	}

	v.outlook.Servers[1].Reachable, v.outlook.Servers[1].Silent = false, 90*time.Second
	tr.does(t, cli.ExitAlarm, "cluster", "status")
	for _, text := range []string{"2 of 3 voters are up; none may fail now", "away 1m30s",
		"\n-> n2 is away: start it again. If it is lost for good: leasehold cluster remove n2, then add " +
			"another one (leasehold cluster add) and start it with --join\n"} {
		if !strings.Contains(tr.out.String(), text) {
			t.Errorf("it does not show %q:\n%s", text, tr.out.String())
		}
	}
	v.outlook.Servers[1].HeardBy, v.outlook.Servers[1].Heard = 3, 80*time.Second
	tr.does(t, cli.ExitAlarm, "cluster", "status")
	if !strings.Contains(tr.out.String(), "\n-> n2 is away, last heard from by n3 1m20s ago: start it again.") {
		t.Errorf("it shows\n%s", tr.out.String())
	}
	tr.does(t, cli.ExitAlarm, "cluster", "status", "-o", "wide")
	if !strings.Contains(tr.out.String(), "1m20s ago by n3") {
		t.Errorf("it shows\n%s", tr.out.String())
	}
	tr.does(t, cli.ExitAlarm, "cluster", "status", "--check", "-o", "json")
	var got v1.Cluster
	if err := json.Unmarshal(tr.out.Bytes(), &got); err != nil || len(got.Servers) != 3 ||
		!strings.Contains(tr.err.String(), `"code":"alarm"`) {
		t.Errorf("it prints %s and %s", tr.out.String(), tr.err.String())
	}

	v.outlook.Servers[2].Reachable, v.outlook.Leader = false, 0
	tr.does(t, cli.ExitUnavailable, "cluster", "status")
	if !strings.Contains(tr.out.String(), "1 of 3 voters are up as n2 sees it, and 2 are needed") ||
		strings.Contains(tr.out.String(), "remove") {
		t.Errorf("it shows\n%s", tr.out.String())
	}
	for _, text := range []string{
		"-> the others may go on without n2: ask one of them: leasehold cluster status --server " +
			"http://10.0.0.2:4653,http://10.0.0.3:4653\n",
		"-> if n2, n3 are not running, start them again: as long as the data still exist, nothing is lost\n",
	} {
		if !strings.Contains(tr.out.String(), text) {
			t.Errorf("it does not show %q:\n%s", text, tr.out.String())
		}
	}

	// Whatever a server knows of the others: while a majority confirms who leads, it works.
	v.outlook.Leader, v.outlook.Confirmed = 3, true
	tr.does(t, cli.ExitAlarm, "cluster", "status")
	if !strings.Contains(tr.out.String(), "the cluster works") ||
		strings.Contains(tr.out.String(), "start them again") || strings.Contains(tr.out.String(), "backup") {
		t.Errorf("it shows\n%s", tr.out.String())
	}
	v.err = engine.Unavailable("no")
	tr.does(t, cli.ExitUnavailable, "cluster", "transfer")
}

// Servers that were just started need a moment: status waits for them where it is told to.
func TestClusterStatusWaits(t *testing.T) {
	v, tr := newVillage(t, false)
	looks := 0
	v.look = func() engine.Outlook {
		looks++
		o := v.outlook
		o.Servers = slices.Clone(o.Servers)
		o.Servers[1].Reachable = looks > 2
		o.Servers[2].Voter = looks != 3
		o.Servers[2].Starting = looks == 4
		return o
	}
	tr.does(t, 0, "cluster", "status", "--wait", "1m")
	if looks != 5 || !strings.Contains(tr.out.String(), "3 of 3 voters are up; 1 may fail") {
		t.Errorf("after %d looks it shows\n%s", looks, tr.out.String())
	}
	looks = -1000
	tr.does(t, cli.ExitAlarm, "cluster", "status", "--wait", "10ms")
	if looks > -997 || !strings.Contains(tr.out.String(), "-> n2 is away") {
		t.Errorf("after %d looks it shows\n%s", looks+1000, tr.out.String())
	}
}

func TestClusterCommands(t *testing.T) {
	v, tr := newVillage(t, false)
	tr.does(t, 0, "cluster", "add", "n4", "10.0.0.4:4654")
	if !strings.Contains(tr.err.String(), "leasehold serve --name n4 --listen 10.0.0.4:4653 --peer-listen 10.0.0.4:4654 "+
		"--join 10.0.0.1:4654,10.0.0.2:4654,10.0.0.3:4654") {
		t.Errorf("it says\n%s", tr.err.String())
	}
	tr.does(t, 0, "cluster", "add", "n3", "10.0.0.3:4654")
	if !strings.Contains(tr.err.String(), "n3 is a member already, with a vote") {
		t.Errorf("it says\n%s", tr.err.String())
	}
	tr.does(t, 0, "cluster", "add", "n4", "10.0.0.4:4654", "-o", "name")
	tr.does(t, 0, "cluster", "promote", "n4")
	tr.does(t, 0, "cluster", "transfer")
	tr.does(t, 0, "cluster", "transfer", "n2", "-o", "name")
	if tr.out.String() != "n2\n" {
		t.Errorf("it prints %q", tr.out.String())
	}
	tr.does(t, cli.ExitUsage, "cluster", "remove", "n3")
	if !strings.Contains(tr.err.String(), "give --yes if you are sure") ||
		!strings.Contains(tr.err.String(), "it would remove n3 (voter, up) at 10.0.0.3:4654") {
		t.Errorf("it says\n%s", tr.err.String())
	}
	tr.does(t, cli.ExitNotFound, "cluster", "remove", "n9")
	tr.does(t, 0, "cluster", "remove", "n3", "--yes")
	want := []string{"add n4 10.0.0.4:4654", "add n3", "add n4 10.0.0.4:4654", "promote n4", `transfer ""`,
		`transfer "n2"`, "remove n3"}
	if !slices.Equal(v.asked, want) {
		t.Errorf("it asked for %q, want %q", v.asked, want)
	}

	for code, exit := range map[leasehold.Code]int{leasehold.NotFound: 66, leasehold.Refused: 64,
		leasehold.Unavailable: 69, leasehold.Undecided: 74} {
		v.err = &leasehold.Error{Code: code, Message: "because"}
		for _, args := range []string{"cluster add n4 x:1", "cluster promote n4", "cluster remove n3 --yes",
			"cluster transfer n3"} {
			tr.does(t, exit, strings.Fields(args)...)
			if !strings.Contains(tr.err.String(), "leasehold cluster status") {
				t.Errorf("%s says\n%s", args, tr.err.String())
			}
		}
	}
	for _, args := range []string{"cluster add n4", "cluster add n4 10.0.0.4", "cluster promote", "cluster remove",
		"cluster transfer a b", "cluster stats", "cluster status x"} {
		tr.does(t, cli.ExitUsage, strings.Fields(args)...)
	}
}

func TestUpgradeSaysWhatItDid(t *testing.T) {
	v, tr := newVillage(t, false)
	tr.does(t, 0, "cluster", "upgrade")
	if want := fmt.Sprintf("raised: the cluster went from level %d to level 5\n",
		v.outlook.Level); tr.err.String() != want {
		t.Errorf("it says %q, want %q", tr.err.String(), want)
	}
	v.outlook.Level = 5
	tr.does(t, 0, "cluster", "upgrade")
	if !strings.Contains(tr.err.String(), "already at level 5") {
		t.Errorf("it says %q", tr.err.String())
	}
}

func TestRemoveAsksOnATerminal(t *testing.T) {
	v, tr := newVillage(t, true)
	for answer, code := range map[string]int{"": cli.ExitUsage, "n\n": cli.ExitUsage, "Y es\n": cli.ExitUsage} {
		tr.Stdin = strings.NewReader(answer)
		tr.does(t, code, "cluster", "remove", "n3")
		if !strings.Contains(tr.err.String(), "This will remove n3 (voter, up) at 10.0.0.3:4654 for good.\nThen 2 of "+
			"2 voters are up, and 2 are needed.") {
			t.Errorf("the answer %q was told:\n%s", answer, tr.err.String())
		}
	}
	if len(v.asked) != 0 {
		t.Errorf("it asked for %q", v.asked)
	}
	tr.Stdin = strings.NewReader("y\n")
	tr.does(t, 0, "cluster", "remove", "n3")
}

// A server that is no cluster says so in words.
func TestNoClusterHere(t *testing.T) {
	tr := newTrial(t, false)
	tr.does(t, cli.ExitUsage, "cluster", "status")
	if !strings.Contains(tr.err.String(), "this server is not part of a cluster") {
		t.Errorf("it says\n%s", tr.err.String())
	}
}

func TestClusterCompletes(t *testing.T) {
	_, tr := newVillage(t, false)
	tr.does(t, 0, "__complete", "cluster", "remove", "n")
	if !strings.Contains(tr.out.String(), "n1\tleader, up\nn2\tvoter, up\n") {
		t.Errorf("it offers\n%s", tr.out.String())
	}
}

// Commands go on to the next server.
func TestCommandsAskTheNextServer(t *testing.T) {
	tr := newTrial(t, false)
	both := "http://127.0.0.1:1," + tr.Getenv("LEASEHOLD_SERVER")
	tr.does(t, 0, "acquire", "a", "--id", "a", "--ttl", "1h", "--server", both)
	tr.does(t, 0, "run", "b", "--server", both, "--", "true")
	tr.does(t, cli.ExitUnavailable, "list", "--server", "http://127.0.0.1:1,http://127.0.0.1:2")
	if !strings.Contains(tr.err.String(), "none of 2 servers could be reached:\nleasehold:   cannot reach the server "+
		"at http://127.0.0.1:1") {
		t.Errorf("it says\n%s", tr.err.String())
	}
}

// The doctor sees what a command that goes on to the next server hides.
func TestDoctorLooksAtTheCluster(t *testing.T) {
	v, tr := newVillage(t, false)
	look := func(code int, want string, args ...string) {
		t.Helper()
		tr.does(t, code, append([]string{"doctor", "--for", "1ms"}, args...)...)
		if !strings.Contains(tr.out.String(), want) {
			t.Errorf("it does not find %q:\n%s", want, tr.out.String())
		}
	}
	look(0, "3 of 3 voters are up; 1 may fail; only one of them is named here")
	look(0, "LEASEHOLD_SERVER=http://10.0.0.1:4653,http://10.0.0.2:4653,http://10.0.0.3:4653")
	both := tr.Getenv("LEASEHOLD_SERVER") + ",http://127.0.0.1:1"
	look(0, "servers     1 of 2 answer: not http://127.0.0.1:1 (dial tcp 127.0.0.1:1: ", "--server", both)
	v.outlook.Servers[1].Reachable = false
	look(0, "-> n2 is away")
	v.outlook.Leader = 0
	look(cli.ExitUnavailable, "they are electing a leader")
	if strings.Contains(tr.out.String(), "ok       cluster") {
		t.Errorf("it finds\n%s", tr.out.String())
	}
}
