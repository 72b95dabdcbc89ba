package core_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"os"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/wire"
)

var replayFile = flag.String("write-replay", "", "write made-up logs of the newest level, with the hashes of their states, to this file")

// TestWriteReplay writes what TestLogsOfReleasesComeToTheSameState of internal/wire reads.
// It is run once, with the flag, before a level is released.
func TestWriteReplay(t *testing.T) {
	if *replayFile == "" {
		return
	}
	f, err := os.Create(*replayFile)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	for seed := range uint64(40) {
		if _, err := z.Write(replayLog(t, seed)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// replayLog returns one log: how many entries it has, each behind its length, and the hash
// of the state that they come to.
func replayLog(t *testing.T, seed uint64) []byte {
	journal := writeJournal(400, seeded(seed+1e6))
	state := core.NewAt(core.NewestLevel)
	b := binary.AppendUvarint(nil, uint64(len(journal)))
	for _, e := range journal {
		entry, err := wire.AppendEntry(nil, &wire.Entry{Term: 1, Stamp: stampOf(e.stamp), Wall: wallOf(e.stamp), Commands: e.commands})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := state.Apply(stampOf(e.stamp), wallOf(e.stamp), e.commands); err != nil {
			t.Fatal(err)
		}
		b = append(binary.AppendUvarint(b, uint64(len(entry))), entry...)
	}
	hash := sha256.New()
	if _, err := wire.WriteSnapshot(hash, state); err != nil {
		t.Fatal(err)
	}
	return hash.Sum(b)
}
