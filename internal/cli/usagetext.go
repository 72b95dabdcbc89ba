package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is that of the terminal which most people still open.
const helpWidth = 80

// fitHelp breaks the explanations of a command, and of those below it, at helpWidth.
func fitHelp(cmd *cobra.Command) {
	cmd.Long = fitParagraphs(cmd.Long)
	for _, sub := range cmd.Commands() {
		fitHelp(sub)
	}
}

// fitParagraphs breaks paragraphs with a line that is too long anew. Lines that are indented are
// tables and examples, and stay.
func fitParagraphs(text string) string {
	var out, paragraph []string
	flush := func() {
		if slices.ContainsFunc(paragraph, func(line string) bool { return columnsOf(line) > helpWidth }) {
			paragraph = breakWords(strings.Fields(strings.Join(paragraph, " ")), helpWidth)
		}
		out, paragraph = append(out, paragraph...), nil
	}
	for _, line := range strings.Split(text, "\n") {
		if line != "" && !strings.HasPrefix(line, " ") {
			paragraph = append(paragraph, line)
			continue
		}
		flush()
		out = append(out, line)
	}
	flush()
	return strings.Join(out, "\n")
}

// breakWords puts words into lines of at most that many columns.
func breakWords(words []string, width int) (lines []string) {
	for _, word := range words {
		if n := len(lines) - 1; n >= 0 && columnsOf(lines[n]+" "+word) <= width {
			lines[n] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// writeUsage writes how a command is called. Cobra's own text mixes the flags by which a
// server is found, which are the same everywhere, with those of the command.
func writeUsage(cmd *cobra.Command) error {
	if !cmd.HasParent() {
		return writeFirstUsage(cmd)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", UsageOf(cmd))
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	usageOfCommands(&b, cmd)
	usageOfFlags(&b, cmd)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\"leasehold help%s COMMAND\" explains a command.\n",
			strings.TrimPrefix(cmd.CommandPath(), "leasehold"))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// writeFirstUsage writes what people come for first. It fits a screen: the list of all commands is
// one step away.
func writeFirstUsage(root *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  leasehold COMMAND\n\nFirst steps:\n%s\n", root.Example)
	b.WriteString(`
More:
  leasehold help all            every command; Terraform, Azure, clusters too
  leasehold help COMMAND        flags and examples of a command
  leasehold help exit-codes     exit codes; other topics: configuration, output
`)
	usageOfFlags(&b, root)
	_, err := io.WriteString(root.OutOrStdout(), b.String())
	return err
}

// UsageOf returns how a command is called, with the place for flags before a "--": what follows
// that belongs to another program.
func UsageOf(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && !hasOwnFlags(cmd) {
		return cmd.CommandPath() + " COMMAND" // it does nothing by itself
	}
	line := cmd.UseLine()
	if own, others, found := strings.Cut(strings.TrimSuffix(line, " [flags]"), " -- "); found {
		return own + " [flags] -- " + others
	}
	return line
}

// usageOfCommands lists the subcommands of a command by group, and then the topics.
func usageOfCommands(b *strings.Builder, cmd *cobra.Command) {
	width := 13
	for _, sub := range cmd.Commands() {
		width = max(width, len(sub.Name()))
	}
	list := func(title string, belongs func(*cobra.Command) bool) {
		for _, sub := range cmd.Commands() {
			if !belongs(sub) {
				continue
			}
			if title != "" {
				fmt.Fprintf(b, "\n%s\n", title)
				title = ""
			}
			fmt.Fprintf(b, "  %-*s %s\n", width, sub.Name(), sub.Short)
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, func(sub *cobra.Command) bool { return sub.GroupID == g.ID })
	}
	list("Commands:", func(sub *cobra.Command) bool { return sub.GroupID == "" && sub.IsAvailableCommand() })
	list("Topics (leasehold help TOPIC):", (*cobra.Command).IsAdditionalHelpTopicCommand)
}

// usageOfFlags lists the flags of a command, those of the connection, and those of all.
func usageOfFlags(b *strings.Builder, cmd *cobra.Command) {
	titles := []string{"Flags:", "Connection:", "Everywhere:"}
	sets := [3]pflag.FlagSet{}
	place := func(f *pflag.Flag) {
		switch {
		case slices.Contains(everywhere, f.Name):
			sets[2].AddFlag(f)
		case slices.Contains(connectionFlags, f.Name) && cmd.Flags().Lookup("server") != nil:
			sets[1].AddFlag(f)
		default:
			sets[0].AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(place)
	cmd.InheritedFlags().VisitAll(place)
	for i := range sets {
		if sets[i].HasAvailableFlags() {
			fmt.Fprintf(b, "\n%s\n%s", titles[i], sets[i].FlagUsagesWrapped(helpWidth))
		}
	}
}

// hasOwnFlags reports whether a command has flags besides those of every command.
func hasOwnFlags(cmd *cobra.Command) (own bool) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { own = own || !slices.Contains(everywhere, f.Name) })
	return own
}

// Flags that are shown apart from those of a command.
var (
	everywhere      = []string{"help", "quiet", "version"}
	connectionFlags = append([]string{"namespace", "insecure"}, serverSettings...)
)
