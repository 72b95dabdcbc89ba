package server

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
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// Backup returns the command backup.
func Backup(a *cli.App, o Outside) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE|-",
		Short: "Save a copy of everything to a file",
		Long: `Backup saves a consistent copy of everything that the servers know to FILE: leases,
waiters, sessions, records, definitions, the newest events. The servers keep working
meanwhile. The journal behind audit and holds is not included.

FILE appears once it is complete, verified and synced to disk; an older file of that
name is replaced only then. With - the backup goes to standard output, and is good only
if the command ends with code 0.

"leasehold restore" makes a new cluster from it, and "leasehold check --backup" verifies
it.`,
		Example: `  leasehold backup leasehold.backup
  leasehold backup -q /backup/leasehold-$(date +%F).backup
  leasehold backup - | ssh elsewhere 'cat > leasehold.backup'`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		r, err := c.Backup(ctx)
		if err != nil {
			return err
		}
		defer r.Close()
		if args[0] == "-" {
			return backupToStdout(a, r)
		}
		kept, err := backupToFile(a, args[0], r, o.createTemp)
		if err != nil {
			return err
		}
		return printBackup(a, kept)
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// A kept backup is what backup prints: where it is, and what it contains.
type kept struct {
	File  string `json:"file,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	storage.BackupHead
}

func backupToStdout(a *cli.App, r io.Reader) error {
	out := &meter{w: a.Stdout}
	head, size, err := storage.CopyBackup(out, r)
	if err != nil {
		return brokenBackup(err, out.err)
	}
	a.Say("%s of cluster %s, at index %d of its log, %s", cli.Plural(head.Leases, "lease", "leases"), head.Cluster,
		head.Index, cli.Bytes(size))
	return nil
}

// brokenBackup returns the error of a copy that was cut off, and says on which side: a full disk
// here needs another remedy than a server that went away.
func brokenBackup(err, local error) error {
	var known *leasehold.Error
	switch {
	case local != nil:
		return cli.Written(local)
	case errors.As(err, &known):
		return err
	}
	return cli.Failure(leasehold.Unavailable, "the backup was cut off, and is not kept: %v", err)
}

// A file is one that is written under a temporary name.
type file interface {
	io.WriteCloser
	Name() string
	Sync() error
}

func createTemp(dir, pattern string) (file, error) { return os.CreateTemp(dir, pattern) }

func backupToFile(a *cli.App, name string, r io.Reader, create func(dir, pattern string) (file, error)) (kept, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return kept{}, cli.Usage("%s is not a file: name one, or use - for standard output", name)
	}
	if dir := filepath.Dir(name); !isDir(dir) {
		return kept{}, cli.Usage("there is no directory %s to put the backup in: create it first", dir)
	}
	k := kept{File: name}
	err := putInPlace(name, create, func(w io.Writer) (err error) {
		out := &meter{w: w, tell: backupProgress(a)}
		k.BackupHead, k.Bytes, err = storage.CopyBackup(out, r)
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

// putInPlace writes a file that gets its name only once it is whole and durable. A backup that was
// interrupted must not look like one, nor replace an older one that is good.
func putInPlace(name string, create func(dir, pattern string) (file, error), fill func(io.Writer) error) error {
	dir := filepath.Dir(name)
	f, err := create(dir, filepath.Base(name)+".*.tmp")
	if err != nil {
		return cli.Written(err)
	}
	err = fill(f)
	local := func(do func() error) {
		if err == nil {
			if failed := do(); failed != nil {
				err = cli.Written(failed)
			}
		}
	}
	// The order is that of every durable file: contents, then the name, then the directory that has
	// the name.
	local(f.Sync)
	if failed := f.Close(); err == nil && failed != nil {
		err = cli.Written(failed)
	}
	local(func() error { return os.Rename(f.Name(), name) })
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(f.Name())))
	}
	local(func() error { return storage.SyncDir(dir) })
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// A meter counts what passes through it, reports it, and keeps its own errors apart from those of
// the other end: io.Copy returns one error and does not say whose it is.
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

// progressEvery is how often the progress line is redrawn.
const progressEvery = 200 * time.Millisecond

// backupProgress shows on one line how much has come, if a person watches.
func backupProgress(a *cli.App) func(int64, bool) {
	if a.Quiet || a.Output == cli.FormatJSON || !a.Terminal(a.Stderr) {
		return nil
	}
	last := a.Now()
	return func(n int64, done bool) {
		switch now := a.Now(); {
		case done:
			fmt.Fprint(a.Stderr, "\r\x1b[K")
		case now.Sub(last) >= progressEvery:
			last = now
			fmt.Fprintf(a.Stderr, "\r\x1b[K%s …", cli.Bytes(n))
		}
	}
}

func printBackup(a *cli.App, k kept) error {
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(k)
	}
	s := &cli.Details{}
	s.Line("File", "%s, %s", cli.Printable(k.File), cli.Bytes(k.Bytes))
	backup(s, a, k.BackupHead)
	if _, err := io.WriteString(a.Stdout, s.String()); err != nil {
		return cli.Written(err)
	}
	a.Say("check it: leasehold check --backup %s", cli.Quote(k.File))
	return nil
}

// backup describes the contents of a backup.
func backup(s *cli.Details, a *cli.App, h storage.BackupHead) {
	s.Line("Cluster", "%s, of %s", cli.Printable(h.Cluster), cli.Plural(len(h.Roster.Members), "server", "servers"))
	s.Line("Taken", "%s (%s), at index %d of its log", cli.Absolute(h.Time), a.Ago(h.Time), h.Index)
	s.Line("Leases", "%d", h.Leases)
	s.Line("Waiters", "%d", h.Waiters)
	s.Line("Sessions", "%d", h.Sessions)
	s.Line("Resources", "%d in %s", h.Resources, cli.Plural(h.Namespaces, "namespace", "namespaces"))
	s.Line("Records", "%d", h.Records)
}
