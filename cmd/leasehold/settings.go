package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/internal/config"
)

// sources is where the settings of a command come from: the flags that were given
// and the environment.
func (a *app) sources(cmd *cobra.Command) config.Sources {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, ok := config.Lookup(f.Name); ok {
			given[f.Name] = f.Value.String()
		}
	})
	return config.Sources{Flags: given, Environ: a.environ}
}

// settingFlag makes a flag from the table of settings.
func settingFlag(cmd *cobra.Command, name, letter string) {
	key, ok := config.Lookup(name)
	if !ok {
		panic("there is no setting " + name)
	}
	help := key.Help
	if len(key.Values) > 0 {
		help += ": " + orList(key.Values)
	}
	help += " [$" + key.Env() + "]"
	if key.Switch {
		cmd.Flags().BoolP(name, letter, key.Default == "true", help)
	} else {
		cmd.Flags().StringP(name, letter, key.Default, help)
	}
	if len(key.Values) > 0 {
		completeFlag(cmd, name, key.Values)
	}
}

func completeFlag(cmd *cobra.Command, name string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was just made
	}
}

// A shown setting is what config show prints as JSON.
type shown struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func toShown(settings []config.Setting) (list []shown) {
	for _, s := range settings {
		value := s.Value
		if s.Key.Name == "holder" && value == "" {
			value = holder()
		}
		list = append(list, shown{s.Key.Name, value, s.Origin})
	}
	return list
}
