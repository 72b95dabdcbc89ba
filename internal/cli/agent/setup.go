package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
)

// A program is one that runs agents, and how it is told of us.
type program struct {
	name  string
	edits func(s *setting) ([]*edit, error)
}

// programs are those that setup knows.
var programs = []program{{"claude", claudeEdits}, {"codex", codexEdits}, {"cursor", cursorEdits}}

// A setting is what a program is told.
type setting struct {
	app     *cli.App
	command string
	args    []string // of leasehold
}

// Setup returns the command setup.
func Setup(a *cli.App) *cobra.Command {
	var yes bool
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	cmd := &cobra.Command{
		Use:       "setup " + strings.Join(names, "|"),
		Short:     "Tell Claude Code, Codex or Cursor to take leases",
		ValidArgs: names,
		Long: `Setup gives the agents of a program the tools of "leasehold mcp", and writes to AGENTS.md
of this directory how they use them. It shows what it would change and asks; --yes
answers. What else is in the files stays, and a second time changes nothing. A link is
followed if it stays in this directory, and refused if it leads out of it.

  claude  .mcp.json here, and a hook in .claude/settings.json here that renews what an
          agent holds whenever it uses a tool; CLAUDE.md here if that is there, else AGENTS.md
  codex   .codex/config.toml in your home directory, and AGENTS.md here
  cursor  .cursor/mcp.json here, and AGENTS.md here

With --server or --namespace the agents use those, and else what "leasehold mcp" finds.`,
		Example: `  leasehold setup claude --yes
  leasehold setup codex --yes --server http://leases.example:4653
  leasehold setup cursor --yes -o json`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		i := slices.IndexFunc(programs, func(p program) bool { return p.name == args[0] })
		if i < 0 {
			return cli.Usage("unknown program %q; known are: %s", args[0], strings.Join(names, ", "))
		}
		edits, err := programs[i].edits(settingOf(a, cmd))
		if err != nil {
			return err
		}
		return apply(cmd.Context(), a, edits, yes)
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "change the files without asking")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// settingOf returns what a program is told. Only flags that were given are passed on: the rest is found anew each time
// that an agent starts.
func settingOf(a *cli.App, cmd *cobra.Command) *setting {
	s := &setting{app: a, command: "leasehold", args: []string{"mcp"}}
	for _, name := range []string{"server", "context", "namespace", "ca", "cert", "key", "token-file"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			s.args = append(s.args, "--"+name, f.Value.String())
		}
	}
	return s
}

// claudeEdits tells Claude Code. Its agents read CLAUDE.md, and AGENTS.md where that is named in it or is all there is;
// a hook of the project renews what an agent holds in the middle of long work.
func claudeEdits(s *setting) ([]*edit, error) {
	notes := "AGENTS.md"
	if _, err := os.Stat("CLAUDE.md"); err == nil {
		notes = "CLAUDE.md"
	}
	return together(s.serversIn(".mcp.json"), hookIn(filepath.Join(".claude", "settings.json")), notesIn(notes))
}

// cursorEdits tells Cursor, for this project alone.
func cursorEdits(s *setting) ([]*edit, error) {
	return together(s.serversIn(filepath.Join(".cursor", "mcp.json")), notesIn("AGENTS.md"))
}

// codexEdits tells Codex, which has one file for all projects of a person.
func codexEdits(s *setting) ([]*edit, error) {
	home := s.app.Getenv("CODEX_HOME")
	if home == "" {
		home = filepath.Join(s.app.Getenv("HOME"), ".codex")
	}
	return together(s.tableIn(filepath.Join(home, "config.toml")), notesIn("AGENTS.md"))
}

// notesIn tells agents, in the file that they read first.
func notesIn(path string) change {
	return change{path: path, to: func(before string) (string, error) { return primed(before), nil }}
}

// serversIn puts us among the servers of MCP in a file.
func (s *setting) serversIn(path string) change {
	return change{path: path, to: func(before string) (string, error) {
		entry, err := json.Marshal(struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		}{s.command, s.args})
		if err != nil {
			return "", err
		}
		return inJSON(before, entry, "mcpServers", "leasehold")
	}}
}

// hookCommand is what Claude Code runs after each use of a tool.
const hookCommand = "leasehold renew --mine --quiet"

