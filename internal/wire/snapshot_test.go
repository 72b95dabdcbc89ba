package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

func write(t testing.TB, s *core.State) []byte {
	t.Helper()
	var b bytes.Buffer
	sum, err := WriteSnapshot(&b, s)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Bytes != int64(b.Len()) {
		t.Fatalf("the summary says %d bytes, and %d were written", sum.Bytes, b.Len())
	}
	return b.Bytes()
}

func read(t testing.TB, b []byte) *core.State {
	t.Helper()
	s, _, err := ReadSnapshot(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// small returns a snapshot with each kind of record, and few bytes.
func small(t testing.TB) []byte { return write(t, little(t)) }

// reseal makes the checksum of a snapshot right.
func reseal(b []byte) []byte {
	b = bytes.Clone(b)
	if n := len(b) - checksumSize; n >= 0 {
		binary.BigEndian.PutUint32(b[n:], crc32.Checksum(b[:n], castagnoli))
	}
	return b
}

func TestRecordComesBackAsItWas(t *testing.T) {
	for seed := range uint64(2000) {
		d := newDice(seed)
		want := d.piece()
		b := appendRecordAt(t, Level, want)
		if got := decodeRecordAt(t, Level, b); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %q %+v\ncame back as\n%q %+v", seed, want.Space, want.Value, got.Space, got.Value)
		}
	}
}

// appendRecord returns one record as a snapshot would have it first in its namespace.
func appendRecord(t testing.TB, r core.Piece) []byte {
	t.Helper()
	return appendRecordAt(t, 0, r)
}

func appendRecordAt(t testing.TB, level uint64, r core.Piece) []byte {
	t.Helper()
	var sent bytes.Buffer // a large one is sent at once
	w := snapshotWriter{codec: codec{Codec: tagged.Codec{Writing: true, Level: level}}, w: &sent}
	if err := w.write(r); err != nil {
		t.Fatal(err)
	}
	return append(sent.Bytes(), w.B...)
}

func decodeRecord(t testing.TB, b []byte) core.Piece {
	t.Helper()
	return decodeRecordAt(t, 0, b)
}

func decodeRecordAt(t testing.TB, level uint64, b []byte) core.Piece {
	t.Helper()
	kind, n := binary.Uvarint(b)
	size, m := binary.Uvarint(b[n:])
	c := codec{Codec: tagged.Codec{B: b[n+m:], Level: level}}
	if size != uint64(c.Left()) {
		t.Fatalf("a record of %d bytes says that it has %d", c.Left(), size)
	}
	r := core.Piece{Value: pieceKinds[kind].fresh()}
	if !pieceKinds[kind].wide {
		c.Text("namespace", &r.Space)
	}
	if e, ok := r.Value.(*leasehold.Event); ok {
		e.Namespace = r.Space
	}
	pieceKinds[kind].fields(r.Value, c.Message())
	if c.Message().End(); c.Fault != nil {
		t.Fatal(c.Refused("record"))
	}
	return r
}

// A replica that was restored goes on exactly like one that was not.
func TestRestoredStateGoesOnTheSame(t *testing.T) {
	for seed := range uint64(12) {
		w := newWorld(seed)
		for range 150 {
			w.step(t)
		}
		restored := read(t, write(t, w.State.Freeze()))
		for i := range 150 {
			at, commands, want := w.step(t)
			got, err := restored.Apply(at, int64(at)+1e18, commands)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: the answers differ:\n%+v\n%+v", seed, i, got, want)
			}
		}
		if err := restored.Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(write(t, restored), write(t, w.State)) {
			t.Fatalf("seed %d: the states differ", seed)
		}
	}
}

func TestReadingTellsTheSameSummary(t *testing.T) {
	state := everything(t)
	var b bytes.Buffer
	wrote, err := WriteSnapshot(&b, state)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{"at once": &b, "byte by byte": iotest.OneByteReader(bytes.NewReader(b.Bytes()))} {
		_, got, err := ReadSnapshot(r)
		if err != nil || got != wrote {
			t.Errorf("%s: %+v, %v; it was written as %+v", name, got, err, wrote)
		}
	}
}

