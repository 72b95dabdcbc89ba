package cli

import (
	"errors"
	"slices"
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
			return SeeHelp(cmd, Usage("missing %s; usage: %s", missingArg(cmd, len(args)), UsageOf(cmd)))
		case most >= 0 && len(args) > most:
			return SeeHelp(cmd, Usage("unexpected argument %q; usage: %s", args[most], UsageOf(cmd)))
		}
		return nil
	}
}

// missingArg returns the name of the argument behind those that were given.
func missingArg(cmd *cobra.Command, given int) string {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(word, "[") || strings.HasPrefix(word, "-") {
			continue
		}
		if given == 0 {
			return strings.TrimRight(word, ".…")
		}
		given--
	}
	return "argument"
}

// SeeHelp adds to an error where the command is explained.
func SeeHelp(cmd *cobra.Command, err error) error {
	return Hint(err, "see: %s --help", cmd.CommandPath())
}

// flagError turns cobra's errors about flags into ones that say what to write instead: which flags
// there are, and what a flag takes. The flag -o may be behind the one that is wrong, so that it was
// not parsed.
func (a *App) flagError(cmd *cobra.Command, err error) error {
	if a.Output == FormatTable && wantsJSON(a.Args) {
		a.Output = FormatJSON
	}
	group := !strings.Contains(cmd.Use, "[") // it takes nothing but commands
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && group && len(words) > 0 {
		return unknownCommand(cmd, words[0]) // whose flags are not known either
	}
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

// checkValues refuses "--" as the value of a flag. Somebody forgot the value: "run --terraform --
// terraform apply" would otherwise use a state named "--".
func checkValues(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "--" && err == nil {
			err = SeeHelp(cmd, Usage("--%s needs a value: %s", f.Name, f.Usage))
		}
	})
	return err
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
	near := config.Nearest(err.GetSpecifiedName(), names)
	if meant := flagSynonyms[err.GetSpecifiedName()]; meant != "" && slices.Contains(names, strings.Fields(meant)[0]) {
		near = meant
	}
	if near != "" {
		return Usage("unknown flag %s; did you mean --%s?", given, near)
	}
	return Usage("unknown flag %s; flags of %s: --%s", given, cmd.Name(), strings.Join(names, ", --"))
}

// wantsJSON reports whether arguments ask for JSON, wherever they do.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		if arg == "--" {
			return false
		}
		if (arg == "-o" || arg == "--output") && i+1 < len(args) {
			arg += "=" + args[i+1]
		}
		if name, value, _ := strings.Cut(arg, "="); (name == "-o" || name == "--output") && isJSON(value) {
			return true
		}
		if value, short := strings.CutPrefix(arg, "-o"); short && isJSON(value) {
			return true
		}
	}
	return false
}

func isJSON(format string) bool { return format == FormatJSON || format == FormatLines }

// Group is the body of a command that has only subcommands.
func (a *App) Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand suggests what was meant, or says where all commands are.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			names = append(names, sub.Name())
		}
	}
	subject := "unknown command " + strconv.Quote(name)
	if cmd.HasParent() {
		subject += " of " + cmd.CommandPath()
	}
	switch near := nearestCommand(name, names); {
	case !cmd.HasParent() && meanings[name] != "":
		return SeeHelp(cmd, Usage("%s; %s", subject, meanings[name]))
	case near != "":
		return SeeHelp(cmd, Usage("%s; did you mean %s?", subject, near))
	case !cmd.HasParent():
		return Hint(Usage("%s", subject), "see: leasehold help all")
	}
	return SeeHelp(cmd, Usage("%s; known: %s", subject, strings.Join(names, ", ")))
}

// Needs refuses a command without a flag that has no sensible default.
func Needs(cmd *cobra.Command, flag, why string) error {
	if f := cmd.Flags().Lookup(flag); f.Changed && f.Value.String() != "" {
		return nil
	}
	return SeeHelp(cmd, Usage("%s needs --%s: %s", cmd.Name(), flag, why))
}
