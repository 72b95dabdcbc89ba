package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Get returns the command get.
func Get(a *cli.App) *cobra.Command {
	var revision, version uint64
	cmd := &cobra.Command{
		Use:   "get PATH",
		Short: "Print the value of a record",
		Long: `Get prints the value of a record as it is, byte for byte and nothing else. On a
terminal, characters that could move the cursor are shown as escapes.

With --revision it prints what the value was then, as long as the server's history
reaches back that far; with --version it prints a former version that the record keeps.
With -o json the value is in base64, beside the revisions that made and changed the
record, its version, and the session it ends with; of a value of more than 64 KiB there
are its digest and its size.`,
		Example: `  leasehold get config/limits
  leasehold get config/limits --revision 181 > limits.before
  leasehold get config/limits -o json | jq .mod_revision`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if revision != 0 && version != 0 {
			return cli.SeeHelp(cmd, cli.Usage("--revision and --version name two values: give one"))
		}
		record, err := recordAt(ctx, c, args[0], revision, version)
		if err != nil {
			return explainGet(ctx, c, args[0], err)
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(record)
		case cli.FormatName:
			return a.PrintLine(record.Path)
		}
		if record.Large != nil {
			return copyValue(ctx, a, c, record)
		}
		return printValue(a, record.Value)
	})
	cmd.Flags().Uint64Var(&revision, "revision", 0, "as it was at this revision (default: as it is)")
	cmd.Flags().Uint64Var(&version, "version", 0, "the former version that this revision wrote")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func recordAt(ctx context.Context, c *cli.Conn, path string, revision, version uint64) (v1.Record, error) {
	if version != 0 {
		return c.RecordAt(ctx, path, version)
	}
	return c.Record(ctx, path, revision)
}

// explainGet looks whether a path without a record is the name of a resource: people try get on it.
func explainGet(ctx context.Context, c *cli.Conn, path string, err error) error {
	if errors.Is(err, leasehold.ErrNotFound) {
		if r, lookup := c.Resource(ctx, path, 0); lookup == nil && r.State != "available" {
			return cli.Hint(err, "%s is leased, and not a record: %s", cli.Quote(path), c.Again("describe", path))
		}
	}
	return ExplainRecord(c, err)
}

// copyValue prints a large value as it arrives, without holding it in memory.
func copyValue(ctx context.Context, a *cli.App, c *cli.Conn, r v1.Record) error {
	if a.Terminal(a.Stdout) {
		return cli.Usage("%s has %d bytes, too many for a terminal: send them to a file", cli.Quote(r.Path),
			r.Large.Size)
	}
	value, err := c.OpenRecord(ctx, r.Path, r.Mod)
	if err != nil {
		return ExplainRecord(c, err)
	}
	defer value.Close()
	n, err := io.Copy(a.Stdout, value)
	if err != nil {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf("the value broke off after %d of %d "+
			"bytes: %v", n, r.Large.Size, err)}
	}
	return nil
}

func printValue(a *cli.App, value []byte) error {
	if !a.Terminal(a.Stdout) {
		_, err := a.Stdout.Write(value)
		return cli.Written(err)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(value), "\n"), "\n") {
		if err := a.PrintLine(line); err != nil {
			return err
		}
	}
	return nil
}

// completes offers the paths of records.
func completes(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
		c, err := a.Connect(cmd)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), cli.CompletionTime)
		defer cancel()
		page, err := c.RecordPage(ctx, v1.RecordQuery{Prefix: typed, Keys: true, Limit: v1.MaxLimit})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, r := range page.Items {
			list = append(list, r.Path)
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}
