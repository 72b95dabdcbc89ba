package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
)

// A process of this test is started again as a writer: with these variables it writes until it is
// killed, each time the number of the write, many times over.
const (
	writerDir   = "FENCE_WRITER_DIR"
	writerToken = "FENCE_WRITER_TOKEN"
	writerDies  = "FENCE_WRITER_DIES" // between the floor and the write
)

func TestMain(m *testing.M) {
	if os.Getenv(writerDir) != "" {
		fmt.Println(writer())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func writer() error {
	var token leasehold.Token
	if _, err := fmt.Sscan(os.Getenv(writerToken), &token); err != nil {
		return err
	}
	files, err := fence.OpenFiles(os.Getenv(writerDir))
	if err != nil {
		return err
	}
	ctx, pass := context.Background(), fence.Pass{Token: token, Resource: "r"}
	if os.Getenv(writerDies) != "" {
		return files.Do(ctx, "r", pass, func(context.Context) error {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		})
	}
	for {
		if err := files.WriteFile(ctx, "r", pass, "data", version(token), 0o600); err != nil {
			return err
		}
		fmt.Println("written")
	}
}

// version is large enough to be killed in the middle of.
func version(token leasehold.Token) []byte { return bytes.Repeat([]byte(number(token)+"\n"), 1<<15) }

func startWriter(t *testing.T, dir string, token leasehold.Token, env ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(env, writerDir+"="+dir, writerToken+"="+number(token))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said := &bytes.Buffer{}
	cmd.Stdout = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, said
}

// whole returns the token that wrote the file, and fails the test if the file is a mixture.
func whole(t *testing.T, dir string) (token leasehold.Token) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if _, scan := fmt.Sscan(first, &token); err != nil || scan != nil || !bytes.Equal(text, version(token)) {
		t.Fatalf("the file is not one version: it begins with %q, and has %d bytes, %v", first, len(text), err)
	}
	return token
}

// Writers are killed at any moment. The file is always one version, never goes back, and the next
// holder is never kept out.
func TestFilesSurviveKill(t *testing.T) {
	dir := t.TempDir()
	files, err := fence.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	newest := leasehold.Token(0)
	for token := leasehold.Token(1); token <= 40; token++ {
		cmd, _ := startWriter(t, dir, token)
		time.Sleep(time.Duration(rand.IntN(int(30 * time.Millisecond)))) // the moment is the point
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		seen := whole(t, dir)
		floor, err := files.Floor("r")
		if err != nil || seen > floor || seen < newest || seen > token {
			t.Fatalf("after token %d: the file is of %d (before: %d), the floor %d, %v", token, seen, newest, floor, err)
		}
		newest = seen
	}
	if newest == 0 {
		t.Error("no writer wrote anything")
	}
	if err := files.WriteFile(t.Context(), "r", fence.Pass{Token: 41}, "data", version(41), 0o600); err != nil {
		t.Errorf("the next holder: %v", err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) > 3 {
		t.Errorf("killed writers left %v", left)
	}
}

// A writer dies between the floor and the write: nothing is written, older holders are late all
// the same, and its own successor writes.
func TestFilesDeathBetweenFloorAndWrite(t *testing.T) {
	dir := t.TempDir()
	files, err := fence.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteFile(t.Context(), "r", fence.Pass{Token: 5}, "data", version(5), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _ := startWriter(t, dir, 7, writerDies+"=1")
	_ = cmd.Wait()
	if floor, err := files.Floor("r"); err != nil || floor != 7 || whole(t, dir) != 5 {
		t.Fatalf("the floor is %d, %v; the file is of token %d", floor, err, whole(t, dir))
	}
	err = files.WriteFile(t.Context(), "r", fence.Pass{Token: 6}, "data", version(6), 0o600)
	if !errors.Is(err, leasehold.ErrLost) || whole(t, dir) != 5 {
		t.Errorf("a late holder: %v", err)
	}
	for _, token := range []leasehold.Token{7, 8} {
		err := files.WriteFile(t.Context(), "r", fence.Pass{Token: token}, "data", version(token), 0o600)
		if err != nil || whole(t, dir) != token {
			t.Errorf("token %d: %v", token, err)
		}
	}
}

// Two processes write at the same time. Once the newer one has written, the older one is refused and
// ends.
func TestFilesTwoWriters(t *testing.T) {
	dir := t.TempDir()
	var (
		wg   sync.WaitGroup
		cmds [2]*exec.Cmd
		said [2]*bytes.Buffer
	)
	for i := range cmds {
		cmds[i], said[i] = startWriter(t, dir, leasehold.Token(10+i))
	}
	wg.Go(func() { _ = cmds[0].Wait() })
	wg.Wait() // which ends by itself, because it is refused
	if !strings.Contains(said[0].String(), "r: token 10 is late: token 11 was seen") {
		t.Errorf("the older writer says:\n%s", said[0])
	}
	until := time.Now().Add(10 * time.Second)
	for whole(t, dir) != 11 {
		if time.Now().After(until) {
			t.Fatal("the newer writer does not write")
		}
		time.Sleep(time.Millisecond)
	}
	_ = cmds[1].Process.Kill()
	_ = cmds[1].Wait()
}
