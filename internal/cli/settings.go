package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/store"
)

// Sources is where the settings of a command come from: the flags that were given
// and the environment.
func (a *App) Sources(cmd *cobra.Command) config.Sources {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, ok := config.Lookup(f.Name, a.Doors...); ok {
			given[f.Name] = f.Value.String()
		}
	})
	return config.Sources{Flags: given, Environ: a.Environ, Doors: a.Doors}
}

// SettingFlag makes a flag from the table of settings.
func (a *App) SettingFlag(cmd *cobra.Command, name, letter string) {
	key, ok := config.Lookup(name, a.Doors...)
	if !ok {
		panic("there is no setting " + name)
	}
	help := key.Help
	if len(key.Values) > 0 {
		help += ": " + OrList(key.Values)
	}
	help += " [$" + key.Env() + "]"
	if key.Switch {
		cmd.Flags().BoolP(name, letter, key.Default == "true", help)
	} else {
		cmd.Flags().StringP(name, letter, key.Default, help)
	}
	if len(key.Values) > 0 {
		CompleteFlag(cmd, name, key.Values)
	}
}

// CompleteFlag completes a flag that takes one of a few values.
func CompleteFlag(cmd *cobra.Command, name string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was just made
	}
}

// A Setting setting is what config show prints as JSON.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Shown returns settings as people see them.
func Shown(settings []config.Setting) (list []Setting) {
	for _, s := range settings {
		value := s.Value
		if s.Key.Name == "server" && store.Names(value) {
			value = store.Redact(value)
		}
		if s.Key.Name == "holder" && value == "" {
			value = Holder()
		}
		list = append(list, Setting{s.Key.Name, value, s.Origin})
	}
	return list
}
