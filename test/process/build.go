// Package process builds and runs real servers for the tests beside it: those of this tree,
// and those of the newest release.
package process

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed versions.txt
var versions string

// A Release is a version and the commit that it was built from.
type Release struct {
	Version string
	Commit  string
}

// Newest returns the newest release, or none if nothing was released yet.
func Newest() (Release, error) {
	var newest Release
	for line := range strings.Lines(versions) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(line, "#"):
		case len(fields) == 2 && len(fields[1]) == 40:
			newest = Release{fields[0], fields[1]}
		default:
			return Release{}, fmt.Errorf("versions.txt: %q is not a version and the 40 digits of a commit", line)
		}
	}
	return newest, nil
}

// BuildRelease builds the binary of the newest release into a directory, and leaves the test
// out where there is none, or where its source is not there: in a shallow clone, or without git.
func BuildRelease(t testing.TB, dir string) string {
	t.Helper()
	r, err := Newest()
	if err != nil {
		t.Fatal(err)
	}
	if r.Commit == "" {
		t.Skip("left out: no version has been released that this one could be compared with")
	}
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Skipf("left out: the source of %s is in git, and this is no repository that git can read: %v", r.Version, err)
	}
	root := strings.TrimSpace(string(top))
	if err := exec.Command("git", "-C", root, "cat-file", "-e", r.Commit+"^{tree}").Run(); err != nil {
		t.Skipf("left out: the commit of %s is not in this clone (git fetch --unshallow): %s", r.Version, r.Commit)
	}
	source := filepath.Join(dir, "source")
	if err := unpack(root, r.Commit, source); err != nil {
		t.Fatalf("the source of %s cannot be unpacked: %v", r.Version, err)
	}
	// Paths are trimmed, so that what was compiled for one directory need not be for the next.
	return buildIn(t, source, filepath.Join(dir, "leasehold-"+r.Version), "-trimpath")
}

// BuildTree builds the binary of this tree into a directory.
func BuildTree(t testing.TB, dir string) string {
	t.Helper()
	return buildIn(t, ".", filepath.Join(dir, "leasehold-tree"))
}

// buildIn builds the source that a directory is in.
func buildIn(t testing.TB, source, binary string, flags ...string) string {
	t.Helper()
	args := append([]string{"build", "-o", binary}, flags...)
	cmd := exec.Command("go", append(args, "github.com/leasehold/leasehold/cmd/leasehold")...)
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s cannot be built: %v\n%s", filepath.Base(binary), err, out)
	}
	return binary
}

// unpack writes the files of a commit into a directory. The clone itself is not touched.
func unpack(root, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	archive := exec.Command("git", "-C", root, "archive", commit)
	extract := exec.Command("tar", "-x", "-C", dir)
	var err error
	if extract.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := extract.Start(); err != nil {
		return err
	}
	return errors.Join(archive.Run(), extract.Wait())
}
