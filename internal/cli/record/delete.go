package record

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Delete returns the command delete.
func Delete(a *cli.App) *cobra.Command {
	var request v1.DeleteRequest
	prefix := false
	cmd := &cobra.Command{
		Use:   "delete PATH",
		Short: "Delete a record, or all that begin with a prefix",
		Long: `Delete deletes the record of a path. It succeeds if there is none: an earlier
try may have deleted it. With --prefix it deletes all records whose path begins with
PATH, at once or not at all, up to 10,240 of them.

With --if-revision that revision must have changed the record last; otherwise the
command ends with code 65. --lease and --token are those of put: a late holder gets
code 76, and nothing is deleted.`,
		Example: `  leasehold delete config/limits
  leasehold delete config/limits --if-revision 181
  leasehold delete workers/ --prefix`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if prefix && request.IfRevision != 0 {
			return cli.SeeHelp(cmd, cli.Usage("--if-revision is of one record: leave it out, or --prefix"))
		}
		if args[0] == "" {
			return cli.SeeHelp(cmd, cli.Usage("delete needs a path that is not empty"))
		}
		request.Path, request.Prefix = args[0], ""
		if prefix {
			request.Path, request.Prefix = "", args[0]
		}
		done, err := c.DeleteRecord(ctx, request)
		if err != nil {
			return condition{args[0], false, request.IfRevision}.explain(ctx, c, err)
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(done)
		case cli.FormatName:
			return a.PrintLine(fmt.Sprint(done.Deleted))
		}
		a.Say("deleted %s", cli.Plural(done.Deleted, "record", "records"))
		return nil
	})
	cmd.Flags().BoolVar(&prefix, "prefix", false, "all records whose path begins with PATH")
	cmd.Flags().Uint64Var(&request.IfRevision, "if-revision", 0, "only if this revision changed it last")
	fenceFlags(cmd, &request.Fence)
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}
