package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
)

// Servers of two versions apply one log: what a released version wrote comes to the very
// state that it came to there. The files were written by that version, and never change.
func TestLogsOfReleasesComeToTheSameState(t *testing.T) {
	for name, level := range map[string]core.Level{"testdata/replay/level3.gz": core.Level3} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		r, logs := bufio.NewReader(z), 0
		for ; ; logs++ {
			count, err := binary.ReadUvarint(r)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			replay(t, r, logs, int(count), core.NewAt(level))
		}
		if logs < 40 {
			t.Errorf("%s has %d logs", name, logs)
		}
	}
}

// replay applies one log, and compares what it comes to with what it came to.
func replay(t *testing.T, r *bufio.Reader, log, entries int, state *core.State) {
	t.Helper()
	for i := range entries {
		size, err := binary.ReadUvarint(r)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatal(err)
		}
		e, err := DecodeEntry(b)
		if err == nil {
			_, err = state.Apply(e.Stamp, e.Wall, e.Commands)
		}
		if err != nil {
			t.Fatalf("log %d, entry %d: %v", log, i+1, err)
		}
	}
	want, hash := make([]byte, sha256.Size), sha256.New()
	if _, err := io.ReadFull(r, want); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteSnapshot(hash, state); err != nil {
		t.Fatal(err)
	}
	if got := hash.Sum(nil); !bytes.Equal(got, want) {
		t.Errorf("log %d comes to another state than in the version that wrote it", log)
	}
}
