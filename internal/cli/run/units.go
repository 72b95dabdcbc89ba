package run

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkNames refuses what is no name of a variable.
func (f *jobFlags) checkNames(cmd *cobra.Command) error {
	for _, name := range f.unitsEnv {
		if !variable.MatchString(name) {
			return cli.SeeHelp(cmd, cli.Usage("--units-env is %q: write the name of a variable, such as "+
				"CUDA_VISIBLE_DEVICES", name))
		}
		if strings.HasPrefix(name, config.EnvPrefix) {
			return cli.SeeHelp(cmd, cli.Usage("--units-env is %q: names that begin with %s are Leasehold's own; the "+
				"units are in %s anyway", name, config.EnvPrefix, config.EnvUnits))
		}
	}
	return nil
}

// findUnits refuses names without units before anybody waits for them.
func (f *jobFlags) findUnits(ctx context.Context, c *cli.Conn, names []string) error {
	if len(f.unitsEnv) == 0 {
		return nil
	}
	var units []string
	for _, name := range names {
		d, err := c.Definition(ctx, name)
		if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
			return err
		}
		units = append(units, d.Units...)
		// Of a pool with hosts the definition says nothing: one unit is enough to know that they have names.
		if pool, err := pools.Get(ctx, c.Caller, name, pools.Query{Limit: 1, Queue: 1}); err == nil && pool.Total > 0 {
			units = append(units, name)
		}
	}
	return f.checkUnits(c, names, units)
}

// checkUnits refuses to run the command without units: an empty variable, or none, often means all
// devices.
func (f *jobFlags) checkUnits(c *cli.Conn, names, units []string) error {
	if len(f.unitsEnv) == 0 || len(units)+len(f.around) > 0 {
		return nil
	}
	if f.pool {
		return cli.Hint(cli.Failure(leasehold.Refused, "%s is no pool: it has no units", names[0]),
			"say which there are: %s", c.Again("pool", "create", names[0], "--from", "nvidia-smi"))
	}
	return cli.Hint(cli.Failure(leasehold.Refused, "%s has no units that --units-env could name: its slots have no "+
		"names", names[0]), "name them: %s", c.Again("define", names[0], "--units", "0,1,2,3"))
}

// withUnits adds the variables for units to an environment, in place of what it has of these names.
func (f *jobFlags) withUnits(env, units []string) []string {
	if len(f.unitsEnv) == 0 {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(f.unitsEnv, name)
	})
	all := strings.Join(slices.Concat(f.around, units), ",")
	for _, name := range f.unitsEnv {
		env = append(env, name+"="+all)
	}
	return env
}

func unitsOf(holds []*client.Hold) (units []string) {
	for _, h := range holds {
		units = append(units, h.Units()...)
	}
	return units
}
