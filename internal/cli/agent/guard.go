package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/pattern"
	"github.com/leasehold/leasehold/internal/profile"
)

// hooks are those of git that the guard is.
var hooks = []string{"pre-commit", "pre-push"}

// Guard returns the command guard.
func Guard(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "guard COMMAND",
		Short: "Keep commits out of files that others have leased",
		Long: `Guard is a hook of git that refuses a commit, or a push, which touches a file that
somebody else has leased, or that you have lost your lease on. The lease of a file is on
repo/NAME:PATH, where NAME is the name of the repository's directory, or what "git config
leasehold.name" says. A lease on a directory is for all below it; in a PATH, * stands for
any part of one segment, and ** for any number of segments.`,
		Example: `  leasehold guard install
  leasehold guard check pre-commit
  git config leasehold.name web`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(guardInstall(a), guardCheck(a))
	return cmd
}

// guardInstall returns the command guard install.
func guardInstall(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the guard as hooks of the repository that you are in",
		Long: `Install writes the hooks pre-commit and pre-push of the repository that you are in. A hook
that is there already, and is not ours, stays: the command then says which line to add
to it. A second time it changes nothing.`,
		Example: `  leasehold guard install
  leasehold guard install -o json
  leasehold guard install --quiet`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return installHooks(cmd.Context(), a) }
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// guardCheck returns the command guard check.
func guardCheck(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check pre-commit|pre-push [REMOTE [URL]]",
		Short: "Refuse what touches the leases of others",
		Long: `Check is what the hooks run. For pre-commit it looks at what is staged, for pre-push at
the commits that git says on standard input are about to be pushed. It ends with code 75
if somebody else has leased one of the files, and with 76 if you have lost your lease on one.

Yours are the leases of LEASEHOLD_HOLDER, of the agent whose program runs git, and of the
shell that does. If no server is named and none runs on this machine, nothing is leased; if
one is named and does not answer, the check fails.`,
		Example: `  leasehold guard check pre-commit
  leasehold guard check pre-commit --holder reviewer
  leasehold guard check pre-push origin < refs`,
		Args: cli.Takes(1, 3), ValidArgs: hooks,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return checkTouched(a, cmd, args) }
	a.ClientFlags(cmd)
	a.SettingFlag(cmd, "holder", "")
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// git asks git something. In a hook the environment says which repository and which index it is about.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", cli.Failure(leasehold.Refused, "git %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return "", cli.Failure(leasehold.Unavailable, "git cannot be run: %v", err)
	}
	return string(out), nil
}

// hookText is a hook as install writes it. It is known again by its second line.
func hookText(hook string) string {
	return "#!/bin/sh\n# leasehold guard: what others have leased is not changed; --no-verify goes past it\n" +
		"exec leasehold guard check " + hook + ` "$@"` + "\n"
}

// installHooks writes the hooks, each only if there is none: to run ours beside another, its author has to say in which
// order, and who reads what git says on standard input.
func installHooks(ctx context.Context, a *cli.App) error {
	dir, folder, err := hooksFolder(ctx)
	if err != nil {
		return err
	}
	done := []changed{}
	for _, hook := range hooks {
		e, err := within(dir, filepath.Join(folder, hook))
		if err != nil {
			return err
		}
		switch {
		case strings.Contains(e.before, "leasehold guard check"):
		case e.was:
			return cli.Hint(cli.Failure(leasehold.Refused, "%s is there already, and stays as it is", e.shown()),
				"add this line to it: leasehold guard check %s \"$@\" || exit", hook)
		default:
			e.after, e.mode = hookText(hook), 0o755
			if err := e.write(); err != nil {
				return cli.Failure(leasehold.Refused, "%v", err)
			}
		}
		done = append(done, changed{e.path, e.target, !e.was})
		a.Say("%s runs the guard", e.shown())
	}
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(done)
	}
	return nil
}

