// Package pool has the commands about pools: units with labels, on hosts.
//
// They set and show units. Who wants some takes them as it takes any other resource, by acquire or run: a pool is a
// resource, with a queue, breaks, messages and a history like all others, and needs no second way to be held. Pool run
// is run with other defaults.
//
// What a host has is told by that host: create replaces the list of one host, and can be run again at every start of a
// machine.
package pool

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/reserve"
	"github.com/leasehold/leasehold/internal/cli/run"
)

// Command returns the command pool.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Share GPUs, phones or licences of several hosts",
		Long: `Pool is about resources whose slots are units with labels, on hosts. Units are set host by
host; who wants some says which are good enough, and gets all of them on one host, or waits.`,
		Example: `  leasehold pool create gpu --from nvidia-smi
  leasehold pool run gpu -n 2 --where model=H100 -- ./train.sh
  leasehold pool status gpu`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(create(a), list(a), run.Pool(a), reserve.Pool(a), run.Adopt(a), status(a), reportCommand(a),
		drain(a), agent(a))
	return cmd
}
