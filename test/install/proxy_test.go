package install

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// version is how the modules of this tree require each other.
const version = "v0.0.0"

// A module is one of the workspace.
type module struct{ Path, Dir string }

// proxy writes all modules of the workspace the way a module proxy keeps them, and returns its folder.
func proxy(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-json").Output()
	if err != nil {
		t.Fatalf("the modules of the workspace: %v", err)
	}
	dir := t.TempDir()
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m module
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return dir
		} else if err != nil {
			t.Fatal(err)
		}
		if err := publish(m, filepath.Join(dir, filepath.FromSlash(m.Path), "@v")); err != nil {
			t.Fatalf("%s: %v", m.Path, err)
		}
	}
}

// publish writes the four files that a proxy has for one version of a module.
func publish(m module, to string) error {
	mod, err := os.ReadFile(filepath.Join(m.Dir, "go.mod"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Unix(0, 0).UTC().Format(time.RFC3339)),
		version + ".mod":  string(mod),
	} {
		if err := os.WriteFile(filepath.Join(to, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(to, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(pack(m, f), f.Close())
}

// pack writes the files of a module, each below "path@version".
func pack(m module, to io.Writer) error {
	z := zip.NewWriter(to)
	err := filepath.WalkDir(m.Dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != m.Dir && !m.contains(name):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(m.Dir, name)
		if err != nil {
			return err
		}
		w, err := z.Create(m.Path + "@" + version + "/" + filepath.ToSlash(rel))
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	return errors.Join(err, z.Close())
}

// contains reports whether a folder is part of the module: neither another module, nor what git
// keeps, nor what make built or a server wrote.
func (m module) contains(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return false
	}
	switch name := filepath.Base(dir); {
	case strings.HasPrefix(name, "."):
		return false
	case filepath.Dir(dir) == m.Dir:
		return name != "bin" && name != "leasehold-data"
	}
	return true
}
