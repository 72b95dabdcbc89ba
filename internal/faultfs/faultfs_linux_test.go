package faultfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func mount(t *testing.T, backing string) (string, *FS) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skipf("left out: %v", err)
	}
	at := t.TempDir()
	f, err := Mount(backing, at)
	if err != nil {
		t.Skipf("left out: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return at, f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func write(t *testing.T, file *os.File, text string, at int64) {
	t.Helper()
	_, err := file.WriteAt([]byte(text), at)
	must(t, err)
}

func syncDir(t *testing.T, path string) {
	t.Helper()
	dir, err := os.Open(path)
	must(t, err)
	must(t, dir.Sync())
	must(t, dir.Close())
}

// left is what a power failure would leave, as "path=content" of each file.
func left(t *testing.T, f *FS) string {
	t.Helper()
	dir := t.TempDir()
	must(t, f.Image(dir))
	var lines []string
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		lines = append(lines, name+"="+string(content))
		return err
	}))
	return strings.Join(lines, " ")
}

func wants(t *testing.T, f *FS, want string) {
	t.Helper()
	if got := left(t, f); got != want {
		t.Errorf("a power failure leaves %q, and should leave %q", got, want)
	}
}

func TestWhatWasSyncedIsLeft(t *testing.T) {
	at, f := mount(t, t.TempDir())
	a := open(t, filepath.Join(at, "a"))
	write(t, a, "one", 0)
	wants(t, f, "")
	must(t, a.Sync())
	wants(t, f, "a=one")
	write(t, a, "two", 3)
	write(t, a, "ON", 0)
	wants(t, f, "a=one")
	must(t, a.Sync())
	wants(t, f, "a=ONetwo")
	must(t, a.Truncate(2))
	write(t, a, "!", 3)
	wants(t, f, "a=ONetwo")
	must(t, a.Sync())
	wants(t, f, "a=ON\x00!")
}

func TestNamesAreLeftAsTheirDirectoryWas(t *testing.T) {
	at, f := mount(t, t.TempDir())
	must(t, os.Mkdir(filepath.Join(at, "d"), 0o700))
	a := open(t, filepath.Join(at, "d", "a"))
	write(t, a, "one", 0)
	must(t, a.Sync())
	must(t, os.Rename(filepath.Join(at, "d", "a"), filepath.Join(at, "d", "b")))
	wants(t, f, "d/a=one")
	syncDir(t, filepath.Join(at, "d"))
	wants(t, f, "d/b=one")
	must(t, os.Remove(filepath.Join(at, "d", "b")))
	// The number of its inode must not go to another file, as it would take its place.
	c := open(t, filepath.Join(at, "d", "c"))
	write(t, c, "three", 0)
	must(t, c.Sync())
	wants(t, f, "d/b=one d/c=three")
	syncDir(t, filepath.Join(at, "d"))
	wants(t, f, "d/c=three")
}

func TestWhatIsThereAtFirstIsDurable(t *testing.T) {
	backing := t.TempDir()
	must(t, os.Mkdir(filepath.Join(backing, "d"), 0o700))
	must(t, os.WriteFile(filepath.Join(backing, "d", "a"), []byte("one"), 0o600))
	at, f := mount(t, backing)
	a := open(t, filepath.Join(at, "d", "a"))
	write(t, a, "two", 0)
	wants(t, f, "d/a=one")
}

func TestASyncMeetsWhatItIsTold(t *testing.T) {
	at, f := mount(t, t.TempDir())
	a := open(t, filepath.Join(at, "a"))
	write(t, a, "one", 0)
	f.OnSync(func(path string, dir bool) error {
		if path != "a" || dir {
			t.Errorf("%q is synced, %v", path, dir)
		}
		return syscall.EIO
	})
	if err := a.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a sync that fails: %v", err)
	}
	wants(t, f, "")
	f.OnSync(func(string, bool) error { return ErrIgnored })
	must(t, a.Sync())
	wants(t, f, "")
	f.OnSync(nil)
	must(t, a.Sync())
	wants(t, f, "a=one")
}

// Whatever is started must not keep the disk alive when the one who made it is gone.
func TestChildrenDoNotHaveTheDevice(t *testing.T) {
	mount(t, t.TempDir())
	out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil || strings.Contains(string(out), "fuse") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestADiskIsFull(t *testing.T) {
	at, f := mount(t, t.TempDir())
	a := open(t, filepath.Join(at, "a"))
	f.SetRoom(8192)
	write(t, a, strings.Repeat("x", 8000), 0)
	if _, err := a.WriteAt(make([]byte, 8000), 8000); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a write beyond the room: %v", err)
	}
	write(t, a, "y", 100) // it needs no room
	if err := syscall.Fallocate(int(a.Fd()), 0, 0, 1<<20); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("an allocation beyond the room: %v", err)
	}
	var st syscall.Statfs_t
	must(t, syscall.Statfs(at, &st))
	if st.Bavail != 0 {
		t.Errorf("%d blocks are said to be left", st.Bavail)
	}
	must(t, os.Remove(filepath.Join(at, "a")))
	b := open(t, filepath.Join(at, "b"))
	write(t, b, strings.Repeat("x", 8000), 0)
	f.Unlimit()
	must(t, syscall.Fallocate(int(b.Fd()), 0, 0, 1<<20))
}
