package upkeep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasehold/leasehold/internal/access/credential"
)

// The files in a data directory.
const (
	// tokenFile has the secret of an admin token that is in the policy, or was.
	tokenFile = "admin-token"
	// pendingFile has the secret of one that may not be in the policy yet. It is written before the change is
	// proposed, and used again after a crash: so there is never a policy whose token nobody has.
	pendingFile = "admin-token.pending"
	// markFile asks for a new admin token at the next start.
	markFile = "access-recover"
)

// TokenFile returns where a server writes the admin token that it makes.
func TokenFile(dir string) string { return filepath.Join(dir, tokenFile) }

// Mark asks the server with a data directory to make a new admin token when it starts. The caller has the directory
// to itself.
func Mark(dir string) error {
	return writeSynced(filepath.Join(dir, markFile), "make a new admin token\n")
}

// Marked reports whether a data directory has such a mark.
func Marked(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, markFile))
	return err == nil
}

// unmark takes the mark away.
func unmark(dir string) error { return remove(dir, markFile) }

func remove(dir, name string) error {
	err := os.Remove(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(dir))
}

// pending returns the secret that is to be in the policy; it is empty if there is none.
func pending(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, pendingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}

// makePending returns the secret that is to be in the policy, and makes one if there is none.
func makePending(dir string) (secret string, err error) {
	if secret, err = pending(dir); err != nil || secret != "" {
		return secret, err
	}
	secret, _ = credential.NewToken()
	if err := writeSynced(filepath.Join(dir, pendingFile), secret+"\n"); err != nil {
		return "", fmt.Errorf("the admin token cannot be written, so nothing was changed: %w; once that is mended, "+
			"start the server again", err)
	}
	return secret, nil
}

// settle gives the secret its name for good: it is in the policy.
func settle(dir string) error {
	if err := os.Rename(filepath.Join(dir, pendingFile), TokenFile(dir)); err != nil {
		return err
	}
	return syncDir(dir)
}

// writeSynced writes a file that only its owner can read. It is whole or does not exist, also after a loss of power.
func writeSynced(name, text string) (err error) {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, filepath.Base(name)+"-*.tmp") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
