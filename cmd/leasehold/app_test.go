package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/node"
)

// A trial is an app whose streams a test can read, and whose terminal it makes up.
type trial struct {
	*app
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
	tr := &trial{app: newApp()}
	tr.stdout, tr.stderr, tr.stdin = &tr.out, &tr.err, strings.NewReader("")
	tr.environ = append(env, "LEASEHOLD_SERVER=http://"+s.address)
	tr.terminal = func(any) bool { return atTerminal }
	tr.width = func() int { return 60 }
	return tr
}

// does runs a command line and fails the test unless it ends with the code.
func (tr *trial) does(t *testing.T, code int, args ...string) {
	t.Helper()
	tr.out.Reset()
	tr.err.Reset()
	tr.output, tr.quiet = formatTable, false
	if got := tr.run(args); got != code {
		t.Fatalf("leasehold %s ended with code %d, want %d\n%s", strings.Join(args, " "), got, code, tr.err.String())
	}
}

func TestEveryCodeHasAnExitCode(t *testing.T) {
	want := map[leasehold.Code]int{
		leasehold.Held: 75, leasehold.Lost: 76, leasehold.NotFound: 66, leasehold.Invalid: 64, leasehold.Denied: 77,
		leasehold.Limited: 73, leasehold.Unavailable: 69, leasehold.Undecided: 74, leasehold.Refused: 64,
	}
	for _, code := range leasehold.Codes {
		err := hint(&leasehold.Error{Code: code}, "try again")
		if got := exitCode(err); got != want[code] || got == 0 {
			t.Errorf("%v ends with %d, want %d", code, got, want[code])
		}
		if p := problem(err); p.Code != code.String() || p.Exit != want[code] {
			t.Errorf("%v is told as %+v", code, p)
		}
	}
	for err, want := range map[error]int{
		nil: 0, errors.New("what nobody foresaw"): 70, signalError(syscall.SIGINT): 130, signalError(syscall.SIGTERM): 143,
		&outputError{io.ErrShortWrite}: 74, hint(unfitError("clock"), ""): 71, several{leasehold.ErrLost, leasehold.ErrHeld}.first(): 76,
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v ends with %d, want %d", err, got, want)
		}
	}
}

// first makes a several, which is no key of a map, into something that is.
func (s several) first() error { return hint(s, "") }

func TestEveryExitCodeIsExplained(t *testing.T) {
	codes := []int{exitUsage, exitNotFound, exitUnavailable, exitBug, exitUnfit, exitLimited, exitUndecided, exitHeld, exitLost, exitDenied, exitSignal + 2}
	help := exitHelp()
	for _, code := range codes {
		if !regexp.MustCompile(`(?m)^  ` + jsonNumber(code) + ` +\S`).MatchString(help) {
			t.Errorf("the help does not say what %d means:\n%s", code, help)
		}
	}
}

func jsonNumber(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func commands(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		all = append(append(all, sub), commands(sub)...)
	}
	return all
}

func TestEveryCommandExplainsItself(t *testing.T) {
	root := newApp().root()
	for _, c := range commands(root) {
		if c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if len(c.Long) < 120 || c.Short == "" || c.Args == nil && c.Name() != "help" {
			t.Errorf("%s does not explain itself", c.CommandPath())
		}
		lines := strings.Split(c.Example, "\n")
		if len(lines) != 3 {
			t.Errorf("%s has %d examples, want 3", c.CommandPath(), len(lines))
		}
		for _, line := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			if len([]rune(line)) > 100 {
				t.Errorf("%s: %q is wider than a terminal", c.CommandPath(), line)
			}
		}
	}
}

// Every command line in an example, a topic or a text names commands and flags
// that there are.
func TestExamplesAreTrue(t *testing.T) {
	root := newApp().root()
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
				if found.Flags().Lookup(f[1]) == nil && found.Flags().ShorthandLookup(f[1][:1]) == nil && found.InheritedFlags().ShorthandLookup(f[1][:1]) == nil {
					t.Errorf("%s: %q names --%s, which %s does not have", c.CommandPath(), example[0], f[1], found.Name())
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
			code = exitHeld
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
		tr.stdin = strings.NewReader(answer)
		tr.does(t, code, "break", "a", "--reason", "stuck", "--now")
		if !strings.Contains(tr.err.String(), "ann (release 310)") || !strings.Contains(tr.err.String(), "nothing was done") {
			t.Errorf("the answer %q was told:\n%s", answer, tr.err.String())
		}
	}
	tr.does(t, 0, "renew", "a-1")
	tr.stdin = strings.NewReader("yes\n")
	tr.does(t, 0, "break", "a", "--reason", "stuck", "--now")
	tr.does(t, 76, "renew", "a-1")
}

func TestBreakDoesNotAskElsewhere(t *testing.T) {
	tr := newTrial(t, false)
	tr.does(t, 0, "acquire", "a", "--id", "a-1", "--holder", "ann")
	tr.stdin = strings.NewReader("yes\n")
	tr.does(t, 64, "break", "a", "--reason", "stuck", "--now")
	tr.does(t, 0, "renew", "a-1")
}

