package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine/cluster"
)

func (a *app) backupCommand(o outside) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE|-",
		Short: "Keep a copy of everything in a file",
		Long: `Backup takes a copy of everything that the servers know, as it is at one moment, and
puts it in FILE: leases, waiters, sessions, records, definitions, the newest events.
The servers go on meanwhile. What is not in it is the journal that audit and holds show.

FILE is there when all of it is: complete, checked, and safe from a loss of power. An
older one of that name is replaced then, and not before. With - the backup goes to
standard output; it is worth something only if the command ends with code 0.

"leasehold restore" makes a new cluster of it, and "leasehold check --backup" looks
whether it is sound.`,
		Example: `  leasehold backup leasehold.backup
  leasehold backup -q /backup/leasehold-$(date +%F).backup
  leasehold backup - | ssh elsewhere 'cat > leasehold.backup'`,
		Args: takes(1, 1),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		r, err := c.Backup(ctx)
		if err != nil {
			return err
		}
		defer r.Close()
		if args[0] == "-" {
			return a.backupToStdout(r)
		}
		kept, err := a.backupToFile(args[0], r, o.createTemp)
		if err != nil {
			return err
		}
		return a.printBackup(kept)
	})
	serverFlags(cmd)
	a.outputFlag(cmd, formatJSON)
	return cmd
}

// kept is what there is in a backup, and what backup prints as JSON.
type kept struct {
	File  string `json:"file,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	cluster.BackupHead
}

func (a *app) backupToStdout(r io.Reader) error {
	out := &meter{w: a.stdout}
	head, size, err := cluster.CopyBackup(out, r)
	if err != nil {
		return brokenBackup(err, out.err)
	}
	a.say("%s, taken of cluster %s, at %d of its log, %s", plural(head.Leases, "lease", "leases"), head.Cluster, head.Index, bytesText(size))
	return nil
}

// brokenBackup says on which side a copy was cut off.
func brokenBackup(err, local error) error {
	var known *leasehold.Error
	switch {
	case local != nil:
		return written(local)
	case errors.As(err, &known):
		return err
	}
	return failure(leasehold.Unavailable, "the backup did not come whole, and was not kept: %v", err)
}

// A file is what is written before it gets its name.
type file interface {
	io.WriteCloser
	Name() string
	Sync() error
}

func createTemp(dir, pattern string) (file, error) { return os.CreateTemp(dir, pattern) }

func (a *app) backupToFile(name string, r io.Reader, create func(dir, pattern string) (file, error)) (kept, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return kept{}, usage("%s is no file: name one, or use - for standard output", name)
	}
	if dir := filepath.Dir(name); !isDir(dir) {
		return kept{}, usage("there is no directory %s to put the backup in: make it first", dir)
	}
	k := kept{File: name}
	err := putInPlace(name, create, func(w io.Writer) (err error) {
		out := &meter{w: w, tell: a.progress()}
		k.BackupHead, k.Bytes, err = cluster.CopyBackup(out, r)
		out.done()
		if err != nil {
			return brokenBackup(err, out.err)
		}
		return nil
	})
	return k, err
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// putInPlace writes a file that has its name only once it is whole and durable.
func putInPlace(name string, create func(dir, pattern string) (file, error), fill func(io.Writer) error) error {
	dir := filepath.Dir(name)
	f, err := create(dir, filepath.Base(name)+".*.tmp")
	if err != nil {
		return written(err)
	}
	err = fill(f)
	local := func(do func() error) {
		if err == nil {
			if failed := do(); failed != nil {
				err = written(failed)
			}
		}
	}
	local(f.Sync)
	if failed := f.Close(); err == nil && failed != nil {
		err = written(failed)
	}
	local(func() error { return os.Rename(f.Name(), name) })
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(f.Name())))
	}
	local(func() error { return syncDir(dir) })
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// A meter counts what passes through it, tells of it, and keeps its own errors apart
// from those of the other end.
type meter struct {
	w    io.Writer
	n    int64
	err  error
	tell func(n int64, done bool) // nil: nobody wants to know
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.w.Write(b)
	m.n, m.err = m.n+int64(n), err
	if m.tell != nil {
		m.tell(m.n, false)
	}
	return n, err
}

func (m *meter) done() {
	if m.tell != nil {
		m.tell(m.n, true)
	}
}

// progressEvery is how often a person sees how far it is.
const progressEvery = 200 * time.Millisecond

// progress shows on one line how much has come, to a person who watches.
func (a *app) progress() func(int64, bool) {
	if a.quiet || a.output == formatJSON || !a.terminal(a.stderr) {
		return nil
	}
	last := a.now()
	return func(n int64, done bool) {
		switch now := a.now(); {
		case done:
			fmt.Fprint(a.stderr, "\r\x1b[K")
		case now.Sub(last) >= progressEvery:
			last = now
			fmt.Fprintf(a.stderr, "\r\x1b[K%s …", bytesText(n))
		}
	}
}

func (a *app) printBackup(k kept) error {
	if a.output == formatJSON {
		return a.printJSON(k)
	}
	s := &sheet{}
	s.line("File", "%s, %s", printable(k.File), bytesText(k.Bytes))
	s.backup(a, k.BackupHead)
	if _, err := io.WriteString(a.stdout, s.String()); err != nil {
		return written(err)
	}
	a.say("look whether it is sound: leasehold check --backup %s", quote(k.File))
	return nil
}

// backup says what is in a backup.
func (s *sheet) backup(a *app, h cluster.BackupHead) {
	s.line("Cluster", "%s, of %s", printable(h.Cluster), plural(len(h.Roster.Members), "server", "servers"))
	s.line("Taken", "%s (%s), at %d of its log", absolute(h.Time), a.ago(h.Time), h.Index)
	s.line("Leases", "%d", h.Leases)
	s.line("Waiters", "%d", h.Waiters)
	s.line("Sessions", "%d", h.Sessions)
	s.line("Resources", "%d in %s", h.Resources, plural(h.Namespaces, "namespace", "namespaces"))
	s.line("Records", "%d", h.Records)
}
