package wire

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// frozenList has the name and the hash of each golden file that must never change.
var frozenList = filepath.Join("testdata", "golden", "frozen")

// frozen returns the hashes of the frozen files by their names.
func frozen(t *testing.T) map[string]string {
	t.Helper()
	list, err := os.Open(frozenList)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	hashes := map[string]string{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		hash, name, _ := strings.Cut(lines.Text(), "  ")
		hashes[name] = hash
	}
	return hashes
}

func isFrozen(t *testing.T, name string) bool {
	t.Helper()
	_, yes := frozen(t)[name+".txt"]
	return yes
}

func freeze(t *testing.T, name, text string) {
	t.Helper()
	list, err := os.OpenFile(frozenList, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	if _, err := fmt.Fprintf(list, "%s  %s.txt\n", hashOf([]byte(text)), name); err != nil {
		t.Fatal(err)
	}
}

func hashOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// TestGoldenFilesAreFrozen: whoever changes one of them changes what servers in the world
// have written.
func TestGoldenFilesAreFrozen(t *testing.T) {
	want := frozen(t)
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		switch hash, known := want[name]; {
		case !known:
			t.Errorf("%s is not in the list of frozen files: add %q", name, hashOf(b)+"  "+name)
		case hash != hashOf(b):
			t.Errorf("%s was frozen and has changed", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s was frozen and is gone", name)
	}
}
