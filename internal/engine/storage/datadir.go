// Package storage keeps a server's data: the log, snapshots, large values and the room for them,
// in one directory; and backups of all that in one file.
//
// A Disk is the Disk of a replica.Node: it makes durable what the node gives it, and says so.
// Whatever is damaged is refused, with a sentence that names the file and what to do.
package storage

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A data directory:
//
//	format   what this is, in which format, and whose; readable by people
//	lock     held by the server that uses it, with its process id
//	wal/     the log, as etcd's wal keeps it
//	snap/    states, each with its place in the log; the newest two are kept
//	values/  large values, each under the digest of its bytes
//	journal/ what was done and who held what, as internal/audit keeps it
const (
	formatFile = "format"
	lockFile   = "lock"
	walDir     = "wal"
	snapDir    = "snap"
	valuesDir  = "values"
	journalDir = "journal"
	// divergedFile says that the data must no longer be used, and why.
	divergedFile = "diverged"

	// firstFormat is that of a directory whose state is at the first level. Builds from before the
	// first release wrote smaller ones.
	firstFormat = 6
)

// FormatAt is the format of a directory whose state is at a level. By it, versions that do not
// know the level refuse the directory with a clear message, instead of failing on a log that
// they cannot read. So it is written after the level was raised, and never just because a newer
// version was started.
func FormatAt(level core.Level) int { return int(level-core.Level1) + firstFormat }

// identity is what the format file says.
type identity struct {
	Product string `json:"product"`
	Format  int    `json:"format"`
	Node    uint64 `json:"node"`
	// Name is the directory's own: a server that comes back with another name has lost its
	// data.
	Name string `json:"name"`
	// Cluster is the cluster's.
	Cluster string `json:"cluster"`
	// Begin are the members that the cluster began with, if this server was among them.
	Begin []replica.Member `json:"begin,omitempty"`
	// Joined is set if it was not: then an empty log is filled by the others.
	Joined bool `json:"joined,omitempty"`
	// Begun is set once the log was made: from then on, a missing log is a loss
	// and not a beginning.
	Begun bool `json:"begun"`
}

// A Dir is a data directory that this process has to itself.
type Dir struct {
	Path   string
	lock   *os.File
	mu     sync.Mutex // while the format is written by a server that runs
	newest core.Level // that this program knows; 0: core.NewestLevel
	identity
}

// OpenDir takes a data directory for this process. If make is set, it makes one where there is
// nothing yet.
func OpenDir(path string, make bool) (*Dir, error) { return OpenDirUpTo(core.NewestLevel, path, make) }

// OpenDirUpTo is OpenDir for a program that knows levels up to one. Servers know
// core.NewestLevel; only tests have programs that know another.
func OpenDirUpTo(newest core.Level, path string, make bool) (*Dir, error) {
	if make {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("data directory %s cannot be made: %w", path, err)
		}
	} else if _, err := os.Stat(filepath.Join(path, formatFile)); err != nil {
		// Checked before the lock is taken: not even a lock file is left in a directory that is
		// not ours.
		return nil, &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf(
			"%s is not a data directory: it has no file %q that can be read", path, formatFile)}
	}
	lock, err := takeLock(filepath.Join(path, lockFile), path)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path, lock: lock, newest: newest}
	if err = d.identify(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Dir) newestLevel() core.Level { return cmp.Or(d.newest, core.NewestLevel) }

// Close frees the directory for another process.
func (d *Dir) Close() {
	_ = d.lock.Close() // lets the lock go
}

func (d *Dir) wal() string       { return filepath.Join(d.Path, walDir) }
func (d *Dir) Snapshots() string { return filepath.Join(d.Path, snapDir) }

// Values is where large values are.
func (d *Dir) Values() string { return filepath.Join(d.Path, valuesDir) }

// Journal is where the journal is.
func (d *Dir) Journal() string { return filepath.Join(d.Path, journalDir) }