// Between the look and the yes the lease may have changed hands: the next holder
// is never hit.
func TestBreakHitsOnlyWhatWasShown(t *testing.T) {
	tr := newTrial(t, true)
	tr.does(t, 0, "acquire", "a", "--id", "a-1", "--holder", "ann")
	tr.stdin = readerFunc(func(b []byte) (int, error) {
		other := &trial{app: newApp()}
		other.stdout, other.stderr, other.environ = &other.out, &other.err, tr.environ
		other.does(t, 0, "release", "a-1")
		other.does(t, 0, "acquire", "a", "--id", "a-2", "--holder", "bob")
		return copy(b, "yes\n"), io.EOF
	})
	tr.does(t, 76, "break", "a", "--reason", "stuck", "--now")
	tr.does(t, 0, "renew", "a-2")
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
	tr.terminal = func(any) bool { return false }
	tr.does(t, 0, "list")
	if !strings.Contains(tr.out.String(), long) {
		t.Errorf("the holder was cut although nobody looks:\n%s", tr.out.String())
	}
}

// A holder can call itself what it likes. It must not be able to write on the
// terminal of whoever lists the leases.
func TestNamesCanNotMoveTheCursor(t *testing.T) {
	for given, want := range map[string]string{
		"plain": "plain", "dé vil": "dé vil", "a\x1b[2Jb": `a\u001b[2Jb`, "a\nb": `a\u000ab`, "a\u202eb": `a\u202eb`, "a\xffb": "a�b", "日本": "日本",
	} {
		if got := printable(given); got != want {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
	}
}

func TestABugIsReported(t *testing.T) {
	tr := newTrial(t, false)
	tr.serve = func(context.Context, node.Config, func(string)) error { panic("off by one") }
	tr.does(t, 70, "serve")
	if !strings.Contains(tr.err.String(), "leasehold: this is a bug: off by one") || !strings.Contains(tr.err.String(), "app_test.go") {
		t.Errorf("the report does not help:\n%s", tr.err.String())
	}
}

func TestServeIsGivenWhatWasSettled(t *testing.T) {
	tr := newTrial(t, false, "LEASEHOLD_LOG_LEVEL=debug")
	var got node.Config
	tr.serve = func(_ context.Context, c node.Config, ready func(string)) error {
		got = c
		ready("0.0.0.0:99")
		return nil
	}
	tr.does(t, 0, "serve", "--listen", "0.0.0.0:99", "--insecure", "--data", "d")
	if got.Listen != "0.0.0.0:99" || !got.Insecure || got.Data != "d" || got.LogLevel.String() != "DEBUG" || got.Version.Go == "" || got.Log == nil {
		t.Errorf("the server was given %+v", got)
	}
	for _, want := range []string{"leasehold serves on http://0.0.0.0:99, data in /", "warning: everybody who can reach it", "--server http://127.0.0.1:99\n"} {
		if !strings.Contains(tr.err.String(), want) {
			t.Errorf("the greeting lacks %q:\n%s", want, tr.err.String())
		}
	}
}

// The first signal ends the context with the signal as its cause.
func TestSignal(t *testing.T) {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	err := interrupted(ctx, leasehold.ErrUndecided)
	if exitCode(err) != 143 {
		t.Errorf("after SIGTERM the error is %v", err)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 40 * time.Millisecond: "0s", 250 * time.Millisecond: "300ms", 1240 * time.Millisecond: "1.2s",
		9960 * time.Millisecond: "10s", 22400 * time.Millisecond: "22s", 59900 * time.Millisecond: "1m", 90 * time.Second: "1m30s",
		time.Hour - time.Millisecond: "1h", 2*time.Hour + 5*time.Minute: "2h5m", 24*time.Hour - time.Second: "1d", 76 * time.Hour: "3d4h",
	} {
		if got := short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestQuoteIsReadAsOneWord(t *testing.T) {
	for _, word := range []string{"prod/deploy", "", "two words", "it's", `a"b$c`, "*", "ü", "user@host:1", "-", "a;b"} {
		out, err := exec.Command("sh", "-c", "printf %s "+quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("sh reads %s as %q, %v; want %q", quote(word), out, err, word)
		}
	}
	if quote("prod/deploy") != "prod/deploy" {
		t.Error("a plain name is quoted for nothing")
	}
}

func TestFitTakesFromTheWidest(t *testing.T) {
	columns := []column{{name: "A"}, {name: "B", flexible: true}, {name: "C", flexible: true}}
	widths := []int{30, 40, 20}
	fit(columns, widths, 80)
	if !slices.Equal(widths, []int{30, 26, 20}) {
		t.Errorf("got %v", widths)
	}
	fit(columns, widths, 10)
	if !slices.Equal(widths, []int{30, 12, 12}) {
		t.Errorf("got %v, want no column cut below %d", widths, leastCut)
	}
	fit(columns, widths, 0)
}
