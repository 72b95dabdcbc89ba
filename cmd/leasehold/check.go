package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/engine/cluster"
)

// A checkFunc looks through the data of a stopped server.
type checkFunc func(dir string) (checked, error)

// checked is what was found, and what check prints as JSON.
type checked struct {
	Data       string `json:"data"`
	Namespaces int    `json:"namespaces"`
	Resources  int    `json:"resources"`
	Leases     int    `json:"leases"`
	Waiters    int    `json:"waiters"`
	Sessions   int    `json:"sessions"`
	Entries    int    `json:"entries"`  // of the log, after the snapshot
	Snapshot   uint64 `json:"snapshot"` // where it stands; 0: there is none
	Index      uint64 `json:"index"`    // of the last entry
	Checksum   string `json:"checksum"` // equal for equal states
}

func (a *app) checkCommand(o outside) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the data of a stopped server, a backup, or a running cluster",
		Long: `Check with --data reads the data of a server that does not run, just as the server
would when it starts: the newest snapshot, then the log behind it. It then looks
whether what comes out contradicts itself: a resource with two holders, a token that
was given twice, a waiter without a place in a queue, a lease that nothing would ever
end. With --backup it does the same with a backup, all of which it reads.

With --server it asks a running cluster: all servers sum up what they know at one and
the same place of the log, and the sums are compared. Servers that differ are a bug or
a broken disk, and can't be told apart from outside: see docs/backup.md.

It ends with code 0 if all is well, and with code 70 if something is damaged,
contradicts itself or differs; each such thing is a line on standard error. A server
that did not answer is a code 69. The checksum names the state: two servers that were
told the same have the same.`,
		Example: `  leasehold check --data leasehold-data
  leasehold check --backup leasehold.backup
  leasehold check --server https://10.0.0.1:4653`,
		Args: takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		what, err := whatToCheck(cmd)
		switch {
		case err != nil:
			return err
		case what == "server":
			return a.talks(func(ctx context.Context, c *conn, _ []string) error { return a.checkServers(ctx, c) })(cmd, args)
		case what == "backup":
			return a.checkBackup(cmd.Flags().Lookup("backup").Value.String())
		}
		found, err := o.check(cmd.Flags().Lookup("data").Value.String())
		if err != nil {
			return explainCheck(err)
		}
		return a.printChecked(found)
	}
	cmd.Flags().String("data", "", "directory of a stopped server")
	cmd.Flags().String("backup", "", "file that backup made")
	serverFlags(cmd)
	if err := errors.Join(cmd.MarkFlagDirname("data"), cmd.MarkFlagFilename("backup")); err != nil {
		panic(err) // the flags were just made
	}
	a.outputFlag(cmd, formatJSON)
	return cmd
}

// whatToCheck is the one of three flags that was given. A server is not asked because
// some variable names one: who forgot a flag should hear of it.
func whatToCheck(cmd *cobra.Command) (string, error) {
	var given []string
	for _, name := range []string{"data", "backup", "server"} {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() != "" {
			given = append(given, name)
		}
	}
	switch len(given) {
	case 0:
		return "", seeHelp(cmd, usage("check needs --data, --backup or --server: name the directory of a stopped server, a backup, or a cluster that runs"))
	case 1:
		return given[0], nil
	}
	return "", seeHelp(cmd, usage("check takes --%s or --%s, not both", given[0], given[1]))
}

func (a *app) checkBackup(name string) error {
	head, report, err := cluster.CheckBackup(name)
	if err != nil {
		return explainCheck(err)
	}
	checksum := fmt.Sprintf("%08x", report.Checksum)
	if a.output == formatJSON {
		return a.printJSON(struct {
			kept
			Checksum string `json:"checksum"`
		}{kept{File: name, BackupHead: head}, checksum})
	}
	s := &sheet{}
	s.line("Backup", "%s", printable(name))
	s.backup(a, head)
	s.line("Checksum", "%s", checksum)
	if _, err := fmt.Fprint(a.stdout, s.String()); err != nil {
		return written(err)
	}
	a.say("all is well: nothing is damaged or contradicts itself")
	return nil
}

// checkServers compares what the servers of a cluster know.
func (a *app) checkServers(ctx context.Context, c *conn) error {
	sums, err := c.CheckCluster(ctx)
	if err != nil {
		return err
	}
	if a.output == formatJSON {
		err = a.printJSON(sums)
	} else {
		err = a.printSums(sums)
	}
	if err != nil {
		return err
	}
	if err := judgeSums(sums); err != nil {
		return err
	}
	a.say("all is well: %s the same at %d of the log", plural(len(sums.Items), "server knows", "servers know"), sums.Index)
	return nil
}

func (a *app) printSums(sums v1.Sums) error {
	var rows [][]string
	for _, s := range sums.Items {
		rows = append(rows, []string{s.Name, s.Hash, s.Error})
	}
	return a.printTable([]column{{name: "SERVER"}, {name: "HASH"}, {name: "ERROR", flexible: true}}, rows)
}

// judgeSums tells what is wrong with a cluster whose servers summed up their states. That
// some differ is worse than that some did not answer.
func judgeSums(sums v1.Sums) error {
	if !sums.Same {
		return &codedError{code: exitBug, err: hint(fmt.Errorf("the servers do not know the same at %d of the log", sums.Index),
			"take a backup, and see docs/backup.md: one of them has to be removed and to join anew")}
	}
	var silent several
	for _, s := range sums.Items {
		if s.Hash == "" {
			silent = append(silent, failure(leasehold.Unavailable, "%s did not answer: %s", s.Name, s.Error))
		}
	}
	if silent != nil {
		return silent
	}
	return nil
}

// explainCheck gives an error that has no code the one that fits: what is not
// there, or data that can't be right.
func explainCheck(err error) error {
	var known *leasehold.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return failure(leasehold.NotFound, "%v", err)
	}
	return err
}

func (a *app) printChecked(found checked) error {
	if a.output == formatJSON {
		return a.printJSON(found)
	}
	s := &sheet{}
	s.line("Data", "%s", printable(found.Data))
	s.line("Leases", "%d", found.Leases)
	s.line("Waiters", "%d", found.Waiters)
	s.line("Sessions", "%d", found.Sessions)
	s.line("Resources", "%d in %s", found.Resources, plural(found.Namespaces, "namespace", "namespaces"))
	s.line("Log", "%s, up to %d", plural(found.Entries, "entry", "entries"), found.Index)
	if found.Snapshot > 0 {
		s.line("Snapshot", "at %d", found.Snapshot)
	}
	s.line("Checksum", "%s", found.Checksum)
	if _, err := fmt.Fprint(a.stdout, s.String()); err != nil {
		return written(err)
	}
	a.say("all is well: nothing is damaged or contradicts itself")
	return nil
}

// checkData looks through the data of this version's engine.
func checkData(dir string) (checked, error) {
	report, err := cluster.Check(dir)
	if err != nil {
		return checked{}, err
	}
	n := report.Counts
	return checked{
		Data: dir, Namespaces: n.Namespaces, Resources: n.Resources, Leases: n.Leases, Waiters: n.Waiters, Sessions: n.Sessions,
		Entries: report.Entries, Snapshot: report.Snapshot, Index: report.Index, Checksum: fmt.Sprintf("%08x", report.Checksum),
	}, nil
}
