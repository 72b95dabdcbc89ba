package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
)

func FuzzEntry(f *testing.F) {
	for _, b := range goldens(f, "entry") {
		f.Add(b)
	}
	for _, b := range goldens(f, "command-") {
		f.Add(append([]byte{Format, byte(encodedLevel(b)), 1, 2, 2, 1}, b...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEntry(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknown) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		again, err := AppendEntry(nil, e)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("% x\nis written again as\n% x (%v)", b, again, err)
		}
	})
}

// Few bytes that a fuzzer makes have the right checksum. They are therefore tried as
// they are, with it, and as the records between a head and an end that fit them.
func FuzzSnapshot(f *testing.F) {
	for _, state := range []*core.State{little(f), versions(f), governed(f), linked(f)} {
		whole := write(f, state)
		f.Add(whole)
		f.Add(whole[len(magic)+2 : len(whole)-7])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, reseal(b), around(b)} {
			s, sum, err := ReadSnapshot(bytes.NewReader(b))
			if err != nil {
				if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknown) {
					t.Fatalf("an error of no kind: %v", err)
				}
				continue
			}
			var again bytes.Buffer
			wrote, err := WriteSnapshot(&again, s)
			if err != nil || wrote != sum || !bytes.Equal(again.Bytes(), b) {
				t.Fatalf("% x\nis written again as\n% x (%v)", b, again.Bytes(), err)
			}
		}
	})
}

// around makes a snapshot of records.
func around(records []byte) []byte {
	count := uint64(0)
	for rest := records; len(rest) > 0; count++ {
		_, n := binary.Uvarint(rest)
		size, m := binary.Uvarint(rest[max(0, n):])
		if n <= 0 || m <= 0 || size > uint64(len(rest)-n-m) {
			break
		}
		rest = rest[n+m+int(size):]
	}
	b := append([]byte(magic), Format, byte(Level))
	b = append(b, records...)
	last := binary.AppendUvarint(nil, count)
	b = append(b, kindEnd, byte(len(last)+checksumSize))
	b = append(b, last...)
	return reseal(append(b, 0, 0, 0, 0))
}

// goldens returns the bytes of the golden files whose names begin with prefix.
func goldens(f *testing.F, prefix string) (list [][]byte) {
	f.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "golden", prefix+"*.txt"))
	if err != nil || len(names) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		list = append(list, undump(f, string(text)))
	}
	return list
}
