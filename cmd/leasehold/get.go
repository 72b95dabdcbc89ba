package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) getCommand() *cobra.Command {
	var revision, version uint64
	cmd := &cobra.Command{
		Use:   "get PATH",
		Short: "Print the value of a record",
		Long: `Get prints the value of a record as it is, byte for byte and nothing else. On a
terminal, characters that could move the cursor are shown as escapes.

With --revision it prints what the value was then, as long as the server's history
reaches back so far; with --version it prints a former version that the record keeps.
With -o json the value is in base64, beside the revisions that made and changed the
record, its version, and the session it ends with; of a value of more than 64 KiB there
are its digest and its size.`,
		Example: `  leasehold get config/limits
  leasehold get config/limits --revision 181 > limits.before
  leasehold get config/limits -o json | jq .mod_revision`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completesRecords(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if revision != 0 && version != 0 {
			return seeHelp(cmd, usage("--revision and --version name two values: give one"))
		}
		record, err := c.recordAt(ctx, args[0], revision, version)
		if err != nil {
			return c.explainRecord(err)
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(record)
		case formatName:
			return a.printLine(record.Path)
		}
		if record.Large != nil {
			return a.copyValue(ctx, c, record)
		}
		return a.printValue(record.Value)
	})
	cmd.Flags().Uint64Var(&revision, "revision", 0, "as it was at this revision (default: as it is)")
	cmd.Flags().Uint64Var(&version, "version", 0, "the former version that this revision wrote")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}

func (c *conn) recordAt(ctx context.Context, path string, revision, version uint64) (v1.Record, error) {
	if version != 0 {
		return c.RecordAt(ctx, path, version)
	}
	return c.Record(ctx, path, revision)
}

// copyValue prints a large value as it comes.
func (a *app) copyValue(ctx context.Context, c *conn, r v1.Record) error {
	if a.terminal(a.stdout) {
		return usage("%s has %d bytes, which is much for a terminal: send them to a file", quote(r.Path), r.Large.Size)
	}
	value, err := c.OpenRecord(ctx, r.Path, r.Mod)
	if err != nil {
		return c.explainRecord(err)
	}
	defer value.Close()
	n, err := io.Copy(a.stdout, value)
	if err != nil {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf("the value broke off after %d of %d bytes: %v", n, r.Large.Size, err)}
	}
	return nil
}

func (a *app) printValue(value []byte) error {
	if !a.terminal(a.stdout) {
		_, err := a.stdout.Write(value)
		return written(err)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(value), "\n"), "\n") {
		if err := a.printLine(line); err != nil {
			return err
		}
	}
	return nil
}

// completesRecords offers the paths of records.
func (a *app) completesRecords() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
		c, err := a.connect(cmd)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
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
