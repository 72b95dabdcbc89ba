package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// A checkFunc reads through the data of a stopped server.
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

// Check returns the command check.
func Check(a *cli.App, o Outside) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the data of a stopped server, a backup, or a running cluster",
		Long: `Check with --data reads the data of a stopped server as the server would when it
starts: the newest snapshot, then the log after it. It then checks that the result does
not contradict itself: a resource with two holders, a token granted twice, a waiter
without a place in a queue, a lease that nothing would ever end. With --backup it does
the same with a whole backup.

With --server, or where LEASEHOLD_SERVER is set, it asks a running cluster: all servers
hash their state at the same place in the log, and the hashes are compared. Servers that
differ mean a bug or a broken machine: see docs/backup.md.

It exits with code 0 if nothing is wrong, and with code 70 if something is damaged,
contradicts itself or differs; each such thing is a line on standard error. The code is
69 if a server did not answer. Servers with the same state have the same checksum.`,
		Example: `  leasehold check --data leasehold-data
  leasehold check --backup leasehold.backup
  leasehold check --server https://10.0.0.1:4653`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		what, err := whatToCheck(a, cmd)
		switch {
		case err != nil:
			return err
		case what == "server":
			return a.Talk(func(ctx context.Context, c *cli.Conn,
				_ []string) error {
				return checkServers(ctx, a, c)
			})(cmd, args)
		case what == "backup":
			return checkBackup(a, cmd.Flags().Lookup("backup").Value.String())
		}
		found, err := o.check(cmd.Flags().Lookup("data").Value.String())
		if err != nil {
			return explainCheck(err)
		}
		return printChecked(a, found)
	}
	cmd.Flags().String("data", "", "directory of a stopped server")
	cmd.Flags().String("backup", "", "file that backup made")
	a.ServerFlags(cmd)
	if err := errors.Join(cmd.MarkFlagDirname("data"), cmd.MarkFlagFilename("backup")); err != nil {
		panic(err) // the flags were just made
	}
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// whatToCheck returns which of three flags was given. Without any it is the server that
// LEASEHOLD_SERVER names.
func whatToCheck(a *cli.App, cmd *cobra.Command) (string, error) {
	var given []string
	for _, name := range []string{"data", "backup", "server"} {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() != "" {
			given = append(given, name)
		}
	}
	switch len(given) {
	case 0:
		if slices.ContainsFunc(a.Environ, func(s string) bool { return namesServer.MatchString(s) }) {
			return "server", nil
		}
		return "", cli.SeeHelp(cmd, cli.Usage("check needs --data, --backup or --server: name the directory of a "+
			"stopped server, a backup, or a running cluster"))
	case 1:
		return given[0], nil
	}
	return "", cli.SeeHelp(cmd, cli.Usage("check takes --%s or --%s, not both", given[0], given[1]))
}

var namesServer = regexp.MustCompile("^LEASEHOLD_SERVER=.")

func checkBackup(a *cli.App, name string) error {
	head, report, err := storage.CheckBackup(name)
	if err != nil {
		return explainCheck(err)
	}
	checksum := fmt.Sprintf("%08x", report.Checksum)
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(struct {
			kept
			Checksum string `json:"checksum"`
		}{kept{File: name, BackupHead: head}, checksum})
	}
	s := &cli.Details{}
	s.Line("Backup", "%s", cli.Printable(name))
	backup(s, a, head)
	s.Line("Checksum", "%s", checksum)
	if _, err := fmt.Fprint(a.Stdout, s.String()); err != nil {
		return cli.Written(err)
	}
	a.Say("ok: the data are intact and consistent")
	return nil
}

// checkServers compares what the servers of a cluster know.
func checkServers(ctx context.Context, a *cli.App, c *cli.Conn) error {
	sums, err := c.CheckCluster(ctx)
	if err != nil {
		return err
	}
	if a.Output == cli.FormatJSON {
		err = a.PrintJSON(sums)
	} else {
		err = printSums(a, sums)
	}
	if err != nil {
		return err
	}
	if err := judgeSums(sums); err != nil {
		return err
	}
	a.Say("ok: %s the same state at index %d of the log", cli.Plural(len(sums.Items), "server has", "servers have"),
		sums.Index)
	return nil
}

func printSums(a *cli.App, sums v1.Sums) error {
	var rows [][]string
	for _, s := range sums.Items {
		rows = append(rows, []string{s.Name, s.Hash, s.Error})
	}
	return a.PrintTable([]cli.Column{{Name: "SERVER"}, {Name: "HASH"}, {Name: "ERROR", Flexible: true}}, rows)
}

// judgeSums returns the error of a cluster whose servers have summed up their states. That some
// differ is worse than that some did not answer, so it decides the exit code.
func judgeSums(sums v1.Sums) error {
	if !sums.Same {
		return &cli.CodedError{Code: cli.ExitBug, Err: cli.Hint(fmt.Errorf("the servers have different states at "+
			"index %d of the log", sums.Index),
			"take a backup, and see docs/backup.md: remove one of them and let it join again")}
	}
	var silent cli.Several
	for _, s := range sums.Items {
		if s.Hash == "" {
			silent = append(silent, cli.Failure(leasehold.Unavailable, "%s did not answer: %s", s.Name, s.Error))
		}
	}
	if silent != nil {
		return silent
	}
	return nil
}

// explainCheck gives an error without a code the one that fits: not found, or data that cannot be
// right.
func explainCheck(err error) error {
	var known *leasehold.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return cli.Failure(leasehold.NotFound, "%v", err)
	}
	return err
}

func printChecked(a *cli.App, found checked) error {
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(found)
	}
	s := &cli.Details{}
	s.Line("Data", "%s", cli.Printable(found.Data))
	s.Line("Leases", "%d", found.Leases)
	s.Line("Waiters", "%d", found.Waiters)
	s.Line("Sessions", "%d", found.Sessions)
	s.Line("Resources", "%d in %s", found.Resources, cli.Plural(found.Namespaces, "namespace", "namespaces"))
	s.Line("Log", "%s, up to index %d", cli.Plural(found.Entries, "entry", "entries"), found.Index)
	if found.Snapshot > 0 {
		s.Line("Snapshot", "at index %d", found.Snapshot)
	}
	s.Line("Checksum", "%s", found.Checksum)
	if _, err := fmt.Fprint(a.Stdout, s.String()); err != nil {
		return cli.Written(err)
	}
	a.Say("ok: the data are intact and consistent")
	return nil
}

// checkData reads through the data of this version's engine.
func checkData(dir string) (checked, error) {
	report, err := storage.Check(dir)
	if err != nil {
		return checked{}, err
	}
	n := report.Counts
	return checked{
		Data: dir, Namespaces: n.Namespaces, Resources: n.Resources, Leases: n.Leases, Waiters: n.Waiters,
		Sessions: n.Sessions,
		Entries:  report.Entries, Snapshot: report.Snapshot, Index: report.Index, Checksum: fmt.Sprintf("%08x",
			report.Checksum),
	}, nil
}