func TestEveryBeginningOfASnapshotIsRefused(t *testing.T) {
	b := small(t)
	for n := range b {
		_, _, err := ReadSnapshot(bytes.NewReader(b[:n]))
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "cut off") {
			t.Fatalf("the first %d of %d bytes: %v", n, len(b), err)
		}
		if _, _, err := ReadSnapshot(bytes.NewReader(reseal(b[:n]))); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted once their checksum was right", n, len(b))
		}
	}
}

func TestEveryBitOfASnapshotIsGuarded(t *testing.T) {
	b := small(t)
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		s, _, err := ReadSnapshot(bytes.NewReader(b))
		if s != nil || !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknown) {
			t.Fatalf("bit %d: %v", i, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	read(t, b)
}

// With the checksum out of the way, whatever is accepted is written the same again.
func TestEveryBitOfASnapshotMeansSomething(t *testing.T) {
	everyBitOfASnapshot(t, small(t))
	everyBitOfASnapshot(t, write(t, versions(t)))
}

func everyBitOfASnapshot(t *testing.T, b []byte) {
	t.Helper()
	accepted := 0
	for i := range (len(b) - checksumSize) * 8 {
		changed := bytes.Clone(b)
		changed[i/8] ^= 1 << (i % 8)
		changed = reseal(changed)
		s, _, err := ReadSnapshot(bytes.NewReader(changed))
		if err != nil {
			continue
		}
		accepted++
		if !bytes.Equal(write(t, s), changed) {
			t.Fatalf("bit %d: a snapshot was accepted that would be written otherwise", i)
		}
	}
	if accepted == 0 {
		t.Fatal("nothing was accepted: this test shows nothing")
	}
}

func TestRefusedSnapshots(t *testing.T) {
	const head = magic + "\x02\x01"
	first := string(appendRecord(t, core.Piece{Value: &core.Head{}}))
	space := string(appendRecord(t, core.Piece{Space: "b", Value: &core.SpaceHead{}}))
	restored := string(appendRecord(t, core.Piece{Value: &core.Restored{Base: 1 << 40}}))
	same := "\x06\x06\x00\x01\x01i\x05\x01" // an ended claim of the namespace before
	ended := func(records string, n byte) string {
		return string(reseal(append([]byte(head+records), 0, 5, n, 0, 0, 0, 0)))
	}
	for _, c := range []struct {
		name  string
		bytes string
		kind  error
		says  string
	}{
		{"nothing", "", ErrMalformed, "snapshot is cut off: it ends after record 0, in what begins at byte 0"},
		{"another file", "PK\x03\x04 and so on, for long enough", ErrMalformed, "this is not a snapshot"},
		{"a short other file", "PK", ErrMalformed, "this is not a snapshot"},
		{"a newer format", magic + "\x03\x01", ErrUnknown, "snapshot has format 3, and formats up to 2 are known here: this server is too old for it"},
		{"a format before the first release", magic + "\x01\x01", ErrUnknown, "snapshot has format 1, which only builds from before the first release wrote"},
		{"a newer level", magic + "\x02\x07", ErrUnknown, "snapshot has feature level 7, and levels up to 1 are known here"},
		{"restored twice", ended(first+restored+restored, 3), ErrMalformed, "twice"},
		{"restored in the wrong place", ended(first+space+restored, 3), ErrMalformed, "would be written differently"},
		{"format 0", magic + "\x00\x01", ErrMalformed, "its format is 0"},
		{"no records", ended("", 0), ErrMalformed, "snapshot is empty"},
		{"a newer record", ended(first+"\x28\x00", 2), ErrUnknown, "snapshot has a record of kind 40 at byte 23, and kinds up to 39 are known here: this server is too old for it"},
		{"a record that is too long", head + first + string(binary.AppendUvarint([]byte{5}, maxRecord+1)), ErrMalformed, fmt.Sprintf("at most %d is allowed", maxRecord)},
		{"a wrong count", ended(first, 2), ErrMalformed, "it says that it has 2 records, and has 1"},
		{"a short last record", head + first + "\x00\x03\x00\x00\x00", ErrMalformed, "its last record is too short"},
		{"a long last record", head + first + "\x00\x06\x01\x00\x00\x00\x00\x00", ErrMalformed, "last record is malformed"},
		{"something after the end", ended(first, 1) + "x", ErrMalformed, "something follows its end"},
		{"no head", ended(space, 1), ErrMalformed, "head in the wrong place"},
		{"two heads", ended(first+first, 2), ErrMalformed, "head in the wrong place"},
		{"a namespace twice", ended(first+space+space, 3), ErrMalformed, "namespace: it is repeated"},
		{"namespaces out of order", ended(first+space+"\x02\x02\x01a", 3), ErrMalformed, "namespace: it has two heads, or is out of order"},
		{"a namespace that is not begun", ended(first+same, 2), ErrMalformed, "namespace: it is missing"},
		{"another that is not begun", ended(first+space+"\x07\x07\x01a\x01\x01s\x02\x01", 3), ErrMalformed, "namespace: it has no head"},
		{"an id that ended in two ways", ended(first+space+same+"\x06\x06\x00\x01\x01i\x05\x02", 4), ErrMalformed, `the end of lease "i" twice`},
		{"a record that goes on", ended(first+"\x02\x03\x01b\x00", 2), ErrMalformed, "record 2 (namespace) is malformed at byte 27, end: 1 bytes follow"},
		{"a newer field", ended(first+"\x02\x04\x01b\x09\x01", 2), ErrUnknown, "record 2 (namespace) has field 9 at byte 27, which is not known here: this server is too old for it"},
		{"a zero that is written", ended(first+"\x02\x04\x01b\x01\x00", 2), ErrMalformed, "token: it is zero, and then it is left out"},
		{"fields out of order", ended(first+"\x02\x06\x01b\x02\x01\x01\x01", 2), ErrMalformed, "revision: field 1 stands behind it, out of order"},
		{"a rest behind no end", ended(first+space+"\x04\x08\x00\x05\x05\x02\x01\x02\x01\x01", 3), ErrMalformed, "after: it is missing"},
		{"a claim's owner who is nobody", ended(first+space+"\x1a\x04\x00\x01\x01i", 3), ErrMalformed, "owner: it is missing"},
		{"an owner without a name", ended(first+space+"\x1a\x06\x00\x01\x01i\x02\x00", 3), ErrMalformed, "principal: it is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _, err := ReadSnapshot(strings.NewReader(c.bytes))
			if s != nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v\nwant %v: …%s…", err, c.kind, c.says)
			}
		})
	}
}