// hooksFolder returns the directory of the hooks, as a folder of the one that its links must not leave: the repository;
// or the folder itself, where the configuration says that hooks are elsewhere.
func hooksFolder(ctx context.Context) (dir, folder string, err error) {
	hooks, err := git(ctx, "rev-parse", "--git-path", "hooks")
	if err != nil {
		return "", "", err
	}
	hooks = strings.TrimSpace(hooks)
	common, err := git(ctx, "rev-parse", "--git-common-dir")
	if err != nil {
		return "", "", err
	}
	dir = strings.TrimSpace(common)
	if filepath.Base(dir) == ".git" {
		dir = filepath.Dir(dir)
	}
	if folder, err = filepath.Rel(dir, hooks); err != nil || !filepath.IsLocal(folder) {
		return hooks, ".", nil
	}
	return dir, folder, nil
}

// checkTouched refuses a commit or a push. It asks once for all that is leased in the repository, and compares that
// here: a commit may touch very many files, and leases are few.
func checkTouched(a *cli.App, cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	touched, err := touchedBy(ctx, a.Stdin, args)
	if err != nil {
		return err
	}
	c, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	if !a.ServerNamed(cmd) && len(touched) > 0 {
		url, ok := runningHere(ctx, a)
		if !ok {
			return report(a, nil) // there is no server, so nobody has leased anything
		}
		client := c.Client
		client.Servers, client.Server = []string{url}, url
		if c, err = cli.NewConn(client, cmd); err != nil {
			return err
		}
	}
	prefix, err := repository(ctx)
	if err != nil || len(touched) == 0 {
		return errors.Join(err, report(a, nil))
	}
	leased, err := c.Everything(ctx, v1.ResourceQuery{Prefix: prefix})
	if err != nil {
		return c.Explain(err)
	}
	return report(a, conflicts(leased, prefix, touched, mineOf(a, c)))
}

// runningHere returns where a server is that nobody named.
func runningHere(ctx context.Context, a *cli.App) (url string, ok bool) {
	if dir, err := stateDir(a.Getenv); err == nil {
		if url, ok = dir.Server(ctx); ok {
			return url, true
		}
	}
	url = "http://" + cli.UsualAddress
	return url, profile.Answers(ctx, url)
}

// repository returns how the names of leases on files of this repository begin. All its worktrees have the same.
func repository(ctx context.Context) (string, error) {
	if name, err := git(ctx, "config", "leasehold.name"); err == nil && strings.TrimSpace(name) != "" {
		return "repo/" + strings.TrimSpace(name) + ":", nil
	}
	dir, err := git(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", err
	}
	dir = strings.TrimSpace(dir)
	if path.Base(dir) == ".git" {
		dir = path.Dir(dir)
	}
	return "repo/" + strings.TrimSuffix(path.Base(dir), ".git") + ":", nil
}

// touchedBy returns the files that a commit or a push would change.
func touchedBy(ctx context.Context, stdin io.Reader, args []string) ([]string, error) {
	switch args[0] {
	case "pre-commit":
		list, err := git(ctx, "diff", "--cached", "--name-only", "--no-renames", "-z")
		return names(list), err
	case "pre-push":
		return pushed(ctx, stdin)
	}
	return nil, cli.Usage("unknown hook %q; known are: %s", args[0], strings.Join(hooks, ", "))
}

// pushed returns the files that are changed by commits which the remote does not have yet: since what it has of the
// branch, or, if that is not known here, since what any remote is known to have.
func pushed(ctx context.Context, refs io.Reader) (touched []string, err error) {
	lines := bufio.NewScanner(refs)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 4 || strings.Trim(fields[1], "0") == "" { // it is a branch that is deleted
			continue
		}
		since := []string{"--not", "--remotes"}
		if strings.Trim(fields[3], "0") != "" {
			if _, err := git(ctx, "cat-file", "-e", fields[3]); err == nil {
				since = []string{"--not", fields[3]}
			}
		}
		args := append([]string{"log", "--format=", "--name-only", "--no-renames", "-m", "-z", fields[1]}, since...)
		list, err := git(ctx, append(args, "--")...)
		if err != nil {
			return nil, err
		}
		touched = append(touched, names(list)...)
	}
	slices.Sort(touched)
	return slices.Compact(touched), lines.Err()
}

