package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

func TestTheRosterIsInTheStateFile(t *testing.T) {
	d := &Dir{Path: t.TempDir()}
	dir := d.Snapshots()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var newer replica.Member // of which a newer version says more than this one knows
	if err := json.Unmarshal([]byte(`{"id":1,"name":"n1","peer":"p1","client":"c1","version":"v1","dir":"d1","voter":true,"levels":{"oldest":1,"newest":9},"zone":"a"}`), &newer); err != nil {
		t.Fatal(err)
	}
	roster := &replica.Roster{
		Cluster: "c", Next: 5, Level: 1, Members: []replica.Member{
			newer, {ID: 4, Name: "n4", Peer: "p4"},
		},
		Removed: []uint64{3}, Open: 9, Leaves: &replica.Member{ID: 2, Dir: "d2"},
	}
	if _, err := writeState(dir, replica.Snapshot{Index: 10, Term: 2, Roster: roster, State: core.New()}, nil, nil); err != nil {
		t.Fatal(err)
	}
	s, _, err := d.readState(10, 2)
	if err != nil || !reflect.DeepEqual(s.Roster, roster) {
		t.Fatalf("%+v, %v", s.Roster, err)
	}
	file, err := os.ReadFile(stateName(dir, 10))
	if err != nil {
		t.Fatal(err)
	}
	for at := range 60 {
		file[at] ^= 4
		write(t, stateName(dir, 10), file)
		if _, _, err := d.readState(10, 2); err == nil {
			t.Errorf("with byte %d flipped it is read", at)
		}
		file[at] ^= 4
	}
}

// A server that knows a level less must not go on from a state of the newer level, as if nothing in it mattered.
func TestAStateOfANewerLevelIsRefused(t *testing.T) {
	d := &Dir{Path: t.TempDir()}
	if err := os.Mkdir(d.Snapshots(), 0o700); err != nil {
		t.Fatal(err)
	}
	newer := core.NewestLevel + 1
	state := core.NewAt(core.NewestLevel)
	if err := state.Raise(newer); err != nil {
		t.Fatal(err)
	}
	if _, err := writeState(d.Snapshots(), replica.Snapshot{Index: 10, Term: 2, Roster: &replica.Roster{Cluster: "c"}, State: state}, nil, nil); err != nil {
		t.Fatal(err)
	}
	_, _, err := d.readState(10, 2)
	if want := fmt.Sprintf("feature level %d, and levels up to %d are known here", newer, core.NewestLevel); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a server of this version: %v", err)
	}
	d.newest = newer
	if s, _, err := d.readState(10, 2); err != nil || s.State.Level() != newer {
		t.Errorf("a server that knows the level: %v", err)
	}
}

func TestADamagedSnapshotIsNotTaken(t *testing.T) {
	d := &Dir{Path: t.TempDir()}
	dir := d.Snapshots()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := replica.Snapshot{Index: 7, Term: 3, Roster: &replica.Roster{Cluster: "c"}, State: core.New()}
	if _, err := writeState(dir, s, nil, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(stateName(dir, 7))
	if err != nil {
		t.Fatal(err)
	}
	got, err := receiveState(d, 7, 3, bytes.NewReader(whole), &pacedWriter{})
	if err != nil || got.Roster.Cluster != "c" || got.State == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		if _, err := receiveState(d, 7, 3, bytes.NewReader(b), &pacedWriter{}); err == nil {
			t.Fatalf("byte %d of %d is wrong, and it is taken", i, len(b))
		}
		if _, err := receiveState(d, 7, 3, bytes.NewReader(whole[:i]), &pacedWriter{}); err == nil {
			t.Fatalf("%d bytes of %d are there, and it is taken", i, len(b))
		}
	}
	if _, err := receiveState(d, 8, 3, bytes.NewReader(whole), &pacedWriter{}); err == nil {
		t.Fatal("it is taken for another")
	}
	if again, err := os.ReadFile(stateName(dir, 7)); err != nil || !bytes.Equal(again, whole) {
		t.Fatalf("the one that was there is not what it was, %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Fatalf("%d files are left", len(files))
	}
}

// A snapshot that cannot be taken is sent again, after a pause.
