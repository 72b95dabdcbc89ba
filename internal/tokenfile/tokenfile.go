// Package tokenfile reads the token that proves who asks from a file, and again when the file changed.
package tokenfile

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
)

// A File has a token that somebody may replace.
type File struct {
	path string

	mu      sync.Mutex // guards what follows
	changed time.Time
	size    int64
	token   string
}

// maxTokenFile is more than the largest JWT; the file may be a mistake such as a log.
const maxTokenFile = 64 << 10

// New returns the file at a path. It is read when it is asked for.
func New(path string) *File { return &File{path: path} }

// Read returns the token; rejected is one that was refused, which is not read from memory. One that was read before is
// used on while the file cannot be read, as in the moment in which somebody replaces it.
func (f *File) Read(rejected string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.readAgain(rejected)
	if err != nil && f.token == "" {
		return "", err
	}
	return f.token, nil
}

func (f *File) readAgain(rejected string) error {
	info, err := os.Stat(f.path)
	switch {
	case f.path == "":
		return unreadable("no file is named: give the path of one")
	case err != nil:
		return unreadable("%v", err)
	case info.Size() > maxTokenFile || !info.Mode().IsRegular() && info.Size() != 0:
		return unreadable("%s is not a file with a token", f.path)
	// A file that was replaced within one tick of the clock looks the same; a refused token tells.
	case f.token != "" && info.ModTime().Equal(f.changed) && info.Size() == f.size && rejected != f.token:
		return nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return unreadable("%v", err)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return unreadable("%s is empty", f.path)
	}
	f.changed, f.size, f.token = info.ModTime(), info.Size(), string(text)
	return nil
}

func unreadable(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid,
		Message: "the token cannot be read: " + fmt.Sprintf(format, args...)}
}
