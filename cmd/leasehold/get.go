package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) getCommand() *cobra.Command {
	var revision uint64
	cmd := &cobra.Command{
		Use:   "get PATH",
		Short: "Print the value of a record",
		Long: `Get prints the value of a record as it is, byte for byte and nothing else. On a
terminal, characters that could move the cursor are shown as escapes.

With --revision it prints what the value was then, as long as the server's history
reaches back so far. With -o json the value is in base64, beside the revisions that
made and changed the record, its version, and the session it ends with.`,
		Example: `  leasehold get config/limits
  leasehold get config/limits --revision 181 > limits.before
  leasehold get config/limits -o json | jq .mod_revision`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completesRecords,
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		record, err := c.Record(ctx, args[0], revision)
		if err != nil {
			return c.explainRecord(err)
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(record)
		case formatName:
			return a.printLine(record.Path)
		}
		return a.printValue(record.Value)
	})
	cmd.Flags().Uint64Var(&revision, "revision", 0, "as it was at this revision (default: as it is)")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
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
func (a *app) completesRecords(cmd *cobra.Command, args []string, typed string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
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