// names splits a list of files as git writes it with -z.
func names(list string) (all []string) {
	for name := range strings.SplitSeq(list, "\x00") {
		if name = strings.Trim(name, "\n"); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// mineOf tells the holders that are the caller's own: the name that it was given, the agent whose program runs git, and
// the shells above it, by whose numbers "leasehold acquire" calls its holders.
func mineOf(a *cli.App, c *cli.Conn) func(holder string) bool {
	var own []string
	if c.Client.Holder != "" {
		own = append(own, c.Client.Holder)
	}
	if dir, err := stateDir(a.Getenv); err == nil {
		for _, r := range relatives(dir) {
			own = append(own, r.Agent)
		}
	}
	for _, pid := range ancestry(os.Getppid()) {
		own = append(own, fmt.Sprintf("%s:%d", cli.Person(), pid))
	}
	return func(holder string) bool { return slices.Contains(own, holder) }
}

// A conflict is a file that must not be changed now, since somebody else has leased it, or since the lease on it was
// lost.
type conflict struct {
	Path     string `json:"path"`
	Resource string `json:"resource"`
	Holder   string `json:"holder"`
	Why      string `json:"why"`
	lost     bool
}

// conflicts compares the files that are touched with what is leased, or was lost.
func conflicts(leased []v1.Resource, prefix string, touched []string, mine func(string) bool) (all []conflict) {
	for i := range leased {
		r := &leased[i]
		for _, file := range touched {
			if !covers(r.Resource, prefix, file) {
				continue
			}
			if c, found := conflictOn(r, file, mine); found {
				all = append(all, c)
			}
		}
	}
	return all
}

// conflictOn says what is in the way of one file. A lease that its holder lost is in the way of that holder alone: it
// may have worked on while somebody else could.
func conflictOn(r *v1.Resource, file string, mine func(string) bool) (conflict, bool) {
	for _, l := range r.Holders {
		if !mine(l.Holder) {
			return conflict{Path: file, Resource: r.Resource, Holder: l.Holder, Why: l.Reason}, true
		}
	}
	last := r.Last
	unclean := r.State == leasehold.Expired.String() || r.State == leasehold.Broken.String()
	if len(r.Holders) == 0 && unclean && last != nil && mine(last.Holder) {
		return conflict{Path: file, Resource: r.Resource, Holder: last.Holder, Why: last.How, lost: true}, true
	}
	return conflict{}, false
}

// covers reports whether a lease on a name of an area is about a file. Other stores than a server may have names that
// are no pattern: those are about the file of that name alone.
func covers(name, area, file string) bool {
	p, err := pattern.Parse(name)
	if err != nil {
		return name == area+file
	}
	return p.Covers(file)
}

// report says what is in the way, and refuses if anything is. That a lease was lost is the graver of the two: the files
// may have been changed by somebody else since.
func report(a *cli.App, all []conflict) error {
	if a.Output == cli.FormatJSON {
		if err := a.PrintJSON(append([]conflict{}, all...)); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	var lines []string
	code := leasehold.Held
	for _, c := range all {
		line := fmt.Sprintf("%s: %s has leased %s", c.Path, c.Holder, c.Resource)
		if c.lost {
			code = leasehold.Lost
			line = fmt.Sprintf("%s: your lease on %s was lost (%s)", c.Path, c.Resource, c.Why)
		} else if c.Why != "" {
			line += " (" + c.Why + ")"
		}
		lines = append(lines, cli.Printable(line))
	}
	return cli.Hint(cli.Failure(code, "%s", strings.Join(lines, "; ")),
		"wait for it, ask with leasehold ask, or go past the guard with --no-verify")
}
