package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/node"
)

// A trial is an app whose streams a test can read, and whose terminal it makes up.
type trial struct {
	*program
	out, err bytes.Buffer
}

func newTrial(t *testing.T, atTerminal bool, env ...string) *trial {
	t.Helper()
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	return newTrialAt(t, s, atTerminal, env...)
}

func newTrialAt(t *testing.T, s *testServer, atTerminal bool, env ...string) *trial {
	t.Helper()
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	tr := &trial{program: newProgram()}
	tr.Stdout, tr.Stderr, tr.Stdin = &tr.out, &tr.err, strings.NewReader("")
	tr.Environ = append(env, "LEASEHOLD_SERVER=http://"+s.address)
	tr.Terminal = func(any) bool { return atTerminal }
	tr.Width = func() int { return 60 }
	return tr
}

// does runs a command line and fails the test unless it ends with the code.
func (tr *trial) does(t *testing.T, code int, args ...string) {
	t.Helper()
	tr.out.Reset()
	tr.err.Reset()
	tr.Output, tr.Quiet = cli.FormatTable, false
	if got := tr.execute(args); got != code {
		t.Fatalf("leasehold %s ended with code %d, want %d\n%s", strings.Join(args, " "), got, code, tr.err.String())
	}
}

func commands(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		all = append(append(all, sub), commands(sub)...)
	}
	return all
}

func TestEveryCommandExplainsItself(t *testing.T) {
	root := newProgram().root()
	for _, c := range commands(root) {
		if c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if len(c.Long) < 120 || c.Short == "" || c.Args == nil && c.Name() != "help" {
			t.Errorf("%s does not explain itself", c.CommandPath())
		}
		lines := strings.Split(c.Example, "\n")
		if len(lines) < 3 {
			t.Errorf("%s has %d examples, want 3 at least", c.CommandPath(), len(lines))
		}
		for _, line := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			if len([]rune(line)) > 100 {
				t.Errorf("%s: %q is wider than a terminal", c.CommandPath(), line)
			}
		}
	}
}

// The first page fits a screen, names the ten things that people come for, and leads to the rest.
func TestFirstHelpFitsAScreen(t *testing.T) {
	tr := newTrial(t, false)
	tr.does(t, 0, "--help")
	page := tr.out.String()
	if n := strings.Count(page, "\n"); n > 30 {
		t.Errorf("it has %d lines, which is more than a screen", n)
	}
	for line := range strings.Lines(page) {
		if n := len([]rune(strings.TrimSpace(line))); n > 80 {
			t.Errorf("%q has %d columns", line, n)
		}
	}
	for _, want := range []string{"serve", "run", "acquire", "release", "list", "describe", "break", "doctor", "demo",
		"connect", "help all"} {
		if !strings.Contains(page, "\n  leasehold "+want+" ") {
			t.Errorf("it does not name %s:\n%s", want, page)
		}
	}
	tr.does(t, 0, "help", "all")
	for _, c := range tr.root().Commands() {
		if !strings.Contains(tr.out.String(), "\n  "+c.Name()+" ") {
			t.Errorf("help all does not name %s", c.Name())
		}
	}
}

// Every command prints JSON, but those whose output is somebody else's.
func TestEveryCommandHasJSON(t *testing.T) {
	without := map[string]string{
		"leasehold run":        "the output is that of its command",
		"leasehold elect":      "the output is that of its command",
		"leasehold claim":      "the output is that of its command",
		"leasehold pool run":   "the output is that of its command",
		"leasehold pool adopt": "it waits for a process, and prints nothing",
		"leasehold serve":      "it prints its log",
		"leasehold mcp":        "the output is a protocol",
		"leasehold top":        "it draws on a terminal; list --watch -o json is for programs",
		"leasehold completion": "it prints a script for a shell",
		"leasehold state pull": "it prints the state, which is JSON",
	}
	for _, c := range commands(newProgram().root()) {
		if !c.Runnable() || c.HasSubCommands() || c.Name() == "help" {
			continue
		}
		flag, excuse := c.Flags().Lookup("output"), without[c.CommandPath()]
		if has := flag != nil && strings.Contains(flag.Usage, "json"); has == (excuse != "") {
			t.Errorf("%s has -o json: %v; excuse: %q", c.CommandPath(), has, excuse)
		}
	}
}

// What is suggested for a word from another system is a command that there is.
func TestSynonymsLeadSomewhere(t *testing.T) {
	root := newProgram().root()
	root.InitDefaultHelpCmd()
	quoted := regexp.MustCompile(`"([^"]*)"`)
	for word, meaning := range cli.Meanings() {
		if found, _, err := root.Find([]string{word}); err == nil && found != root {
			t.Errorf("%s is a command, and explained as %q", word, meaning)
		}
		for _, line := range quoted.FindAllStringSubmatch(meaning, -1) {
			found, _, err := root.Find(strings.Fields(line[1])[:1])
			if err != nil || found == root {
				t.Errorf("%s leads to %q, which is no command", word, line[1])
			}
		}
	}
}

