package server

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/access/upkeep"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// Recover returns the command access recover.
func Recover(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Make a new admin token, when nobody has one any more",
		Long: `Recover is for operators who were locked out, and who have the data directory of a
stopped server. It leaves a mark there. The next start of that server makes a new token
of the principal admin, which may do everything, and writes it to the file admin-token in
the data directory. Nothing else changes: who was allowed to do something still is.

In a cluster one server is enough, and the others need not stop: the new token is known to
all of them. The audit has it as change-access, with the reason "recover".`,
		Example: `  leasehold access recover --data /var/lib/leasehold
  leasehold serve --data /var/lib/leasehold
  leasehold login < /var/lib/leasehold/admin-token`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := cli.Needs(cmd, "data", "name the directory of a stopped server"); err != nil {
			return err
		}
		data := cmd.Flags().Lookup("data").Value.String()
		dir, err := storage.OpenDir(data, false) // refused while a server uses it
		if err != nil {
			return explainCheck(err)
		}
		defer dir.Close()
		if err := upkeep.Mark(data); err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(struct {
				Data  string `json:"data"`
				Token string `json:"token_file"`
			}{data, upkeep.TokenFile(data)})
		}
		a.Say("marked: the next start of the server with %s writes a new admin token to %s", data,
			upkeep.TokenFile(data))
		a.Say("start it as before, then: leasehold login < %s", upkeep.TokenFile(data))
		return nil
	}
	cmd.Flags().String("data", "", "directory of a stopped server")
	if err := cmd.MarkFlagDirname("data"); err != nil {
		panic(err) // the flag was just made
	}
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}
