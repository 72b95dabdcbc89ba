package server

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A brokenFile fails where it is told to.
type brokenFile struct {
	file
	write, sync, close error
}

var errDisk = errors.New("input/output error")

func (f *brokenFile) Write(b []byte) (int, error) {
	if f.write != nil {
		return 0, f.write
	}
	return f.file.Write(b)
}

func (f *brokenFile) Sync() error { return errors.Join(f.sync, f.file.Sync()) }

func (f *brokenFile) Close() error { return errors.Join(f.close, f.file.Close()) }

// TestFileIsNotInPlaceBeforeItIsDurable: what could not be written, synced or closed has no
// name, and what had the name before is as it was.
func TestFileIsNotInPlaceBeforeItIsDurable(t *testing.T) {
	for name, broken := range map[string]brokenFile{
		"write": {write: errDisk}, "sync": {sync: errDisk}, "close": {close: errDisk},
	} {
		for _, before := range []string{"", "the older backup"} {
			dir := t.TempDir()
			path := filepath.Join(dir, "backup")
			if before != "" {
				if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := putInPlace(path, func(dir, pattern string) (file, error) {
				f, err := createTemp(dir, pattern)
				whole := broken
				whole.file = f
				return &whole, err
			}, func(w io.Writer) error {
				_, err := io.WriteString(w, "the newer backup")
				return err
			})
			if !errors.Is(err, errDisk) {
				t.Errorf("%s: %v", name, err)
			}
			if now, _ := os.ReadFile(path); string(now) != before {
				t.Errorf("%s: %q is in place", name, now)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(files) > 0 {
				t.Errorf("%s: %v are left", name, files)
			}
		}
	}
}

func TestFileIsPutInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup")
	for _, text := range []string{"one", "two"} {
		err := putInPlace(path, createTemp, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if now, _ := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%q is in place, %v", now, err)
		}
	}
}

// What does not come whole from the server is not kept either.
func TestHalfABackupIsNotKept(t *testing.T) {
	a := cli.New()
	path := filepath.Join(t.TempDir(), "backup")
	_, err := backupToFile(a, path, strings.NewReader("leasehold backup "+
		"1\n{\"cluster\":\"C\",\"index\":1,\"term\":1,\"roster\":{}}\nand then nothing"), createTemp)
	if !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "is not kept") {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is in place: %v", err)
	}
}

func TestSumsAreJudged(t *testing.T) {
	for name, c := range map[string]struct {
		sums v1.Sums
		code int
	}{
		"same": {v1.Sums{Same: true, Items: []v1.Sum{{Name: "n1", Hash: "a"}, {Name: "n2", Hash: "a"}}}, 0},
		"differ": {v1.Sums{Items: []v1.Sum{{Name: "n1", Hash: "a"}, {Name: "n2", Hash: "b"}, {Name: "n3"}}},
			cli.ExitBug},
		"silent": {v1.Sums{Same: true, Items: []v1.Sum{{Name: "n1", Hash: "a"}, {Name: "n2", Error: "away"}}},
			cli.ExitUnavailable},
	} {
		if code := cli.ExitCode(judgeSums(c.sums)); code != c.code {
			t.Errorf("%s: code %d", name, code)
		}
	}
}

func TestProgressOfABackup(t *testing.T) {
	var out strings.Builder
	a := cli.New()
	now := time.Unix(0, 0)
	a.Stderr, a.Now, a.Terminal = &out, func() time.Time { return now }, func(any) bool { return true }
	tell := backupProgress(a)
	tell(1, false)
	now = now.Add(time.Second)
	tell(3<<20, false)
	tell(3<<20, true)
	if out.String() != "\r\x1b[K3.0 MiB …\r\x1b[K" {
		t.Errorf("%q", out.String())
	}
	if a.Quiet = true; backupProgress(a) != nil {
		t.Error("it is shown although nobody wants it")
	}
}
