package state

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/statediff"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// Command returns the command state, with all below it.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state COMMAND",
		Short: "Manage Terraform states: versions, differences, locks",
		Long: `State manages the states that Terraform and OpenTofu keep on the server by their http
backend: it lists them with their locks and versions, compares, and rolls back.

States of the azurerm backend are called azurerm:ACCOUNT/CONTAINER/KEY. All but
allow-lineage works on them too; that they do not need, as the Azure port checks no lineage.

A state S is the record terraform/S, and its lock is a lease on the resource
terraform/S: leasehold describe, history, audit and break work on it too. Of
azurerm:A/C/KEY both are azure/A/C/KEY.`,
		Example: `  leasehold state list prod/
  leasehold state diff prod/network
  leasehold state unlock prod/network --reason "the runner was killed"`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(list(a), show(a), versions(a), diff(a),
		rollback(a), pull(a), push(a), unlock(a), allowLineage(a))
	return cmd
}

// states returns a client of the server's Terraform door.
func states(c *cli.Conn) tfstate.Client { return tfstate.Client{Caller: c.Caller} }

// stateless adds what to try next to the error of a state that does not exist.
func stateless(c *cli.Conn, state string, err error) error {
	var better *cli.Hinted
	if !errors.Is(err, leasehold.ErrNotFound) || errors.As(err, &better) {
		return err
	}
	if name, ok := strings.CutPrefix(state, "terraform/"); ok {
		return cli.Hint(err, "states are named without terraform/: do you mean %s?", name)
	}
	return cli.Hint(err, "see all states: %s", c.Again("state", "list"))
}

func list(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "Show the states, and who has locked them",
		Long: `List shows the states whose name begins with PREFIX, or all of them: the serial that
Terraform counts, the size, when it was last written, how many versions of it are kept,
and who has locked it. A state that is locked before its first write is listed too.`,
		Example: `  leasehold state list
  leasehold state list prod/ -o wide
  leasehold state list -o json | jq -r '.[] | select(.lock) | .name'`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: Completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		prefix := ""
		if len(args) == 1 {
			prefix = args[0]
		}
		states, err := states(c).List(ctx, prefix)
		if err != nil {
			return err
		}
		switch {
		case a.Output == cli.FormatJSON:
			return a.PrintJSON(states)
		case len(states) == 0 && a.Output == cli.FormatTable:
			a.Say("no states%s in namespace %s; to make one: %s", under(prefix), c.Client.Namespace,
				c.Again("terraform", "config", "--http", "STATE"))
			return nil
		}
		return printStates(a, states)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func under(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " under " + cli.Quote(prefix)
}

func printStates(a *cli.App, states []tfstate.State) error {
	if a.Output == cli.FormatName {
		for _, s := range states {
			if err := a.PrintLine(s.Name); err != nil {
				return err
			}
		}
		return nil
	}
	columns := []cli.Column{{Name: "STATE"}, {Name: "SERIAL", Right: true}, {Name: "SIZE", Right: true},
		{Name: "WRITTEN"}, {Name: "VERSIONS", Right: true}, {Name: "LOCKED BY", Flexible: true}}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "REVISION"}, cli.Column{Name: "LINEAGE"},
			cli.Column{Name: "TERRAFORM"})
	}
	var rows [][]string
	for _, s := range states {
		row := []string{s.Name, strconv.FormatUint(s.Serial, 10), cli.Size(s.Size), a.WhenAt(s.Written),
			strconv.Itoa(s.Versions), lockedOrRests(a, s)}
		switch {
		case s.Problem != "":
			row[1] = "?"
		case s.Revision == 0:
			row[1], row[2] = "", "" // it is only locked
		}
		if a.Output == cli.FormatWide {
			row = append(row, strconv.FormatUint(s.Revision, 10), s.Lineage, s.Writer)
		}
		rows = append(rows, row)
	}
	return a.PrintTable(columns, rows)
}

func lockedBy(lock *tfstate.Lock) string {
	if lock == nil {
		return ""
	}
	return cli.Because(lock.Who, strings.ToLower(strings.TrimPrefix(lock.Operation, "OperationType")))
}

// lockedOrRests returns who has the lock, or why nobody can get it.
func lockedOrRests(a *cli.App, s tfstate.State) string {
	switch {
	case s.Unacknowledged != "":
		return "nobody, until acknowledged"
	case s.Lock == nil && s.AvailableAt != nil:
		return "nobody, free " + a.Until(*s.AvailableAt)
	}
	return lockedBy(s.Lock)
}