// hookIn puts the hook among those in a file, unless it is there.
func hookIn(path string) change {
	return change{path: path, to: func(before string) (string, error) {
		if strings.Contains(before, hookCommand) {
			return before, nil
		}
		var now struct {
			Hooks struct {
				PostToolUse []json.RawMessage
			} `json:"hooks"`
		}
		if before != "" {
			if err := json.Unmarshal([]byte(before), &now); err != nil {
				return "", err
			}
		}
		hook := `{"matcher":"*","hooks":[{"type":"command","command":"` + hookCommand + `"}]}`
		all, err := json.Marshal(append(now.Hooks.PostToolUse, json.RawMessage(hook)))
		if err != nil {
			return "", err
		}
		return inJSON(before, all, "hooks", "PostToolUse")
	}}
}

// tableIn puts us into a file of TOML in the person's own directory. A table that is there stays as it is: it may have
// been changed on purpose.
func (s *setting) tableIn(path string) change {
	return change{path: path, own: true, to: func(before string) (string, error) {
		if regexp.MustCompile(`(?m)^\s*\[\s*mcp_servers\s*\.\s*"?leasehold"?\s*\]`).MatchString(before) {
			return before, nil
		}
		args, err := json.Marshal(s.args) // a list of plain strings is written alike
		if err != nil {
			return "", err
		}
		table := fmt.Sprintf("[mcp_servers.leasehold]\ncommand = %q\nargs = %s\n", s.command, args)
		if before == "" {
			return table, nil
		}
		return strings.TrimRight(before, "\n") + "\n\n" + table, nil
	}}
}

// A member is one name of a JSON object with its value.
type member struct {
	name  string
	value json.RawMessage
}

// inJSON sets a value in a JSON text, below some names. Everything else stays, in its order.
func inJSON(text string, value json.RawMessage, names ...string) (string, error) {
	raw, err := set(json.RawMessage(text), value, names)
	if err != nil {
		return "", err
	}
	var was, is bytes.Buffer
	if json.Compact(&was, []byte(text)) == nil && json.Compact(&is, raw) == nil && was.String() == is.String() {
		return text, nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		return "", err
	}
	return pretty.String() + "\n", nil
}

// set returns an object with a value below some names. Objects on the way that are not there are made; what is there
// and is no object is an error, since somebody meant something else by it.
func set(object, value json.RawMessage, names []string) (json.RawMessage, error) {
	if len(names) == 0 {
		return value, nil
	}
	members, err := membersOf(object)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(members, func(m member) bool { return m.name == names[0] })
	if i < 0 {
		i, members = len(members), append(members, member{name: names[0]})
	}
	if members[i].value, err = set(members[i].value, value, names[1:]); err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), m.value...)
	}
	return append(out, '}'), nil
}

// membersOf reads an object, with its members in their order and their values as they are written; one that is not
// there is empty.
func membersOf(object json.RawMessage) (members []member, err error) {
	if len(bytes.TrimSpace(object)) == 0 {
		return nil, nil
	}
	if !json.Valid(object) {
		return nil, errors.New("it is not valid JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, errors.New("an object is expected in it, and there is something else")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)}
		if err := decoder.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// A changed is what was done to a file, as JSON.
type changed struct {
	File    string `json:"file"`
	Target  string `json:"target,omitempty"` // where it leads, if it is a link
	Changed bool   `json:"changed"`
}

// apply shows what would change, asks, and changes it.
func apply(ctx context.Context, a *cli.App, edits []*edit, yes bool) error {
	done, some := []changed{}, false
	for _, e := range edits {
		done = append(done, changed{e.path, e.target, e.before != e.after})
		some = some || e.before != e.after
		if a.Output != cli.FormatJSON && e.before != e.after {
			if err := printLines(a, diff(e)); err != nil {
				return err
			}
		}
	}
	switch {
	case !some:
		a.Say("nothing to change: all of it is there")
	case yes:
	case !a.Terminal(a.Stdin):
		return cli.Usage("nobody can be asked here, and nothing was changed: add --yes")
	default:
		if err := a.Confirm(ctx, "change these files? yes or no: ", "yes", "y"); err != nil {
			return err
		}
	}
	for _, e := range edits {
		if err := e.write(); err != nil {
			return err
		}
	}
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(done)
	}
	if some {
		a.Say("done: agents that start from now on have the tools")
	}
	return nil
}