// takeLock locks a directory for this process. The kernel frees the lock when the process ends,
// so none is ever left behind.
func takeLock(name, dir string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be used: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(name)
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf(
				"data directory %s is in use by another server (process %s): stop that, or choose another directory",
				dir, strings.TrimSpace(string(owner)))}
		}
		return nil, fmt.Errorf("data directory %s cannot be locked: %w", dir, err)
	}
	// For the message of a process that finds the directory locked.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(fmt.Sprintf("%d\n", os.Getpid())), 0)
	return f, nil
}

// identify reads the format file, or writes the first one.
func (d *Dir) identify() error {
	name := filepath.Join(d.Path, formatFile)
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return d.begin()
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if err := json.Unmarshal(b, &d.identity); err != nil || d.Product != "leasehold" {
		return fmt.Errorf("%s is damaged or not Leasehold's: restore the directory from a backup, or choose another",
			name)
	}
	if newest := FormatAt(d.newestLevel()); d.Format > newest {
		return fmt.Errorf("%s has format %d, and this version knows formats up to %d: use the newer version that "+
			"wrote it", d.Path, d.Format, newest)
	}
	if d.Format > 0 && d.Format < firstFormat {
		return fmt.Errorf("%s has format %d, which only builds from before the first release wrote, and this version "+
			"does not read: start with an empty directory, or use the build that wrote it", d.Path, d.Format)
	}
	if d.Format < 1 || d.Node == 0 {
		return fmt.Errorf("%s is damaged: restore the directory from a backup", name)
	}
	return nil
}

// begin makes an empty directory a data directory.
func (d *Dir) begin() error {
	files, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Name() != lockFile && !strings.HasSuffix(f.Name(), ".tmp") {
			return fmt.Errorf("directory %s has files that are not Leasehold's (%s): choose an empty or new one",
				d.Path, f.Name())
		}
	}
	d.identity = identity{Product: "leasehold", Format: firstFormat, Node: 1, Name: rand.Text(), Cluster: rand.Text()}
	return d.Save()
}

// SetLevel writes down that the state was raised to a level.
func (d *Dir) SetLevel(level core.Level) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Format >= FormatAt(level) {
		return nil
	}
	d.Format = FormatAt(level)
	return d.Save()
}

// setBegun notes that the log exists.
func (d *Dir) setBegun() error {
	d.Begun = true
	return d.Save()
}

// Save writes the format file.
func (d *Dir) Save() error {
	b, err := json.Marshal(d.identity)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(d.Path, formatFile), append(b, '\n'))
}

// Decided reports whether the directory belongs to a cluster already.
func (d *Dir) Decided() bool { return d.Begun || d.Joined || d.Begin != nil }

// Disown notes that these data must no longer be used, and returns an error that says what to
// do.
func (d *Dir) Disown(why string) (whatNow, err error) {
	return divergedError(why), writeFile(filepath.Join(d.Path, divergedFile), []byte(why+"\n"))
}

// divergedError is the error of a server whose data must not be used, and what to do about it.
func divergedError(why string) error {
	return &leasehold.Error{Code: leasehold.Refused, Message: why +
		": its data are no longer used. Keep them for those who look for the cause; remove this server from the " +
		"cluster " +
		"(leasehold cluster remove NAME), and let it join as a new one, with an empty data directory"}
}

// Diverged returns why a data directory must not be used; nil: nothing is known against it.
func (d *Dir) Diverged() error {
	b, err := os.ReadFile(filepath.Join(d.Path, divergedFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", divergedFile, err)
	}
	return divergedError(strings.TrimSpace(string(b)))
}

// writeFile writes a whole file, or leaves what was there.
func writeFile(name string, b []byte) error {
	tmp := name + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return putInPlace(f, name, err)
}

// putInPlace gives a file its name once all of it is durable, and makes the name durable too. A
// file that was not written without an error never gets there. The order matters: a rename that
// reached the disk before the content would leave an empty file under a good name.
func putInPlace(f *os.File, name string, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err == nil {
		err = SyncDir(filepath.Dir(name))
	}
	return err
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
