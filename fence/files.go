package fence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

// Files guards the files of a directory, on one machine or on a file system that several machines
// share, if its locks work between them (NFS from version 4 on; not every network file system).
//
// Floors are kept in the subdirectory .leasehold-fence. A floor is on disk before anything is written
// under it, so a crash between the two loses no file and lets no older holder in. A writer
// that is paused in the middle keeps newer ones waiting; one that dies does not.
type Files struct{ dir string }

// floorsDir is where a directory's floors and locks are.
const floorsDir = ".leasehold-fence"

// OpenFiles returns a guard for the files of a directory, which must exist.
func OpenFiles(dir string) (*Files, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	err = os.Mkdir(filepath.Join(dir, floorsDir), 0o777)
	switch {
	case errors.Is(err, fs.ErrExist):
	case err != nil:
		return nil, fmt.Errorf("fence: %w", err)
	default:
		// Without this a power failure could take the directory away, with the floors in it.
		if err := syncDir(dir); err != nil {
			return nil, fmt.Errorf("fence: %w", err)
		}
	}
	return &Files{dir}, nil
}

var _ Guard = (*Files)(nil)

// WriteFile replaces a file, whose name is relative to the directory, unless the holder is
// late. Readers see the old content or the new one, never a part. When it returns nil, both
// the floor and the content are on disk.
func (f *Files) WriteFile(ctx context.Context, resource string, pass Pass, name string, data []byte,
	perm fs.FileMode) error {
	clean := filepath.ToSlash(filepath.Clean(name))
	if first, _, _ := strings.Cut(clean, "/"); !filepath.IsLocal(name) || first == floorsDir {
		return fmt.Errorf("fence: %q is not a file below %s", name, f.dir)
	}
	return f.Do(ctx, resource, pass, func(context.Context) error {
		path := filepath.Join(f.dir, name)
		// Holders of two resources may write one file, by mistake: even so no content is mixed.
		next := filepath.Join(filepath.Dir(path), ".leasehold-next-"+digest(resource+"\x00"+path))
		return replace(path, next, data, perm)
	})
}

// Do calls fn unless the holder is late, for changes to files that WriteFile cannot make. No other
// holder is let in before fn has returned, or its process has died.
func (f *Files) Do(ctx context.Context, resource string, pass Pass, fn func(ctx context.Context) error) error {
	if err := pass.check(resource, 0); err != nil {
		return err
	}
	place := f.place(resource)
	unlock, err := lockFile(ctx, place+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	seen, err := readFloor(place)
	if err != nil {
		return err
	}
	if err := pass.check(resource, seen); err != nil {
		return err
	}
	if floor := pass.floor(); floor > seen {
		text := decimal(floor) + " " + strconv.Quote(resource) + "\n"
		if err := replace(place, place+".next", []byte(text), 0o666); err != nil {
			return err
		}
	}
	return fn(ctx)
}

// Floor returns the largest floor that the guard has seen of a resource.
func (f *Files) Floor(resource string) (leasehold.Token, error) { return readFloor(f.place(resource)) }

// place returns the file that has the floor of a resource. Names of resources can be longer than
// those of files, and have characters that file systems do not distinguish.
func (f *Files) place(resource string) string {
	return filepath.Join(f.dir, floorsDir, digest(resource))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// readFloor refuses a damaged floor: taking it for 0 would let everybody in.
func readFloor(place string) (leasehold.Token, error) {
	text, err := os.ReadFile(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("fence: %w", err)
	}
	digits, rest, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || !strings.HasSuffix(rest, "\n") || leasehold.Token(n) > leasehold.MaxToken {
		return 0, fmt.Errorf("fence: %s is damaged: restore it, or write a token that is larger than all that were "+
			"granted, a blank and the resource", place)
	}
	return leasehold.Token(n), nil
}

// replace writes a file under the name next, makes it durable, and renames it. That name is always the
// same, and the caller has the lock: what a crash left there is overwritten.
func replace(path, next string, data []byte, perm fs.FileMode) error {
	err := write(next, data, perm)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next) // on a full disk others need the room
		return fmt.Errorf("fence: %w", err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

func write(path string, data []byte, perm fs.FileMode) error {
	// What a crash left may have other permissions, or be a link that leads elsewhere.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// lockRetry is how often a lock is tried that somebody else has. Waiting for it in the kernel could
// not be cancelled.
const lockRetry = 5 * time.Millisecond

// lockFile locks a file until unlock is called or the process ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	for {
		locked, err := tryLock(file)
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("fence: %s cannot be locked: %w", path, err)
		}
		if locked {
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			_ = file.Close()
			return nil, context.Cause(ctx)
		}
	}
}