func show(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show STATE",
		Short: "Show one state: serial, lineage, what is in it, its lock",
		Long: `Show prints all about one state but its values, which may be secret:
serial and lineage, how many resources of which type are in it, when and by whom it was
written, and who has locked it, since when and why.

Leasehold state pull prints the state itself.`,
		Example: `  leasehold state show prod/network
  leasehold state show prod/network -o json | jq .serial
  leasehold state show prod/network -o wide      # dates instead of "3m ago"`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: Completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		s, err := states(c).Info(ctx, args[0])
		if err != nil {
			return stateless(c, args[0], err)
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(s)
		case cli.FormatName:
			return a.PrintLine(s.Name)
		}
		var inside statediff.Contents
		if s.Revision != 0 && s.Problem == "" {
			body, err := states(c).Read(ctx, args[0], 0)
			if err != nil {
				return stateless(c, args[0], err)
			}
			inside, _ = statediff.Read(body) // of an encrypted state there is nothing to tell
		}
		_, err = fmt.Fprint(a.Stdout, describeState(a, s, inside))
		return cli.Written(err)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func describeState(a *cli.App, s tfstate.State, inside statediff.Contents) string {
	out := &cli.Details{}
	out.Line("State", "%s", cli.Printable(s.Name))
	if s.Revision == 0 {
		out.Line("Written", "never: it is only locked so far")
	} else {
		out.Line("Serial", "%d", s.Serial)
		out.Line("Lineage", "%s", cli.Printable(s.Lineage))
		out.Line("Terraform", "%s", cli.Printable(s.Writer))
		out.Line("Size", "%s", cli.Size(s.Size))
		out.Line("Written", "%s", a.WhenAt(s.Written))
		out.Line("By", "%s", cli.Printable(s.Holder))
		out.Line("Versions", "%d", s.Versions)
		out.Line("Problem", "%s", cli.Printable(s.Problem))
	}
	if p := s.Permit; p != nil {
		out.Line("Accepts", "another lineage, once, until %s: allowed by %s", a.Clock(*p.Until),
			cli.Printable(cli.Because(p.By, p.Reason)))
	}
	for i, kind := range inside.Kinds() {
		name := ""
		if i == 0 {
			name = "Resources"
		}
		out.Line(name, "%s", cli.Printable(kind))
	}
	if l := s.Lock; l != nil {
		out.Line("Locked by", "%s", cli.Printable(lockedBy(l)))
		out.Line("Info", "%s", cli.Printable(l.Info))
		out.Line("Since", "%s", a.WhenAt(l.Since))
		out.Line("Expires", "%s", lockExpires(a, l))
		out.Line("Lock ID", "%s", cli.Printable(l.Lock))
		out.Line("Waiting", "%d", l.Waiting)
	} else {
		out.Line("Locked by", "nobody")
		if s.Unacknowledged != "" {
			out.Line("Blocked", "until somebody acknowledges how the lock of %s ended: leasehold acknowledge "+
				"%s",
				cli.Printable(s.Unacknowledged), cli.Printable(tfstate.Path(s.Name)))
		}
		if s.AvailableAt != nil {
			out.Line("Available", "%s, when its grace is over", a.Until(*s.AvailableAt))
		}
	}
	return out.String()
}

// lockExpires says when a lock ends by itself, and what keeps it alive.
func lockExpires(a *cli.App, l *tfstate.Lock) string {
	switch {
	case l.Expires == nil:
		return "never: it ends by unlock or break"
	case l.State == leasehold.Breaking.String():
		return a.Until(*l.Expires) + ": somebody breaks it"
	case l.Session != "":
		return a.Until(*l.Expires) + " unless its session is renewed, as leasehold run does"
	}
	return a.Until(*l.Expires) + " unless its run writes the state"
}

func versions(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions STATE",
		Short: "Show the versions of a state",
		Long: `Versions lists the contents that a state had, the newest first: the last 20 that were
replaced, and the one that is there now. Each has a serial, by which Terraform counts, and
a revision, by which the server does; two versions can have one serial if somebody forced
it.

The versions of a state that was deleted are kept for 30 days, and can be rolled back to.`,
		Example: `  leasehold state versions prod/network
  leasehold state versions prod/network -o json | jq '.[].serial'
  leasehold state pull prod/network --version 41 | jq .resources`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: Completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		versions, err := states(c).Versions(ctx, args[0])
		if err != nil {
			return stateless(c, args[0], err)
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(versions)
		case cli.FormatName:
			for _, v := range versions {
				if err := a.PrintLine(strconv.FormatUint(v.Serial, 10)); err != nil {
					return err
				}
			}
			return nil
		}
		return printStateVersions(a, versions)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func printStateVersions(a *cli.App, versions []tfstate.Version) error {
	columns := []cli.Column{{Name: "SERIAL", Right: true}, {Name: "SIZE", Right: true}, {Name: "WRITTEN"},
		{Name: "BY", Flexible: true}, {Name: "REVISION", Right: true}, {Name: "NOTE"}}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "LINEAGE"}, cli.Column{Name: "TERRAFORM"})
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
		row := []string{strconv.FormatUint(v.Serial, 10), cli.Size(v.Size), a.WhenAt(v.Written), v.Holder,
			strconv.FormatUint(v.Revision, 10), note}
		if a.Output == cli.FormatWide {
			row = append(row, v.Lineage, v.Writer)
		}
		rows = append(rows, row)
	}
	return a.PrintTable(columns, rows)
}

// findVersion returns the version that a word names: a serial, or @ and a revision. Several
// versions can have one serial, after a forced write; then it is the newest.
func findVersion(versions []tfstate.Version, word string) (tfstate.Version, error) {
	digits, byRevision := strings.CutPrefix(word, "@")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return tfstate.Version{}, cli.Usage("%q is not a version: write a serial, such as 41, or @ and a revision, "+
			"such as @1881", word)
	}
	for _, v := range versions {
		if byRevision && v.Revision == n || !byRevision && v.Serial == n && v.Problem == "" {
			return v, nil
		}
	}
	return tfstate.Version{}, cli.Failure(leasehold.NotFound, "no version %s is kept", word)
}

// Completes completes the names of states.
func Completes(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), cli.CompletionTime)
		defer cancel()
		c, err := a.Connect(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		states, _ := states(c).List(ctx, typed)
		var names []cobra.Completion
		for _, s := range states {
			names = append(names, s.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
