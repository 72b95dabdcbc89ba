package fence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
)

func openFiles(t *testing.T, dir string) *fence.Files {
	t.Helper()
	files, err := fence.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFilesRefuseWhoIsLate(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		resource string
		pass     fence.Pass
		floor    leasehold.Token // of the refusal
		refused  bool
	}{
		{"a", pass(0, 0), 0, true},
		{"a", pass(5, 0), 0, false},
		{"a", pass(5, 5), 0, false}, // the same holder again
		{"A", pass(3, 0), 0, false}, // another resource
		{strings.Repeat("long/", 200), pass(2, 0), 0, false},
		{"../a\n", pass(2, 0), 0, false},
		{"a", pass(4, 0), 5, true},
		{"a", pass(8, 6), 0, false}, // shared: 6 and 7 are alive too
		{"a", pass(6, 6), 0, false},
		{"a", pass(5, 5), 6, true},
		{"a", pass(leasehold.MaxToken, 0), 0, false},
		{"a", pass(9, 0), leasehold.MaxToken, true},
	} {
		files := openFiles(t, dir) // each in a process of its own, as it were
		text := fmt.Sprint(step.resource, step.pass)
		err := files.WriteFile(t.Context(), step.resource, step.pass, "data", []byte(text), 0o600)
		var late *fence.LateError
		if errors.As(err, &late) != step.refused || !step.refused && err != nil ||
			step.refused && (late.Token != step.pass.Token || late.Floor != step.floor) {
			t.Errorf("%q with %+v: %v", step.resource, step.pass, err)
		}
		if err == nil && content(t, filepath.Join(dir, "data")) != text {
			t.Errorf("%+v did not write", step)
		}
	}
	if err := openFiles(t, dir).Do(t.Context(), "new", pass(leasehold.MaxToken+1, 0), nothing); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a number that is no token: %v", err)
	}
	var mismatch *fence.MismatchError
	other := fence.Pass{Token: 9, Resource: "b"}
	if err := openFiles(t, dir).WriteFile(t.Context(), "c", other, "data", nil, 0o600); !errors.As(err, &mismatch) {
		t.Errorf("a pass of another resource: %v", err)
	}
}

// Many holders write at once, each with its own token: what is written never goes back, and is
// never a mixture.
func TestFilesNeverGoBack(t *testing.T) {
	dir := t.TempDir()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex // guards what follows
		written int
	)
	for token := leasehold.Token(1); token <= 40; token++ {
		for range 2 { // two of an equal token: one holder with two threads
			wg.Go(func() {
				files, p := openFiles(t, dir), pass(token, 0)
				err := files.Do(t.Context(), "r", p, func(context.Context) error {
					var before leasehold.Token
					if text, err := os.ReadFile(filepath.Join(dir, "data")); err == nil {
						fmt.Sscan(string(text), &before)
					}
					if before > token {
						t.Errorf("token %d writes over %d", token, before)
					}
					mu.Lock()
					written++
					mu.Unlock()
					return os.WriteFile(filepath.Join(dir, "data"), fmt.Append(nil, token), 0o600)
				})
				if err != nil && !errors.Is(err, leasehold.ErrLost) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if floor, err := openFiles(t, dir).Floor("r"); err != nil || floor != 40 || written == 0 {
		t.Errorf("after %d writes the floor is %d, %v", written, floor, err)
	}
}

// A holder that is paused inside keeps the next one waiting, for no longer than that wishes. What it
// writes last is before what the next one does.
func TestFilesWaitForWhoIsInside(t *testing.T) {
	dir := t.TempDir()
	files := openFiles(t, dir)
	inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		left <- files.Do(t.Context(), "r", pass(1, 0), func(context.Context) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	ctx, cancel := context.WithCancelCause(t.Context())
	tired := errors.New("tired")
	cancel(tired)
	if err := files.Do(ctx, "r", pass(2, 0), nothing); !errors.Is(err, tired) {
		t.Errorf("the error is %v", err)
	}
	if err := files.Do(t.Context(), "other", pass(2, 0), nothing); err != nil {
		t.Errorf("another resource has to wait: %v", err)
	}
	close(leave)
	if err := <-left; err != nil {
		t.Error(err)
	}
	if err := files.Do(t.Context(), "r", pass(2, 0), nothing); err != nil {
		t.Error(err)
	}
	if err := files.Do(t.Context(), "r", pass(1, 0), nothing); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("the older one: %v", err)
	}
}

// The floor is raised before anything is written under it: a write that fails, or is never made, has
// shut older holders out, and the holder can repeat it.
func TestFilesKeepTheFloorOfAFailure(t *testing.T) {
	files, failure := openFiles(t, t.TempDir()), errors.New("no room")
	err := files.Do(t.Context(), "r", pass(7, 0), func(context.Context) error { return failure })
	if floor, _ := files.Floor("r"); !errors.Is(err, failure) || floor != 7 {
		t.Errorf("%v, and the floor is %d", err, floor)
	}
	if err := files.Do(t.Context(), "r", pass(6, 0), nothing); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("an older holder: %v", err)
	}
	if err := files.Do(t.Context(), "r", pass(7, 0), nothing); err != nil {
		t.Errorf("the same holder: %v", err)
	}
}

// A write that fails leaves nothing behind: a disk that was full would stay so.
func TestFilesCleanUpAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := openFiles(t, dir).WriteFile(t.Context(), "r", pass(7, 0), "data", []byte("7"), 0o600); err == nil {
		t.Error("a file replaced a directory")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".leasehold-next-*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// A damaged floor is not taken for 0, and what a crash left half written is not in the way.
func TestFilesAfterDamage(t *testing.T) {
	dir := t.TempDir()
	files := openFiles(t, dir)
	if err := files.WriteFile(t.Context(), "r", pass(7, 0), "data", []byte("7"), 0o600); err != nil {
		t.Fatal(err)
	}
	floors, _ := filepath.Glob(filepath.Join(dir, ".leasehold-fence", "*"))
	for _, path := range floors {
		if strings.HasSuffix(path, ".lock") {
			continue
		}
		if err := os.WriteFile(path+".next", []byte("9"), 0o400); err != nil {
			t.Fatal(err)
		}
		if err := files.WriteFile(t.Context(), "r", pass(8, 0), "data", []byte("8"), 0o600); err != nil {
			t.Errorf("beside what a crash left: %v", err)
		}
		for _, text := range []string{"", "8", "8 ", "x \"r\"\n", "-1 \"r\"\n", "9007199254740992 \"r\"\n"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := files.Do(t.Context(), "r", pass(9, 0), nothing); err == nil || errors.Is(err, leasehold.ErrLost) {
				t.Errorf("the floor is %q, and the error is %v", text, err)
			}
		}
	}
	if content(t, filepath.Join(dir, "data")) != "8" {
		t.Error("the file changed")
	}
	for _, name := range []string{"../x", "/etc/x", "", ".leasehold-fence/x", "a/../../x", "./.leasehold-fence/x",
		"a/../.leasehold-fence/x", ".//.leasehold-fence/x", "."} {
		if err := files.WriteFile(t.Context(), "s", pass(1, 0), name, nil, 0o600); err == nil {
			t.Errorf("%q was written", name)
		}
	}
}
