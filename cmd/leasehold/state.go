package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/tfstate"
)

func (a *app) stateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state COMMAND",
		Short: "Look after Terraform states: versions, differences, locks",
		Long: `State looks after the states that Terraform and OpenTofu keep on the server by their http
backend: which there are, who has locked them, what they were, and how to go back.

A state S is the record terraform/S, and its lock is a lease on the resource
terraform/S: leasehold describe, history, audit and break work on it too.`,
		Example: `  leasehold state list prod/
  leasehold state diff prod/network
  leasehold state unlock prod/network --reason "the runner was killed"`,
		Args: cobra.ArbitraryArgs,
		RunE: a.onlySubcommands,
	}
	cmd.AddCommand(a.stateListCommand(), a.stateShowCommand(), a.stateVersionsCommand(), a.stateDiffCommand(),
		a.stateRollbackCommand(), a.statePullCommand(), a.statePushCommand(), a.stateUnlockCommand())
	return cmd
}

// states is the line to the server's door for Terraform.
func (c *conn) states() tfstate.Client { return tfstate.Client{Caller: c.Caller} }

// stateless adds what to try next about a state that is not there.
func (c *conn) stateless(state string, err error) error {
	var better *hinted
	if !errors.Is(err, leasehold.ErrNotFound) || errors.As(err, &better) {
		return err
	}
	if name, ok := strings.CutPrefix(state, "terraform/"); ok {
		return hint(err, "states are named without terraform/: do you mean %s?", name)
	}
	return hint(err, "see which there are: %s", c.again("state", "list"))
}