// A bit that makes of a record one of a kind that nobody knows, or of a field another one, is damage, and no reason to
// look for a newer server.
func TestADamagedBitIsDamage(t *testing.T) {
	b := small(t)
	for i := (len(magic) + 2) * 8; i < len(b)*8; i++ {
		b[i/8] ^= 1 << (i % 8)
		if _, _, err := ReadSnapshot(bytes.NewReader(b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("bit %d of byte %d: %v", i%8, i/8, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestWrongChecksumIsNamed(t *testing.T) {
	b := small(t)
	b[len(b)-1]++
	if _, _, err := ReadSnapshot(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), "snapshot is damaged: its checksum should be") {
		t.Fatal(err)
	}
}

func TestErrorsOfTheDiskAreNotTakenForDamage(t *testing.T) {
	b, failure := small(t), errors.New("the disk is gone")
	_, _, err := ReadSnapshot(io.MultiReader(bytes.NewReader(b[:len(b)/2]), iotest.ErrReader(failure)))
	if !errors.Is(err, failure) || errors.Is(err, ErrMalformed) {
		t.Errorf("reading: %v", err)
	}
	if _, err := WriteSnapshot(broken{failure}, everything(t)); !errors.Is(err, failure) {
		t.Errorf("writing: %v", err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// The largest record there can be stays far below what is accepted.
func TestLargestRecord(t *testing.T) {
	name := strings.Repeat("n", leasehold.MaxName)
	message := strings.Repeat("m", 10*leasehold.MaxName) // several names, quoted
	var labels leasehold.Labels
	for i, size := 0, 0; size+3 <= leasehold.MaxLabels; i, size = i+1, size+3 {
		labels = append(labels, leasehold.Label{Key: fmt.Sprintf("%03x", i)})
	}
	lease := &leasehold.Lease{Namespace: name, Resource: name, ID: name, Holder: name, Labels: labels, Reason: name, Session: name, State: leasehold.Leased}
	b := appendRecord(t, core.Piece{Space: name, Value: &core.Outcome{Key: name + name, Subject: message, Answer: core.Answer{
		Lease:   lease,
		Session: &leasehold.Session{Namespace: name, ID: name, Labels: labels},
		Waiter:  &leasehold.Waiter{Namespace: name, Resource: name, ID: name, Holder: name, Labels: labels, Reason: name, Session: name},
		Err:     &leasehold.Error{Code: leasehold.Held, Message: message, Lease: lease},
	}}})
	value := &leasehold.Record{Path: name, Value: strings.Repeat("v", leasehold.MaxValue), Session: name}
	e := appendRecord(t, core.Piece{Space: name, Value: &leasehold.Event{
		Namespace: name, Kind: leasehold.RecordPut, Resource: name, Session: name, Record: value, Previous: value,
	}})
	var leases []leasehold.Lease
	for range leasehold.MaxTogether {
		leases = append(leases, *lease)
	}
	several := appendRecord(t, core.Piece{Space: name, Value: &core.Outcome{Answer: core.Answer{Lease: lease, Also: leases}}})
	ending := &core.Ending{ID: name, Holder: name, How: leasehold.ByBreak, By: name, Reason: name}
	pool := &core.Resource{Path: name, More: &core.More{Last: ending, Shares: &core.Shares{}}}
	for range 128 {
		pool.More.Rests = append(pool.More.Rests, core.Rest{Units: []string{name[:32], name[:32]}, After: ending})
	}
	for range leasehold.MaxUnits {
		pool.More.Shares.Units = append(pool.More.Shares.Units, core.Unit{Name: name[:leasehold.MaxUnitNames/leasehold.MaxUnits], Holder: name})
	}
	p := appendRecord(t, core.Piece{Space: name, Value: pool})
	if most := max(len(b), len(e), len(several), len(p)); most > maxRecord/2 {
		t.Fatalf("it has %d bytes, of %d", most, maxRecord)
	}
}

// How many operations a transaction may have is counted for each by itself.
func TestManyTransactionsCanBeRemembered(t *testing.T) {
	state := core.New()
	txn := &core.Txn{Namespace: "a"}
	for i := range leasehold.MaxOps {
		txn.Then = append(txn.Then, core.Op{Do: core.Put, Path: fmt.Sprint("p", i)})
	}
	for i := range 4 {
		again := *txn
		again.Request = key(fmt.Sprint("key", i))
		if _, err := state.Apply(core.Time(time.Hour), goldenWall, do(&again)); err != nil {
			t.Fatal(err)
		}
	}
	if again := read(t, write(t, state)); !reflect.DeepEqual(records(state), records(again)) {
		t.Error("it is not read as it was written")
	}
}

func TestRecordsThatWouldNotBeReadAreNotWritten(t *testing.T) {
	for name, r := range map[string]core.Piece{
		"an unknown value":                 {Space: "a", Value: "text"},
		"no namespace":                     {Value: &core.Claim{}},
		"an event of another namespace":    {Space: "a", Value: &leasehold.Event{Namespace: "b", Kind: leasehold.Left}},
		"an end with another's hold":       {Space: "a", Value: &leasehold.Event{Namespace: "a", Kind: leasehold.Ended, Hold: &leasehold.Hold{ID: "x"}}},
		"an outcome with what was read":    {Space: "a", Value: &core.Outcome{Answer: core.Answer{Txn: &core.TxnAnswer{Results: []core.TxnResult{{Page: &core.RecordPage{}}}}}}},
		"a rest behind no end":             {Space: "a", Value: &core.Resource{More: &core.More{Rests: []core.Rest{{Slots: 1}}}}},
		"a claim's owner who is nobody":    {Space: "a", Value: &core.ClaimOwner{ID: "a"}},
		"an owner without a name":          {Space: "a", Value: &core.RecordOwner{Path: "a", Owner: &access.Owner{Group: "g"}}},
		"many leases":                      {Space: "a", Value: &core.Outcome{Answer: core.Answer{Also: make([]leasehold.Lease, leasehold.MaxTogether+1)}}},
		"a version that is current":        {Space: "a", Value: &leasehold.Version{Path: "a", Current: true}},
		"an alarm of no kind":              {Space: "a", Value: &core.Alarm{}},
		"an event of no kind":              {Space: "a", Value: &leasehold.Event{Namespace: "a"}},
		"an end that came in no way":       {Space: "a", Value: &core.EndedClaim{}},
		"a code that is not there":         {Space: "a", Value: &core.Outcome{Answer: core.Answer{Err: &leasehold.Error{Code: 200}}}},
		"a claim whose labels are twisted": {Space: "a", Value: &core.Claim{Terms: &core.Terms{Labels: leasehold.Labels{{Key: "b"}, {Key: "a"}}}}},
		"a record that is too long":        {Space: "a", Value: &core.Claim{Holder: strings.Repeat("x", maxRecord)}},
	} {
		w := snapshotWriter{codec: writing(nil), w: io.Discard}
		if err := w.write(r); err == nil {
			t.Errorf("%s: it was written", name)
		}
	}
}

func TestSnapshotOfHostileBytesTakesBoundedMemory(t *testing.T) {
	start := magic + "\x02\x01" + string(appendRecord(t, core.Piece{Value: &core.Head{}}))
	for name, claim := range map[string]string{
		"a record of 4 MiB that is not there": "\x05\x80\x80\x80\x02",
		"labels without end":                  "\x03\x28\x01a\x03\xff\xff\xff\xff\x0f" + strings.Repeat("\x00", 32),
	} {
		got := allocated(func() { _, _, _ = ReadSnapshot(strings.NewReader(start + claim)) })
		if got > 2*maxRecord {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
	}
}

// A frozen state is written in the background while the original goes on; the race
// detector watches.
func TestWritingDoesNotDisturbTheState(t *testing.T) {
	w := newWorld(99)
	for range 200 {
		w.step(t)
	}
	frozen := w.State.Freeze()
	var results [2]Summary
	var writers sync.WaitGroup
	for i := range results {
		writers.Go(func() { results[i], _ = WriteSnapshot(io.Discard, frozen) })
	}
	for range 200 {
		w.step(t)
	}
	writers.Wait()
	if results[0] != results[1] || results[0].Records == 0 {
		t.Fatalf("one state gave two snapshots: %+v and %+v", results[0], results[1])
	}
}

func TestNamespacesShareTheirName(t *testing.T) {
	state := read(t, write(t, everything(t)))
	names := map[string]string{}
	for r := range state.Pieces() {
		e, ok := r.Value.(*leasehold.Event)
		if !ok {
			continue
		}
		if known, seen := names[e.Namespace]; seen && !sameText(known, e.Namespace) {
			t.Fatalf("%q is in memory more than once", e.Namespace)
		}
		names[e.Namespace] = e.Namespace
	}
	if len(names) < 2 {
		t.Fatal("too few namespaces to tell")
	}
}
