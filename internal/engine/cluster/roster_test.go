package cluster

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// A server that knew nothing of others goes on with its data, as the only member.
func TestADirectoryOfAnEarlierVersionOpens(t *testing.T) {
	dir := t.TempDir()
	e := startAt(t, dir, Config{Clock: SystemClock(), SnapshotEvery: 1})
	for i := range 20 {
		acquire(t, e, fmt.Sprint("r", i))
	}
	closed(t, e)
	states, err := filepath.Glob(filepath.Join(dir, snapDir, "*.snap.db"))
	if err != nil || len(states) == 0 {
		t.Fatalf("it has no state: %v", err)
	}
	for _, name := range states {
		write(t, name, firstFormat(t, name))
	}
	write(t, filepath.Join(dir, formatFile), []byte(`{"product":"leasehold","format":1,"node":1,"begun":true}`))
	if _, err := storage.Check(dir); err != nil {
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
	if err != nil || !strings.Contains(string(format), fmt.Sprintf(`"format":%d,`, storage.FormatAt(core.NewestLevel))) || strings.Contains(string(format), `"name":""`) {
		t.Errorf("%s, %v", format, err)
	}
}

// firstFormat returns a state file as the first version wrote it: without a roster, nor its
// length, in the head.
func firstFormat(t *testing.T, name string) []byte {
	t.Helper()
	const fixed = 8 + 8 + 8 // magic, index and term
	all := read(t, name)
	state := fixed + 4 + int(binary.BigEndian.Uint32(all[fixed:])) + 4
	head := append([]byte("LHSTATE1"), all[8:fixed]...)
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)))
	return append(head, all[state:]...)
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
	states, err := filepath.Glob(filepath.Join(s.dirs["a"], snapDir, "*.snap.db"))
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
