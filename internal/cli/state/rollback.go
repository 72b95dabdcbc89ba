package state

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/tfstate"
)

func rollback(a *cli.App) *cobra.Command {
	var f editFlags
	yes := false
	cmd := &cobra.Command{
		Use:   "rollback STATE VERSION",
		Short: "Restore a former version of a state, with a reason",
		Long: `Rollback writes a former version of a state as a new one, under the lock. VERSION is a
serial, or @ and a revision, as leasehold state versions shows them. A deleted state comes
back. It first shows what it will replace, and asks on a terminal; elsewhere it does
nothing without --yes.

The new version has the content of the former one and a serial above all others: plans
made from the current version are then refused as stale, as they must be. An encrypted
state keeps its own serial, since only OpenTofu can change it.

Only the state goes back, not what it describes: look at terraform plan afterwards.`,
		Example: `  leasehold state rollback prod/network 41 --reason "run 881 was wrong"
  leasehold state rollback prod/network @1881 --yes --reason "run 881 was wrong"
  leasehold state diff prod/network                         # what it did`,
		Args:              cli.Takes(2, 2),
		ValidArgsFunction: Completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := cli.Needs(cmd, "reason", "others will want to know why their state went back"); err != nil {
			return err
		}
		r := rollbackTo{state: args[0], word: args[1]}
		// Looked at before the lock is taken: a wrong name should disturb nobody.
		versions, err := states(c).Versions(ctx, r.state)
		if err == nil {
			_, err = versionCalled(c, r.state, versions, r.word)
		}
		if err == nil && !yes {
			err = r.confirm(ctx, a, c, versions, f.reason)
		}
		if err == nil {
			err = edit(ctx, c, r.state, "rollback", f, func(id string) error { return r.write(ctx, c, id) })
		}
		if err != nil {
			return stateless(c, r.state, err)
		}
		return written(ctx, a, c, r.state, fmt.Sprintf("rolled back %s to %s; it now has serial %d", r.state, r.at(),
			r.serial))
	})
	f.add(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// A rollbackTo is one way back, from the question to the write.
type rollbackTo struct {
	state, word string
	shown       *tfstate.Version // what the person was shown as the newest; nil: nobody was asked
	serial      uint64           // that it has afterwards
}

// at says where it goes back to.
func (r *rollbackTo) at() string {
	if revision, ok := strings.CutPrefix(r.word, "@"); ok {
		return "revision " + revision
	}
	return "serial " + r.word
}

// versionCalled finds a version by its serial or revision.
func versionCalled(c *cli.Conn, state string, versions []tfstate.Version, word string) (tfstate.Version, error) {
	found, err := findVersion(versions, word)
	if err != nil {
		err = cli.Hint(err, "see all versions: %s", c.Again("state", "versions", state))
	}
	return found, err
}

// confirm shows what would be replaced and asks. Without a terminal it refuses: a script has to
// say --yes.
func (r *rollbackTo) confirm(
	ctx context.Context, a *cli.App, c *cli.Conn, versions []tfstate.Version, reason string,
) error {
	if !a.Terminal(a.Stdin) {
		return cli.Hint(cli.Usage("this replaces the state %s, and there is no terminal to ask on: give --yes if you "+
			"are sure", r.state), "%s", c.Again("state", "rollback", r.state, r.word, "--yes", "--reason", reason))
	}
	to, _ := findVersion(versions, r.word)
	line := func(name string, v tfstate.Version) {
		fmt.Fprintf(a.Stderr, "  %-10s serial %d, written %s by %s\n", name, v.Serial, a.WhenAt(v.Written),
			cli.Printable(v.Holder))
	}
	fmt.Fprintf(a.Stderr, "This will replace the state %s:\n", cli.Printable(r.state))
	switch r.shown = &versions[0]; {
	case r.shown.Current:
		line("current", *r.shown)
	case r.shown.Deleted:
		fmt.Fprintln(a.Stderr, "  current    deleted")
	default:
		fmt.Fprintln(a.Stderr, "  current    empty") // a blob; empty versions are not listed
	}
	line("back to", to)
	return a.Confirm(ctx, `Type "yes" to roll it back: `, "yes")
}

// write writes the former version as a new one. The caller has the lock. The versions are read
// again here, since somebody may have written before the lock was granted.
func (r *rollbackTo) write(ctx context.Context, c *cli.Conn, id string) error {
	versions, err := states(c).Versions(ctx, r.state)
	if err != nil {
		return err
	}
	if now := versions[0]; r.shown != nil && (now.Revision != r.shown.Revision || now.Current != r.shown.Current) {
		return cli.Hint(cli.Failure(leasehold.Lost, "%s was changed by somebody else after it was shown: nothing was "+
			"done", r.state), "see what changed: %s", c.Again("state", "versions", r.state))
	}
	old, err := versionCalled(c, r.state, versions, r.word)
	if err != nil {
		return err
	}
	body, err := states(c).Read(ctx, r.state, old.Revision)
	if err != nil {
		return err
	}
	head, err := tfstate.ReadHead(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if r.serial = head.Serial; !head.Encrypted {
		for _, v := range versions {
			r.serial = max(r.serial, v.Serial)
		}
		// Above all others, so that plans made from what is there now are refused as stale.
		r.serial++
		if body, err = tfstate.WithSerial(body, r.serial); err != nil {
			return err
		}
	}
	return states(c).Write(ctx, r.state, id, body, true)
}