func (a *app) stateListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "Show the states, and who has locked them",
		Long: `List shows the states whose name begins with PREFIX, or all of them: the serial that
Terraform counts, the size, when it was written last, how many versions of it are kept,
and who has locked it.`,
		Example: `  leasehold state list
  leasehold state list prod/ -o wide
  leasehold state list -o json | jq -r '.[] | select(.lock) | .name'`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completesStates(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		prefix := ""
		if len(args) == 1 {
			prefix = args[0]
		}
		states, err := c.states().List(ctx, prefix)
		if err != nil {
			return err
		}
		switch {
		case a.output == formatJSON:
			return a.printJSON(states)
		case len(states) == 0 && a.output == formatTable:
			a.say("there is no state%s in namespace %s; to make one: %s", under(prefix), c.client.Namespace, c.again("terraform", "config", "--http", "STATE"))
			return nil
		}
		return a.printStates(states)
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func under(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " under " + quote(prefix)
}

func (a *app) printStates(states []tfstate.State) error {
	if a.output == formatName {
		for _, s := range states {
			if err := a.printLine(s.Name); err != nil {
				return err
			}
		}
		return nil
	}
	columns := []column{{name: "STATE"}, {name: "SERIAL", right: true}, {name: "SIZE", right: true}, {name: "WRITTEN"}, {name: "VERSIONS", right: true}, {name: "LOCKED BY", flexible: true}}
	if a.output == formatWide {
		columns = append(columns, column{name: "REVISION"}, column{name: "LINEAGE"}, column{name: "TERRAFORM"})
	}
	var rows [][]string
	for _, s := range states {
		row := []string{s.Name, strconv.FormatUint(s.Serial, 10), size(s.Size), a.whenAt(s.Written), strconv.Itoa(s.Versions), a.lockedOrRests(s)}
		if s.Problem != "" {
			row[1] = "?"
		}
		if a.output == formatWide {
			row = append(row, strconv.FormatUint(s.Revision, 10), s.Lineage, s.Writer)
		}
		rows = append(rows, row)
	}
	return a.printTable(columns, rows)
}

func lockedBy(lock *tfstate.Lock) string {
	if lock == nil {
		return ""
	}
	return because(lock.Who, strings.ToLower(strings.TrimPrefix(lock.Operation, "OperationType")))
}

// lockedOrRests says who has the lock, or why nobody can.
func (a *app) lockedOrRests(s tfstate.State) string {
	switch {
	case s.Unacknowledged != "":
		return "nobody, until acknowledged"
	case s.Lock == nil && s.AvailableAt != nil:
		return "nobody, free " + a.until(*s.AvailableAt)
	}
	return lockedBy(s.Lock)
}

func (a *app) stateShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show STATE",
		Short: "Show one state: serial, lineage, what is in it, its lock",
		Long: `Show tells what there is to know of one state without its values, which may be secret:
serial and lineage, how many resources of which type are in it, when and by whom it was
written, and who has locked it, since when and why.

Leasehold state pull prints the state itself.`,
		Example: `  leasehold state show prod/network
  leasehold state show prod/network -o json | jq .serial
  leasehold state show prod/network -o wide                 # dates instead of "3m ago"`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completesStates(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		s, err := c.states().Info(ctx, args[0])
		if err != nil {
			return c.stateless(args[0], err)
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(s)
		case formatName:
			return a.printLine(s.Name)
		}
		var inside contents
		if s.Revision != 0 && s.Problem == "" {
			body, err := c.states().Read(ctx, args[0], 0)
			if err != nil {
				return c.stateless(args[0], err)
			}
			inside, _ = readContents(body) // of an encrypted state there is nothing to tell
		}
		_, err = fmt.Fprint(a.stdout, a.describeState(s, inside))
		return written(err)
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) describeState(s tfstate.State, inside contents) string {
	out := &sheet{}
	out.line("State", "%s", printable(s.Name))
	if s.Revision == 0 {
		out.line("Written", "never: it is only locked")
	} else {
		out.line("Serial", "%d", s.Serial)
		out.line("Lineage", "%s", printable(s.Lineage))
		out.line("Terraform", "%s", printable(s.Writer))
		out.line("Size", "%s", size(s.Size))
		out.line("Written", "%s", a.whenAt(s.Written))
		out.line("By", "%s", printable(s.Holder))
		out.line("Versions", "%d", s.Versions)
		out.line("Problem", "%s", printable(s.Problem))
	}
	for i, kind := range inside.kinds() {
		name := ""
		if i == 0 {
			name = "Resources"
		}
		out.line(name, "%s", printable(kind))
	}
	if l := s.Lock; l != nil {
		out.line("Locked by", "%s", printable(lockedBy(l)))
		out.line("Info", "%s", printable(l.Info))
		out.line("Since", "%s", a.whenAt(l.Since))
		if l.Expires != nil {
			out.line("Expires", "%s", a.until(*l.Expires))
		} else {
			out.line("Expires", "never: it ends by unlock or break")
		}
		out.line("Lock ID", "%s", printable(l.Lock))
		out.line("Waiting", "%d", l.Waiting)
	} else {
		out.line("Locked by", "nobody")
		if s.Unacknowledged != "" {
			out.line("Rests", "until the end of the lock of %s is acknowledged: leasehold acknowledge terraform/%s", printable(s.Unacknowledged), printable(s.Name))
		}
		if s.AvailableAt != nil {
			out.line("Available", "%s, after a rest", a.until(*s.AvailableAt))
		}
	}
	return out.String()
}

func (a *app) stateVersionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions STATE",
		Short: "Show what a state was: serials, when and who",
		Long: `Versions lists the contents that a state had, the newest first: the last 20 that were
replaced, and the one that is there now. Each has a serial, by which Terraform counts, and
a revision, by which the server does; serials can stand twice if somebody forced one.

The versions of a state that was deleted are kept for 30 days, and can be rolled back to.`,
		Example: `  leasehold state versions prod/network
  leasehold state versions prod/network -o json | jq '.[].serial'
  leasehold state pull prod/network --version 41 | jq .resources`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completesStates(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		versions, err := c.states().Versions(ctx, args[0])
		if err != nil {
			return c.stateless(args[0], err)
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(versions)
		case formatName:
			for _, v := range versions {
				if err := a.printLine(strconv.FormatUint(v.Serial, 10)); err != nil {
					return err
				}
			}
			return nil
		}
		return a.printStateVersions(versions)
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (a *app) printStateVersions(versions []tfstate.Version) error {
	columns := []column{{name: "SERIAL", right: true}, {name: "SIZE", right: true}, {name: "WRITTEN"}, {name: "BY", flexible: true}, {name: "REVISION", right: true}, {name: "NOTE"}}
	if a.output == formatWide {
		columns = append(columns, column{name: "LINEAGE"}, column{name: "TERRAFORM"})
	}
	var rows [][]string
	for _, v := range versions {
		note := v.Problem
		switch {
		case v.Current:
			note = "current"
		case v.Deleted:
			note = "deleted"
		}
		row := []string{strconv.FormatUint(v.Serial, 10), size(v.Size), a.whenAt(v.Written), v.Holder, strconv.FormatUint(v.Revision, 10), note}
		if a.output == formatWide {
			row = append(row, v.Lineage, v.Writer)
		}
		rows = append(rows, row)
	}
	return a.printTable(columns, rows)
}

// findVersion finds the version that a word names: a serial, or @ and a revision. Of
// several with one serial it is the newest.
func findVersion(versions []tfstate.Version, word string) (tfstate.Version, error) {
	digits, byRevision := strings.CutPrefix(word, "@")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return tfstate.Version{}, usage("%q is no version: write a serial, such as 41, or @ and a revision, such as @1881", word)
	}
	for _, v := range versions {
		if byRevision && v.Revision == n || !byRevision && v.Serial == n && v.Problem == "" {
			return v, nil
		}
	}
	return tfstate.Version{}, failure(leasehold.NotFound, "no version %s is kept", word)
}

func (a *app) completesStates() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		c, err := a.connect(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		states, _ := c.states().List(ctx, typed)
		var names []cobra.Completion
		for _, s := range states {
			names = append(names, s.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
