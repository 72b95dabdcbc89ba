package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// A Dir is the directory with a person's contexts and credentials.
type Dir string

// UserDir returns the directory of the person whose environment it is, where programs of the system keep such files.
func UserDir(getenv func(string) string) (Dir, error) {
	base := getenv("XDG_CONFIG_HOME")
	home := getenv("HOME")
	switch {
	case runtime.GOOS == "windows":
		base = getenv("AppData")
	case filepath.IsAbs(base):
	case home != "" && runtime.GOOS == "darwin":
		base = filepath.Join(home, "Library", "Application Support")
	case home != "":
		base = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(base) {
		return "", errors.New("HOME is not set, and so nobody knows where your contexts and logins are")
	}
	return Dir(filepath.Join(base, "leasehold")), nil
}

const (
	contextsFile    = "contexts.json"
	credentialsFile = "credentials.json"
)

// maxFile is far more than any person needs; the file may be a mistake.
const maxFile = 4 << 20

// read reads a file into a value, and leaves the value as it is if there is no file.
func (d Dir) read(name string, into any) error {
	path := filepath.Join(string(d), name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Size() > maxFile:
		return fmt.Errorf("%s has %d bytes: at most %d are allowed", path, info.Size(), maxFile)
	case name == credentialsFile && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others can read %s, which has your credentials: run chmod 600 %s, and have them replaced "+
			"if you do not trust everybody on this machine", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s cannot be read: %v; remove it to begin anew", path, err)
	}
	return nil
}

// write replaces a file. A reader sees the old one or the new one, whole.
func (d Dir) write(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(string(d), name+".*") // which only we can read
	if err != nil {
		return err
	}
	_, err = temporary.Write(append(text, '\n'))
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), filepath.Join(string(d), name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
