package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// smallBackup is the bytes of a backup with one of each.
func smallBackup(t testing.TB) []byte {
	t.Helper()
	s := core.New()
	_, err := s.Apply(1, 1, []core.Command{
		&core.Lead{Node: 1}, &core.Acquire{Namespace: "default", Resource: "a", ID: "a1", Holder: "ann", TTL: time.Minute},
		&core.PutRecord{Namespace: "default", Path: "motd", Value: "hello"},
	})
	if err != nil {
		t.Fatal(err)
	}
	roster := &replica.Roster{Cluster: "C", Next: 4, Members: []replica.Member{{ID: 3, Name: "n3", Voter: true}}, Removed: []uint64{1, 2}}
	var b bytes.Buffer
	if err := WriteBackup(&b, replica.Snapshot{Index: 7, Term: 2, Roster: roster, State: s}, time.Unix(1700000000, 0), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDamagedBackupsAreRefused(t *testing.T) {
	whole := smallBackup(t)
	refused := func(what string, b []byte) {
		t.Helper()
		if _, state, err := ReadBackup(bytes.NewReader(b)); state != nil || err == nil {
			t.Fatalf("%s was read: %v", what, err)
		}
		if _, _, err := CopyBackup(io.Discard, bytes.NewReader(b)); err == nil {
			t.Fatalf("%s was copied as if it were good", what)
		}
	}
	if _, _, err := ReadBackup(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		refused(fmt.Sprintf("a backup cut off after %d bytes", n), whole[:n])
	}
	for i := range whole {
		changed := slices.Clone(whole)
		changed[i] ^= 1 << (i % 8)
		refused(fmt.Sprintf("a backup with another byte %d", i), changed)
	}
	refused("a backup that goes on", append(slices.Clone(whole), 0))
	refused("two backups", append(slices.Clone(whole), whole...))
}

func TestWhatIsWrongWithABackup(t *testing.T) {
	whole := smallBackup(t)
	for says, b := range map[string][]byte{
		"has format 1, which only builds from before the first release wrote": append([]byte("leasehold backup 1\n{}\n"), make([]byte, 40)...),
		"has format 2, which only builds from before the first release wrote": append([]byte("leasehold backup 2\n{}\n"), make([]byte, 40)...),
		"does not begin like one":              []byte("PK\x03\x04, and so on, for much longer than the seal of a backup is"),
		"knows formats up to 3":                append([]byte("leasehold backup 4\n{}\n"), make([]byte, 40)...),
		"damaged or cut off":                   whole[:len(whole)-5],
		"where in the log":                     append([]byte("leasehold backup 3\n{}\n"), make([]byte, 40)...),
		"is damaged in what it says of itself": append([]byte("leasehold backup 3\n{\"index\":-1}\n"), make([]byte, 40)...),
		"is cut off in what it says":           append([]byte("leasehold backup 3\n{\"index\":7"), make([]byte, 40)...),
		"it does not begin":                    append([]byte("leasehold backup 01\n{}\n"), make([]byte, 40)...),
		"checksum is wrong: use ":              append(slices.Clone(whole), whole...),
	} {
		name := filepath.Join(t.TempDir(), "backup")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "data")
		if _, err := RestoreTo(dir, name, RestoreOptions{}); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", says, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q: there is a directory now", says)
		}
	}
	if _, err := RestoreTo(t.TempDir(), filepath.Join(t.TempDir(), "none"), RestoreOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no backup at all: %v", err)
	}
}

func TestRestoreRefusesAUsedDirectory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(name, smallBackup(t), 0o600); err != nil {
		t.Fatal(err)
	}
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RestoreTo(used, name, RestoreOptions{}); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "letter") {
		t.Errorf("a directory with a letter: %v", err)
	}
	if files, _ := os.ReadDir(used); len(files) != 1 {
		t.Errorf("it has %d files now", len(files))
	}
	empty := t.TempDir()
	to, err := RestoreTo(empty, name, RestoreOptions{Name: "n1", Above: 3 << 40})
	if err != nil || to.Server != 4 || to.State.Base != 4<<40 {
		t.Errorf("an empty directory: %+v, %v", to, err)
	}
	if _, err := RestoreTo(empty, name, RestoreOptions{}); !errors.Is(err, leasehold.ErrRefused) {
		t.Errorf("twice into one directory: %v", err)
	}
	again, err := RestoreTo(t.TempDir(), name, RestoreOptions{})
	if err != nil || again.Cluster == to.Cluster {
		t.Errorf("two restores of one backup: %+v and %+v, %v", to, again, err)
	}
}

// What a crash leaves before the directory says that it is one, no server takes for its
// data, nor a second restore for an empty directory.
func TestHalfARestoreIsNoData(t *testing.T) {
	dir, name := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(name, smallBackup(t), 0o600); err != nil {
		t.Fatal(err)
	}
	head, state, err := ReadBackup(bytes.NewReader(smallBackup(t)))
	if err != nil {
		t.Fatal(err)
	}
	d := &Dir{Path: dir, identity: identity{Product: "leasehold", Format: FormatAt(core.NewestLevel), Node: 9, Begun: true}}
	if err := fill(d, head, state, "", name); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, formatFile)); err != nil {
		t.Fatal(err)
	}
	if d, err := OpenDir(dir, true); err == nil {
		t.Error("a server took it")
		d.Close()
	}
	if err := mustBeEmpty(dir); !errors.Is(err, leasehold.ErrRefused) {
		t.Errorf("it is said to be empty: %v", err)
	}
}

func FuzzBackup(f *testing.F) {
	whole := smallBackup(f)
	f.Add(whole)
	f.Add(whole[:60])
	f.Add([]byte("leasehold backup 3\n{\"cluster\":\"C\",\"index\":1,\"term\":1,\"roster\":{}}\n"))
	f.Add([]byte("leasehold backup 3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		head, state, err := ReadBackup(bytes.NewReader(b))
		copied, n, copyErr := CopyBackup(io.Discard, bytes.NewReader(b))
		if err != nil {
			if state != nil {
				t.Error("a refused backup has a state")
			}
			return
		}
		if copyErr != nil || n != int64(len(b)) || copied.Index != head.Index {
			t.Errorf("what can be read cannot be copied: %v", copyErr)
		}
		if _, err := state.FromBackup(core.Restoration{Quarantine: -1}); err != nil {
			t.Log(err)
		}
		freshID(head.Roster)
	})
}
