package cluster

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

func TestTheRosterIsInTheStateFile(t *testing.T) {
	dir := t.TempDir()
	roster := &Roster{
		Cluster: "c", Next: 5, Level: 3, Members: []Member{
			{1, "n1", "p1", "c1", "v1", "d1", true, Levels{3, 9}, `{"zone":"a"}`}, {ID: 4, Name: "n4", Peer: "p4"},
		},
		Removed: []uint64{3}, Open: 9, Leaves: &Member{ID: 2, Dir: "d2"},
	}
	if _, err := writeState(dir, Snapshot{Index: 10, Term: 2, Roster: roster, State: core.New()}, nil, nil); err != nil {
		t.Fatal(err)
	}
	s, _, err := readState(dir, 10, 2)
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
		if _, _, err := readState(dir, 10, 2); err == nil {
			t.Errorf("with byte %d flipped it is read", at)
		}
		file[at] ^= 4
	}
}

// A server that knew nothing of others goes on with its data, as the only member.
func TestADirectoryOfAnEarlierVersionOpens(t *testing.T) {
	dir := t.TempDir()
	e := startAt(t, dir, Config{Clock: SystemClock(), SnapshotEvery: 1})
	for i := range 20 {
		acquire(t, e, fmt.Sprint("r", i))
	}
	closed(t, e)
	states, err := filepath.Glob(filepath.Join(dir, snapDir, "*"+stateSuffix))
	if err != nil || len(states) == 0 {
		t.Fatalf("it has no state: %v", err)
	}
	for _, name := range states {
		write(t, name, firstFormat(t, name))
	}
	write(t, filepath.Join(dir, formatFile), []byte(`{"product":"leasehold","format":1,"node":1,"begun":true}`))
	if _, err := Check(dir); err != nil {
		t.Fatal(err)
	}
	e = startAt(t, dir, Config{Clock: SystemClock()})
	acquire(t, e, "new")
	closed(t, e)
	r := e.node.Roster()
	if len(r.Members) != 1 || r.Members[0].ID != 1 || !r.Members[0].Voter || r.Next != 2 || r.Cluster == "" {
		t.Errorf("the roster is %+v", r)
	}
	format, err := os.ReadFile(filepath.Join(dir, formatFile))
	// Its state began at the newest level, which its format follows.
	if err != nil || !strings.Contains(string(format), fmt.Sprintf(`"format":%d,`, newestFormat)) || strings.Contains(string(format), `"name":""`) {
		t.Errorf("%s, %v", format, err)
	}
}

// firstFormat returns a state file as the first version wrote it.
func firstFormat(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, size, err := readHead(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	head := binary.BigEndian.AppendUint64([]byte(stateMagicOne), s.Index)
	head = binary.BigEndian.AppendUint64(head, s.Term)
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return append(head, all[size:]...)
}

func TestADirectoryOfAnEarlierVersionGrows(t *testing.T) {
	inVirtualTime(t, aDirectoryOfAnEarlierVersionGrows)
}

// Its last snapshot does not say who the members are, and that is what the next server
// gets; both must make the same of it.
func aDirectoryOfAnEarlierVersionGrows(t *testing.T, s *site) {
	s.config.SnapshotEvery = 1
	s.begin("a")
	for i := range 20 {
		s.do(s.leader(), lease(fmt.Sprint("r", i), time.Hour))
	}
	s.stop("a")
	states, err := filepath.Glob(filepath.Join(s.dirs["a"], snapDir, "*"+stateSuffix))
	if err != nil || len(states) == 0 {
		t.Fatalf("it has no state: %v", err)
	}
	for _, name := range states {
		write(t, name, firstFormat(t, name))
	}
	write(t, filepath.Join(s.dirs["a"], formatFile), []byte(`{"product":"leasehold","format":1,"node":1,"begun":true}`))
	s.config.SnapshotEvery = 0
	first := s.mustStart("a", Config{})
	joined := s.join("b", first)
	same := func() bool {
		x, y := first.network.current(), joined.network.current()
		return len(x.Voters()) == 2 && fmt.Sprintf("%+v", *x) == fmt.Sprintf("%+v", *y)
	}
	s.await("the same roster on both", same)
	s.stop("b")
	joined = s.mustStart("b", Config{})
	s.await("the same roster on both after a restart", same)
	if s.holds(joined, "r7") != 1 {
		t.Error("it does not have what there was")
	}
}
