package server

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// maxQuarantine is as long as the longest TTL: no holder from before the restore can believe in its
// lease for longer.
const maxQuarantine = leasehold.MaxTTL

// Restore returns the command restore.
func Restore(a *cli.App) *cobra.Command {
	var (
		quarantine cli.Span
		options    storage.RestoreOptions
	)
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a new cluster from a backup",
		Long: `Restore makes the data directory of a new cluster from a backup: a cluster of one
server, which others can join. The directory must be empty or new. Stop the servers of
the former cluster first, and never start them again: two clusters that grant the same
resources protect nothing.

Leases in the backup are still held, with all the time they had left; holders renew and
release them as always. But the former cluster may have granted others after the backup
was taken, and this one does not know of them. Therefore

  nothing is granted in a quarantine, which begins when the new server starts, so that
  those leases can expire. It lasts as long as the largest TTL in the backup, or as
  --quarantine says. Waiters stay in the queue. Once you know that no holder from after
  the backup is left, leasehold cluster end-quarantine ends it early;

  tokens and revisions continue far above those in the backup, so that stores that check
  tokens refuse holders of the former cluster, and watchers are told of the gap.

If a backup of the same cluster was restored before, give --above the largest token that
anybody may have seen since, or restore a backup taken after that.`,
		Example: `  leasehold restore leasehold.backup --data /var/lib/leasehold
  leasehold restore leasehold.backup --data data --quarantine 30s
  leasehold restore leasehold.backup --data data && leasehold serve --data data`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cli.Needs(cmd, "data", "name an empty or new directory"); err != nil {
			return err
		}
		options.Quarantine = -1
		if quarantine.Given {
			options.Quarantine = quarantine.Value
		}
		if quarantine.Value > maxQuarantine {
			return cli.Usage("--quarantine is %s: at most %s are allowed, which is the largest TTL",
				cli.Short(quarantine.Value), cli.Short(maxQuarantine))
		}
		dir := cmd.Flags().Lookup("data").Value.String()
		to, err := storage.RestoreTo(dir, args[0], options)
		if err != nil {
			return explainCheck(err)
		}
		return printRestored(a, dir, to, quarantine.Given)
	}
	cmd.Flags().String("data", "", "directory to create, or an empty one (required)")
	cmd.Flags().Var(&quarantine, "quarantine", "how long nothing is granted (default the largest TTL in the backup)")
	cmd.Flags().Uint64Var(&options.Above, "above", 0, "a token that somebody saw, if the backup may be older")
	if err := cmd.MarkFlagDirname("data"); err != nil {
		panic(err) // the flag was just made
	}
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// restored is what a restore came to, as JSON.
type restored struct {
	Data       string             `json:"data"`
	Cluster    string             `json:"cluster"`
	Server     uint64             `json:"server"`
	TokensFrom uint64             `json:"tokens_above"`
	Quarantine string             `json:"quarantine"`
	Backup     storage.BackupHead `json:"backup"`
}

func printRestored(a *cli.App, dir string, to storage.RestoredTo, chosen bool) error {
	quarantine := to.State.Quarantine
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(restored{dir, to.Cluster, to.Server, to.State.Base, quarantine.String(), to.Backup})
	}
	s := &cli.Details{}
	s.Line("Data", "%s, of the new cluster %s", cli.Printable(dir), to.Cluster)
	backup(s, a, to.Backup)
	s.Line("Tokens", "above %d", to.State.Base)
	why := "the largest TTL in the backup"
	if chosen {
		why = "as you chose"
	}
	s.Line("Quarantine", "%s, %s", cli.Short(quarantine), why)
	if _, err := io.WriteString(a.Stdout, s.String()); err != nil {
		return cli.Written(err)
	}
	a.Say("start it: leasehold serve --data %s", cli.Quote(dir))
	if quarantine > 0 {
		a.Say("it then grants nothing for %s, since leases granted after the backup may still be held; renewals and "+
			"releases work; leasehold cluster status shows the time left", cli.Short(quarantine))
		a.Say("if you know that no such lease is still held, end that early: leasehold cluster " +
			"end-quarantine --reason \"all holders were stopped\"")
	}
	a.Say("to make it a cluster of three again, start it with its former configuration, or with --name, " +
		"--peer-listen and certificates; then add two more, each with an empty directory:")
	a.Say("  leasehold cluster add n2 10.0.0.2:4654      # shows how to start it")
	return nil
}
