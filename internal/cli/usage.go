package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/internal/config"
)

// Takes checks how many arguments a command was given; most < 0 means any number.
func Takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return SeeHelp(cmd, Usage("%s needs more arguments: %s", cmd.Name(), UsageOf(cmd)))
		case most >= 0 && len(args) > most:
			return SeeHelp(cmd, Usage("%s does not take %q: %s", cmd.Name(), args[most], UsageOf(cmd)))
		}
		return nil
	}
}

// UsageOf returns how a command is called.
func UsageOf(cmd *cobra.Command) string { return "leasehold " + pathAndArgs(cmd) }

// pathAndArgs is the usage line without the program and without "[flags]".
func pathAndArgs(cmd *cobra.Command) string {
	line := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	return strings.TrimPrefix(line, cmd.Root().Name()+" ")
}

// SeeHelp adds to an error where the command is explained.
func SeeHelp(cmd *cobra.Command, err error) error {
	return Hint(err, "all about it: %s --help", cmd.CommandPath())
}

// flagError turns cobra's errors about flags into ones that say what to write instead: which flags
// there are, and what a flag takes.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		return SeeHelp(cmd, unknownFlag(cmd, unknown))
	case errors.As(err, &missing):
		return SeeHelp(cmd, Usage("--%s needs a value: %s", missing.GetFlag().Name, missing.GetFlag().Usage))
	case errors.As(err, &invalid):
		return SeeHelp(cmd, Usage("--%s is %q: %s", invalid.GetFlag().Name, invalid.GetValue(),
			whyInvalid(invalid.Unwrap())))
	}
	return SeeHelp(cmd, Usage("%v", err))
}

// whyInvalid says what is wrong with a value, without the names of Go functions that strconv puts
// into its errors.
func whyInvalid(err error) string {
	var number *strconv.NumError
	switch {
	case !errors.As(err, &number):
		return err.Error()
	case errors.Is(err, strconv.ErrRange):
		return "the number is too large"
	case number.Func == "ParseBool":
		return "write true or false"
	case number.Func == "ParseUint":
		return "write a whole number that is not less than 0"
	}
	return "write a number"
}

// unknownFlag suggests the nearest flag, or lists all: most wrong flags are typing errors.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	given := "--" + err.GetSpecifiedName()
	if err.GetSpecifiedShortnames() != "" {
		given = "-" + err.GetSpecifiedName()
	}
	if near := config.Nearest(err.GetSpecifiedName(), names); near != "" {
		return Usage("%s has no flag %s: did you mean --%s?", cmd.Name(), given, near)
	}
	return Usage("%s has no flag %s: it takes --%s", cmd.Name(), given, strings.Join(names, ", --"))
}

// Group is the body of a command that has only subcommands.
func (a *App) Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand suggests the nearest command, or lists all.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := config.Nearest(name, names); near != "" {
		return SeeHelp(cmd, Usage("%s has no command %q: did you mean %s?", cmd.CommandPath(), name, near))
	}
	return SeeHelp(cmd, Usage("%s has no command %q: use %s", cmd.CommandPath(), name, OrList(names)))
}

// Needs refuses a command without a flag that has no sensible default.
func Needs(cmd *cobra.Command, flag, why string) error {
	if f := cmd.Flags().Lookup(flag); f.Changed && f.Value.String() != "" {
		return nil
	}
	return SeeHelp(cmd, Usage("%s needs --%s: %s", cmd.Name(), flag, why))
}