// Every command line in an example, a topic or a text names commands and flags
// that there are.
func TestExamplesAreTrue(t *testing.T) {
	root := newProgram().root()
	line := regexp.MustCompile(`(?m)(?:^|[ (])leasehold ((?:[a-z]+ )?.*?)(?:[|;"&)>]|#|$)`)
	flag := regexp.MustCompile(`(?:^| )--?([a-z][a-z-]*)`)
	seen := 0
	for _, c := range append(commands(root), root) {
		for _, example := range line.FindAllStringSubmatch(c.Example, -1) {
			found, _, err := root.Find(strings.Fields(example[1]))
			if err != nil || found == root {
				t.Errorf("%s: no command in %q", c.CommandPath(), example[0])
				continue
			}
			seen++
			ours, _, _ := strings.Cut(example[1], " -- ") // what follows is another program's
			for _, f := range flag.FindAllStringSubmatch(ours, -1) {
				if found.Flags().Lookup(f[1]) == nil && found.Flags().ShorthandLookup(f[1][:1]) == nil &&
					found.InheritedFlags().ShorthandLookup(f[1][:1]) == nil {
					t.Errorf("%s: %q names --%s, which %s does not have", c.CommandPath(), example[0], f[1],
						found.Name())
				}
			}
		}
	}
	if seen < 3*len(root.Commands())-12 {
		t.Errorf("only %d examples were looked at", seen)
	}
}

// What the README lets a newcomer type works as it says: a line whose comment has
// the word refused is, and every other one is done.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Skip("there is no README yet")
	}
	tr := newTrial(t, false)
	word := regexp.MustCompile(`"[^"]*"|\S+`)
	lines := regexp.MustCompile(`(?m)^leasehold ([^#\n]*)(#.*)?$`).FindAllStringSubmatch(string(page), -1)
	for _, line := range lines {
		args := word.FindAllString(line[1], -1)
		for i := range args {
			args[i] = strings.Trim(args[i], `"`)
		}
		code := 0
		if strings.Contains(line[2], "refused") {
			code = cli.ExitHeld
		}
		tr.does(t, code, args...)
	}
	if len(lines) < 3 {
		t.Errorf("the README shows only %d commands", len(lines))
	}
}

func TestBreakAsksOnATerminal(t *testing.T) {
	tr := newTrial(t, true)
	tr.does(t, 0, "acquire", "a", "--id", "a-1", "--holder", "ann", "--reason", "release 310", "--ttl", "1h")
	for answer, code := range map[string]int{"": 64, "no\n": 64, "y\n": 64, "YES\n": 64, "yes, but\n": 64} {
		tr.Stdin = strings.NewReader(answer)
		tr.does(t, code, "break", "a", "--reason", "stuck", "--now")
		if !strings.Contains(tr.err.String(), "ann (release 310)") ||
			!strings.Contains(tr.err.String(), "nothing was done") {
			t.Errorf("the answer %q was told:\n%s", answer, tr.err.String())
		}
	}
	tr.does(t, 0, "renew", "a-1")
	tr.Stdin = strings.NewReader("yes\n")
	tr.does(t, 0, "break", "a", "--reason", "stuck", "--now")
	tr.does(t, 76, "renew", "a-1")
}

func TestBreakDoesNotAskElsewhere(t *testing.T) {
	tr := newTrial(t, false)
	tr.does(t, 0, "acquire", "a", "--id", "a-1", "--holder", "ann")
	tr.Stdin = strings.NewReader("yes\n")
	tr.does(t, 64, "break", "a", "--reason", "stuck", "--now")
	tr.does(t, 0, "renew", "a-1")
}

// Between the look and the yes the lease may have changed hands: the next holder
// is never hit.
func TestBreakHitsOnlyWhatWasShown(t *testing.T) {
	tr := newTrial(t, true)
	tr.does(t, 0, "acquire", "a", "--id", "a-1", "--holder", "ann")
	tr.Stdin = readerFunc(func(b []byte) (int, error) {
		other := &trial{program: newProgram()}
		other.Stdout, other.Stderr, other.Environ = &other.out, &other.err, tr.Environ
		other.does(t, 0, "release", "a-1")
		other.does(t, 0, "acquire", "a", "--id", "a-2", "--holder", "bob")
		return copy(b, "yes\n"), io.EOF
	})
	tr.does(t, 76, "break", "a", "--reason", "stuck", "--now")
	tr.does(t, 0, "renew", "a-2")
}

