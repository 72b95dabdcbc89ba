package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/lease"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/tfstate"
)

func pull(a *cli.App) *cobra.Command {
	version := ""
	cmd := &cobra.Command{
		Use:   "pull STATE",
		Short: "Print a state, or one of its versions",
		Long: `Pull writes a state to standard output, byte for byte as it was written. With --version it
is what the state was then: a serial, or @ and a revision, as leasehold state versions
shows them. States hold secrets: mind where you write them to.`,
		Example: `  leasehold state pull prod/network > network.tfstate
  leasehold state pull prod/network | jq -r '.resources[].type'
  leasehold state pull prod/network --version 41 > before.tfstate`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: Completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		revision := uint64(0)
		if version != "" {
			versions, err := states(c).Versions(ctx, args[0])
			var found tfstate.Version
			if err == nil {
				found, err = versionCalled(c, args[0], versions, version)
			}
			if err != nil {
				return stateless(c, args[0], err)
			}
			revision = found.Revision
		}
		body, err := states(c).Read(ctx, args[0], revision)
		if err != nil {
			return stateless(c, args[0], err)
		}
		_, err = a.Stdout.Write(body)
		return cli.Written(err)
	})
	cmd.Flags().StringVar(&version, "version", "", "a serial, or @ and a revision (default: what it is now)")
	a.ClientFlags(cmd)
	return cmd
}

// editFlags are those of commands that write a state.
type editFlags struct {
	reason string
	wait   cli.Span
	force  bool
}

func (f *editFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for others who find the lock, and for the history")
	cmd.Flags().VarP(&f.wait, "wait", "w", "how long to wait for the lock (default: do not wait)")
}

func push(a *cli.App) *cobra.Command {
	var f editFlags
	cmd := &cobra.Command{
		Use:   "push STATE [FILE|-]",
		Short: "Write a state from a file, under its lock",
		Long: `Push locks a state, writes what the file or standard input holds, and unlocks it. It is
refused if the lineage differs, or if the serial is not above the current one: then
somebody else has written since. With --force neither is checked; the former state stays
among the versions. A state of the azurerm backend is written as Terraform does it: its
container must exist, and the metadata of the blob stays.

It is the way to bring back an errored.tfstate, which Terraform leaves behind when its
lock was lost and its write refused: see docs/doors/terraform.md.`,
		Example: `  leasehold state push prod/network errored.tfstate --reason "run 881 failed"
  leasehold state pull prod/network | jq '.serial += 1' |
      leasehold state push prod/network -
  leasehold state push azurerm:prod/tfstate/demo.tfstate errored.tfstate
  leasehold state push prod/network old.tfstate --force --reason "begin again"`,
		Args: cli.Takes(1, 2),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if len(args) == 1 && a.Terminal(a.Stdin) {
			return cli.SeeHelp(cmd, cli.Usage("push needs a state: name a file, or send it to standard input"))
		}
		body, err := readState(a, append(args, "-")[1])
		if err != nil {
			return err
		}
		head, err := tfstate.ReadHead(bytes.NewReader(body))
		if err != nil {
			return err
		}
		err = edit(ctx, c, args[0], "push", f, func(id string) error {
			return write(ctx, c, args[0], id, body, head,
				f.force)
		})
		var better *cli.Hinted
		if errors.Is(err, leasehold.ErrRefused) && !errors.As(err, &better) {
			return cli.Hint(err, "see who wrote: %s\nforce it: %s", c.Again("state", "versions", args[0]),
				c.Again("state", "push", args[0], append(args, "-")[1], "--force", "--reason", "WHY"))
		}
		if err != nil {
			return err
		}
		return written(ctx, a, c, args[0], fmt.Sprintf("pushed %s, serial %d", args[0], head.Serial))
	})
	cmd.Flags().BoolVar(&f.force, "force", false, "skip the checks of serial and lineage")
	f.add(cmd)
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// written says what was done, or with -o json shows the state as it is now.
func written(ctx context.Context, a *cli.App, c *cli.Conn, state, done string) error {
	if a.Output != cli.FormatJSON {
		a.Say("%s", done)
		return nil
	}
	s, err := states(c).Info(ctx, state)
	if err != nil {
		return fmt.Errorf("%s, but it could not be shown: %w", done, err)
	}
	return a.PrintJSON(s)
}

// write writes a state under the lock. The server lets a holder write one serial twice; what
// comes from a file has to be newer than what is there, or somebody else's work is lost.
func write(ctx context.Context, c *cli.Conn, state, id string, body []byte, head tfstate.Head, force bool) error {
	there, err := states(c).Info(ctx, state)
	if err != nil {
		return err
	}
	if !force && there.Revision != 0 && there.Problem == "" && there.Lineage == head.Lineage &&
		there.Serial == head.Serial {
		now, err := states(c).Read(ctx, state, 0)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, body) {
			return cli.Failure(leasehold.Refused, "%s already has serial %d, with other content: somebody else "+
				"has written since; compare both before you force it", state, head.Serial)
		}
	}
	return states(c).Write(ctx, state, id, body, force)
}

