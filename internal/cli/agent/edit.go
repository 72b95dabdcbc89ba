package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/id"
)

// The files that are changed here are often in a clone of what a stranger wrote. A link in it may lead anywhere, such
// as to a person's keys, and a name that we would write to first may be such a link. So a link is followed only within
// the directory, what it leads to is what is changed, and every other file is made anew.

// An edit is a file as it is and as it should be.
type edit struct {
	path   string // as people call it
	target string // where that leads; empty: there is no link in it
	root   string // the directory that it does not leave
	name   string // of the file in it, behind all links
	before string
	after  string
	was    bool        // it was there
	mode   fs.FileMode // that it keeps
}

// A change is made to the text of a file.
type change struct {
	path string
	own  bool // the file is of the person's own directory: its links are, too
	to   func(before string) (string, error)
}

// together works out all changes, before any of them is made: one that cannot be made must not leave the others behind.
// Two paths may lead to one file, which gets both changes.
func together(changes ...change) (all []*edit, err error) {
	for _, c := range changes {
		e, err := c.open()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(other *edit) bool { return other.real() == e.real() })
		if i < 0 {
			i, all = len(all), append(all, e)
		}
		if all[i].after, err = c.to(all[i].after); err != nil {
			return nil, cli.Usage("%s cannot be changed: %v", c.path, err)
		}
	}
	return all, nil
}

// open reads the file as it is.
func (c *change) open() (*edit, error) {
	if !c.own {
		return within(".", c.path)
	}
	file, err := behind(c.path)
	if err != nil {
		return nil, err
	}
	e := &edit{path: c.path, root: filepath.Dir(file), name: filepath.Base(file)}
	if file != filepath.Clean(c.path) {
		e.target = file
	}
	return e, e.read()
}

// within reads a file below a directory. Links are followed as long as they stay there.
func within(dir, path string) (*edit, error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = behind(root)
	}
	if err != nil {
		return nil, err
	}
	file, err := behind(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(root, file)
	if err != nil || !filepath.IsLocal(name) {
		return nil, cli.Hint(cli.Failure(leasehold.Refused, "%s leads to %s, which is outside of %s: nothing was "+
			"changed", path, file, root), "put a file in the place of the link, or change %s yourself", file)
	}
	e := &edit{path: filepath.Join(dir, path), root: root, name: name}
	if name != filepath.Clean(path) {
		e.target = filepath.Join(dir, name)
	}
	return e, e.read()
}

// behind returns where a path leads, behind all links. The file, and directories above it, may be missing.
func behind(path string) (string, error) {
	file, err := filepath.EvalSymlinks(path)
	if _, seen := os.Stat(path); err != nil && errors.Is(seen, syscall.ELOOP) {
		return "", cli.Failure(leasehold.Refused, "the links of %s lead in a circle: nothing was changed", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	if to, err := os.Readlink(path); err == nil {
		return "", cli.Failure(leasehold.Refused, "%s leads to %s, which is not there: nothing was changed", path, to)
	}
	dir, err := behind(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// read reads the file, if it is there.
func (e *edit) read() error {
	e.mode = 0o644
	root, err := os.OpenRoot(e.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(e.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return cli.Failure(leasehold.Refused, "%s is not a file: nothing was changed", e.path)
	}
	text, err := root.ReadFile(e.name)
	e.before, e.after, e.was, e.mode = string(text), string(text), true, info.Mode().Perm()
	return err
}

// real returns where the file is, behind all links.
func (e *edit) real() string { return filepath.Join(e.root, e.name) }

// shown returns how people are told of the file.
func (e *edit) shown() string {
	if e.target == "" {
		return e.path
	}
	return e.path + " -> " + e.target
}

// write replaces a file at once, so that nobody reads half of it.
func (e *edit) write() error {
	if e.before == e.after {
		return nil
	}
	if err := os.MkdirAll(e.root, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(e.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(e.name), 0o755); err != nil {
		return err
	}
	// A new name, and made anew: one that is there may be a link.
	temporary := e.name + "." + id.New() + ".leasehold"
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, e.mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(e.after)
	if e.was {
		err = errors.Join(err, f.Chmod(e.mode))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temporary, e.name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return nil
}

// diff shows what changes in a file: all lines between the first and the last that differ. That is more than a diff
// needs, and enough to see before one says yes.
func diff(e *edit) string {
	before, after := strings.SplitAfter(e.before, "\n"), strings.SplitAfter(e.after, "\n")
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n", e.shown())
	for _, side := range []struct {
		sign  string
		lines []string
	}{{"- ", before[head : len(before)-tail]}, {"+ ", after[head : len(after)-tail]}} {
		for _, line := range side.lines {
			if line != "" {
				b.WriteString(side.sign + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	return b.String()
}