// The same among several who share: who was shown and is still there loses, the others do not.
func TestBreakOfSeveralHitsOnlyWhatWasShown(t *testing.T) {
	tr := newTrial(t, true)
	for _, id := range []string{"p-1", "p-2", "p-3"} {
		tr.does(t, 0, "acquire", "pool", "--shared", "--capacity", "5", "--id", id, "--holder", "ann")
	}
	tr.Stdin = readerFunc(func(b []byte) (int, error) {
		other := &trial{program: newProgram()}
		other.Stdout, other.Stderr, other.Environ = &other.out, &other.err, tr.Environ
		other.does(t, 0, "release", "p-1")
		other.does(t, 0, "change", "p-2", "--to-holder", "bob")
		other.does(t, 0, "acquire", "pool", "--shared", "--id", "p-4", "--holder", "ann")
		return copy(b, "yes\n"), io.EOF
	})
	tr.does(t, 76, "break", "pool", "--holder", "ann", "--reason", "stuck", "--now")
	if said := tr.err.String(); !strings.Contains(said, "broken: ann has lost pool") ||
		!strings.Contains(said, "p-2 no longer has token 2: bob has it with token 4") {
		t.Errorf("it was told:\n%s", said)
	}
	tr.does(t, 0, "renew", "p-2", "p-4")
	tr.does(t, 76, "renew", "p-3")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestColoursAreForPeople(t *testing.T) {
	cases := []struct {
		name     string
		terminal bool
		env      []string
		want     bool
	}{
		{"on a terminal", true, nil, true},
		{"in a pipe", false, nil, false},
		{"NO_COLOR", true, []string{"NO_COLOR=1"}, false},
		{"NO_COLOR that is empty", true, []string{"NO_COLOR="}, true},
		{"a dumb terminal", true, []string{"TERM=dumb"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial(t, c.terminal, c.env...)
			tr.does(t, 0, "acquire", "a", "--holder", "ann")
			for _, args := range [][]string{{"list"}, {"describe", "a"}} {
				tr.does(t, 0, args...)
				if got := strings.Contains(tr.out.String(), "\x1b[32mleased\x1b[0m"); got != c.want {
					t.Errorf("%v: colour is %v, want %v:\n%q", args, got, c.want, tr.out.String())
				}
			}
		})
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	long := strings.Repeat("long-", 20)
	tr := newTrial(t, true, "NO_COLOR=1")
	tr.does(t, 0, "acquire", "a", "--holder", long)
	tr.does(t, 0, "list")
	for line := range strings.Lines(tr.out.String()) {
		if n := len([]rune(strings.TrimSpace(line))); n > 60 {
			t.Errorf("%q has %d columns of 60", line, n)
		}
	}
	if !strings.Contains(tr.out.String(), "long-…") && !strings.Contains(tr.out.String(), "…") {
		t.Errorf("nothing shows that the holder was cut:\n%s", tr.out.String())
	}
	name := strings.Repeat("日本語/", 30) + "x"
	tr.does(t, 0, "acquire", name, "--holder", long)
	tr.does(t, 0, "list")
	for line := range strings.Lines(tr.out.String()) {
		if n := len([]rune(strings.TrimSpace(line))); n > 60 {
			t.Errorf("with a long name, %q has %d columns of 60", line, n)
		}
	}
	tr.does(t, 0, "list", "-o", "wide")
	if !strings.Contains(tr.out.String(), name) {
		t.Errorf("-o wide cuts:\n%s", tr.out.String())
	}
	tr.Terminal = func(any) bool { return false }
	tr.does(t, 0, "list")
	if !strings.Contains(tr.out.String(), long) || !strings.Contains(tr.out.String(), name) {
		t.Errorf("a name was cut although nobody looks:\n%s", tr.out.String())
	}
}

func TestABugIsReported(t *testing.T) {
	tr := newTrial(t, false)
	tr.Serve = func(context.Context, node.Config, func(node.Serving)) error { panic("off by one") }
	tr.does(t, 70, "serve")
	if !strings.Contains(tr.err.String(), "leasehold: this is a bug: off by one") ||
		!strings.Contains(tr.err.String(), "app_test.go") {
		t.Errorf("the report does not help:\n%s", tr.err.String())
	}
}

func TestServeIsGivenWhatWasSettled(t *testing.T) {
	tr := newTrial(t, false, "LEASEHOLD_LOG_LEVEL=debug")
	var got node.Config
	tr.Serve = func(_ context.Context, c node.Config, ready func(node.Serving)) error {
		got = c
		ready(node.Serving{Address: "0.0.0.0:99"})
		return nil
	}
	tr.does(t, 0, "serve", "--listen", "0.0.0.0:99", "--insecure", "--data", "d")
	if got.Listen != "0.0.0.0:99" || !got.Insecure || got.Data != "d" || got.LogLevel.String() != "DEBUG" ||
		got.Version.Go == "" || got.Log == nil {
		t.Errorf("the server was given %+v", got)
	}
	for _, want := range []string{"leasehold serves on http://0.0.0.0:99, data in /",
		"warning: anybody who can reach it", "the console is at http://127.0.0.1:99/\n", "--server http://127.0.0.1:99\n"} {
		if !strings.Contains(tr.err.String(), want) {
			t.Errorf("the greeting lacks %q:\n%s", want, tr.err.String())
		}
	}
}

func TestQuoteIsReadAsOneWord(t *testing.T) {
	for _, word := range []string{"prod/deploy", "", "two words", "it's", `a"b$c`, "*", "ü", "user@host:1", "-",
		"a;b"} {
		out, err := exec.Command("sh", "-c", "printf %s "+cli.Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("sh reads %s as %q, %v; want %q", cli.Quote(word), out, err, word)
		}
	}
	if cli.Quote("prod/deploy") != "prod/deploy" {
		t.Error("a plain name is quoted for nothing")
	}
}