// readState reads a state whole: its head has to be known before the lock is taken.
func readState(a *cli.App, source string) ([]byte, error) {
	in := a.Stdin
	if source != "-" {
		file, err := os.Open(source)
		if err != nil {
			return nil, cli.Usage("the state cannot be read: %v", err)
		}
		defer file.Close()
		in = file
	}
	body, err := io.ReadAll(io.LimitReader(in, leasehold.MaxLarge+1))
	if err != nil {
		return nil, cli.Usage("the state cannot be read: %v", err)
	}
	return body, nil
}

// edit does something to a state under its lock, so that no Terraform writes meanwhile.
func edit(ctx context.Context, c *cli.Conn, state, operation string, f editFlags, do func(id string) error) error {
	info := tfstate.LockInfo{
		ID: rand.Text(), Operation: operation, Info: f.reason, Who: c.Operator(), Version: "leasehold",
		Created: time.Now().UTC().Format(time.RFC3339Nano),
	}
	err := states(c).Lock(ctx, state, info, f.wait.Value)
	if errors.Is(err, leasehold.ErrHeld) {
		return cli.Hint(err, "see who has it: %s", c.Again("state", "show", state))
	}
	if err != nil {
		return err
	}
	err = do(info.ID)
	// A signal must not leave the lock behind.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cli.Patience)
	defer cancel()
	if failed := states(c).Unlock(ctx, state, info); err == nil && failed != nil {
		return fmt.Errorf("the state was written, but its lock could not be released; it expires by itself: %w", failed)
	}
	return err
}

func unlock(a *cli.App) *cobra.Command {
	var f lease.BreakFlags
	cmd := &cobra.Command{
		Use:   "unlock STATE",
		Short: "End somebody else's lock on a state, with a reason",
		Long: `Unlock ends the lock on a state, no matter who has it; its ID is not needed. It first
shows who has it, since when and for what, and asks on a terminal; elsewhere it does
nothing without --yes. Who did it, and why, is in leasehold audit.

What the former holder still writes is refused: Terraform then keeps its state in
errored.tfstate. If the lock is gone or somebody else's by the time you say yes,
nothing happens. It is leasehold break terraform/STATE --now, or for a state of the
azurerm backend leasehold break azure/ACCOUNT/CONTAINER/KEY --now.`,
		Example: `  leasehold state unlock prod/network --reason "the runner was killed"
  leasehold state unlock prod/network --yes --reason "host is gone"
  leasehold audit terraform/prod/network --verb break`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: Completes(a),
	}
	f.Now = true
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := f.Check(cmd); err != nil {
			return err
		}
		resource, err := c.Resource(ctx, tfstate.Path(args[0]), 1)
		switch {
		case err != nil:
			return err
		case len(resource.Holders) == 0:
			return notLocked(c, args[0], resource)
		}
		if !f.Yes && !a.Terminal(a.Stdin) {
			return unlockUnasked(a, c, args[0], f.Reason, resource.Holders[0])
		}
		return lease.BreakShown(ctx, a, c, resource, f)
	})
	cmd.Flags().StringVar(&f.Reason, "reason", "", "why, for the holder and for the history (required)")
	cmd.Flags().BoolVar(&f.Yes, "yes", false, "do not ask")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

// unlockUnasked refuses to end a lock where nobody can be asked, and says whose it is and how to end
// it all the same.
func unlockUnasked(a *cli.App, c *cli.Conn, state, reason string, l v1.Lease) error {
	who := cli.Because(cli.Printable(l.Holder), cli.Printable(l.Reason))
	return cli.Hint(cli.Usage("this ends the lock of %s on %s, taken %s, and there is no terminal to ask on: give "+
		"--yes if you are sure", who, state, a.When(l.Acquired)),
		"%s", c.Again("state", "unlock", state, "--yes", "--reason", reason))
}

// notLocked returns the error that there is nothing to unlock, with what to do instead.
func notLocked(c *cli.Conn, state string, r v1.Resource) error {
	err := cli.Failure(leasehold.NotFound, "%s is not locked", state)
	switch {
	case r.Unacknowledged != nil:
		return cli.Hint(err, "it stays blocked until somebody acknowledges how the lock of %s ended: %s",
			cli.Printable(r.Unacknowledged.Holder), c.Again("acknowledge", r.Resource))
	case r.Last == nil:
		return stateless(c, state, err)
	}
	return cli.Hint(err, "see who had it: %s", c.Again("describe", r.Resource))
}
