package enginetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// values returns the engine as one that keeps large values; a test of one that does not
// is over.
func (d driver) values() engine.Values {
	d.t.Helper()
	v, ok := d.Engine.(engine.Values)
	if !ok {
		d.t.Skip("this engine keeps no large values")
	}
	return v
}

// aLargeValue is some bytes, as many as make no whole number of anything.
func aLargeValue(name string) []byte { return bytes.Repeat([]byte(name+"/"), 100003) }

func (d driver) putValue(b []byte) *leasehold.Large {
	d.t.Helper()
	large, err := d.values().PutValue(d.t.Context(), iotest.HalfReader(bytes.NewReader(b)))
	if want := (leasehold.Large{SHA256: sha256.Sum256(b), Size: int64(len(b))}); err != nil || large != want {
		d.t.Fatalf("put a value: %v, %v; want %v", large, err, want)
	}
	return &large
}

func (d driver) hasValue(large *leasehold.Large, want []byte) {
	d.t.Helper()
	r, err := d.values().OpenValue(d.t.Context(), *large)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		d.t.Fatalf("%d bytes were read, which are not the %d that were put: %v", len(got), len(want), err)
	}
	if at, err := r.Seek(-7, io.SeekEnd); err != nil || at != large.Size-7 {
		d.t.Fatalf("seek: %d, %v", at, err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want[len(want)-7:]) {
		d.t.Fatalf("the last bytes are %q: %v", got, err)
	}
}

func (d driver) hasNoValue(large *leasehold.Large) {
	d.t.Helper()
	r, err := d.values().OpenValue(d.t.Context(), *large)
	if err == nil {
		r.Close()
	}
	if !errors.Is(err, leasehold.ErrNotFound) {
		d.t.Fatalf("a value that nothing names: %v", err)
	}
}

// beyondIdle is longer than any engine keeps what nothing names.
const beyondIdle = 2*engine.ValueIdle + 2*time.Minute

func keepsValues(t *testing.T, d driver) {
	one, two := aLargeValue("one"), aLargeValue("two")
	first := d.putValue(one)
	if again := d.putValue(one); *again != *first {
		t.Fatalf("put again it is %v", again)
	}
	time.Sleep(engine.ValueIdle - time.Second)
	d.do(&core.PutRecord{Namespace: "default", Path: "a", Large: first, Keep: 1})
	time.Sleep(beyondIdle)
	second := d.putValue(two)
	d.hasValue(first, one)
	d.do(&core.Txn{Namespace: "default", Then: []core.Op{{Do: core.Put, Path: "a", Large: second}}})
	time.Sleep(beyondIdle)
	d.putValue([]byte("small"))
	d.hasValue(first, one)
	d.hasValue(second, two)

	d.do(&core.PutRecord{Namespace: "default", Path: "a", Value: "inline"})
	d.do(&core.PutRecord{Namespace: "default", Path: "a", From: 2})
	time.Sleep(beyondIdle)
	d.putValue([]byte("small"))
	d.hasNoValue(first)
	d.hasValue(second, two)
}

func refusesValues(t *testing.T, d driver) {
	d.values()
	never := &leasehold.Large{SHA256: sha256.Sum256([]byte("never")), Size: 5}
	d.refused(&core.PutRecord{Namespace: "default", Path: "a", Large: never}, leasehold.ErrInvalid)
	d.refused(&core.Txn{Namespace: "default", Else: []core.Op{{Do: core.Put, Path: "a", Large: never}}},
		leasehold.ErrInvalid)
	d.hasNoValue(never)
	longer := *d.putValue([]byte("there"))
	longer.Size++
	d.refused(&core.PutRecord{Namespace: "default", Path: "a", Large: &longer}, leasehold.ErrInvalid)
	empty := d.putValue(nil)
	d.do(&core.PutRecord{Namespace: "default", Path: "a", Large: empty})
}

func cutsOffValues(t *testing.T, d driver) {
	b := aLargeValue("three")
	lost := errors.New("connection lost")
	_, err := d.values().PutValue(t.Context(), io.MultiReader(bytes.NewReader(b), iotest.ErrReader(lost)))
	if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "connection lost") {
		t.Fatalf("a value that breaks off: %v", err)
	}
	d.hasNoValue(&leasehold.Large{SHA256: sha256.Sum256(b), Size: int64(len(b))})
}
