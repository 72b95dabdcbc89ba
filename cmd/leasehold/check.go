package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
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

func (a *app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the data of a stopped server",
		Long: `Check reads the data of a server that does not run, just as the server would when
it starts: the newest snapshot, then the log behind it. It then looks whether what
comes out contradicts itself: a resource with two holders, a token that was given
twice, a waiter without a place in a queue, a lease that nothing would ever end.

It ends with code 0 if all is well, and with code 70 if something is damaged or
contradicts itself; each such thing is a line on standard error. The checksum names
the state: two servers that were told the same have the same.`,
		Example: `  leasehold check --data leasehold-data
  leasehold check --data /var/lib/leasehold -o json | jq .leases
  cp -r /backup/leasehold /tmp/try && leasehold check --data /tmp/try`,
		Args: takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir := cmd.Flags().Lookup("data").Value.String()
		if err := needs(cmd, "data", "name the directory of a stopped server"); err != nil {
			return err
		}
		found, err := a.check(dir)
		if err != nil {
			return explainCheck(err)
		}
		return a.printChecked(found)
	}
	cmd.Flags().String("data", "", "directory of a stopped server (needed)")
	if err := cmd.MarkFlagDirname("data"); err != nil {
		panic(err) // the flag was just made
	}
	a.outputFlag(cmd, formatJSON)
	return cmd
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
