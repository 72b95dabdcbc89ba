package wire

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
)

func TestEntryComesBackAsItWas(t *testing.T) {
	for seed := range uint64(500) {
		d := newDice(seed)
		want := d.entry(d.IntN(20))
		b, err := AppendEntry([]byte("before"), want)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := DecodeEntry(b[len("before"):])
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: the entry\n%+v\ncame back as\n%+v", seed, want, got)
		}
	}
}

func TestLongTextsComeBack(t *testing.T) {
	for _, n := range []int{255, 256, 257, 16383, 16384, 100000} {
		want := &core.Release{Namespace: "a", ID: strings.Repeat("x", n), Request: core.Request{Key: "b"}}
		b, err := AppendCommand(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeCommand(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("an id of %d bytes did not come back: %v", n, err)
		}
	}
}

// A command that a door let through must never be one that the log cannot keep.
func TestWhatTheCoreAcceptsCanBeWritten(t *testing.T) {
	w := newWorld(1)
	for range 2000 {
		c := w.event()
		if err := c.Validate(); err != nil {
			continue
		}
		b, err := AppendCommand(nil, c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if got, err := DecodeCommand(b); err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v came back as %+v, %v", c, got, err)
		}
	}
}

func TestCommandsEncodedBeforeMakeTheSameEntry(t *testing.T) {
	e := newDice(2).entry(50)
	want, err := AppendEntry(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	var encoded [][]byte
	for i, c := range e.Commands {
		b, err := AppendCommand(AppendAsker(AppendOrigin(nil, e.Origins[i]), e.Askers[i]), c)
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, b)
	}
	got, err := AppendEncoded(nil, Header{e.Term, e.Stamp, e.Wall}, encoded)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the two entries differ (%v)", err)
	}
}

func TestEveryBeginningOfAnEntryIsRefused(t *testing.T) {
	b, err := AppendEntry(nil, newDice(3).entry(12))
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if _, err := DecodeEntry(b[:n:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(b), err)
		}
	}
	if _, err := DecodeEntry(append(b, 0)); !errors.Is(err, ErrMalformed) {
		t.Fatalf("with one byte more: %v", err)
	}
}

// Whatever is accepted after a change of one bit must be written the same way again. Each verb has short entries
// of its own: in a long one nearly all the time goes into decoding what was not changed.
func TestEveryBitOfAnEntryMeansSomething(t *testing.T) {
	d := newDice(4)
	d.lengths = []int{0, 1, 2, 3, 4, 5, 6, 128}
	kinds := 0
	for _, row := range command.Verbs() {
		for range 2 {
			kinds++
			everyBitOfAnEntry(t, d.shortEntry(t, row))
		}
	}
	if kinds < 50 {
		t.Errorf("only %d commands were changed", kinds)
	}
}

// shortEntry returns an entry with a command of a verb, in 100 to 1,000 bytes if there are that many.
func (d dice) shortEntry(t *testing.T, row command.Verb) (b []byte) {
	t.Helper()
	for try := 0; len(b) == 0 || len(b) > 1000 || len(b) < 100 && try < 10; try++ {
		e := &Entry{Term: d.bits(), Stamp: core.Time(d.bits()), Wall: int64(d.bits()), Commands: []core.Command{row.New()}}
		d.fill(reflect.ValueOf(e.Commands[0]).Elem())
		d.say(e)
		var err error
		if b, err = AppendEntry(nil, e); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func everyBitOfAnEntry(t *testing.T, b []byte) {
	t.Helper()
	accepted := 0
	for i := range len(b) * 8 {
		changed := bytes.Clone(b)
		changed[i/8] ^= 1 << (i % 8)
		e, err := DecodeEntry(changed)
		if err != nil {
			continue
		}
		accepted++
		again, err := AppendEntry(nil, e)
		if err != nil || !bytes.Equal(again, changed) {
			t.Fatalf("%T, bit %d: an entry was accepted that would be written otherwise (%v)", e.Commands[0], i, err)
		}
	}
	if accepted == 0 {
		t.Error("nothing was accepted: this shows nothing")
	}
}

// entryOf is an entry of one command.
func entryOf(command string) string { return "\x02\x01\x01\x02\x02\x01" + command }

func TestRefusedEntries(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes string
		kind  error
		says  string
	}{
		{"nothing", "", ErrMalformed, "log entry is malformed at byte 0, format: it is cut off"},
		{"format 0", "\x00\x01", ErrMalformed, "its format is 0"},
		{"level 0", "\x02\x00", ErrMalformed, "its feature level 0"},
		{"a newer format", "\x03rest", ErrUnknown, "log entry has format 3, and formats up to 2 are known here: this server is too old for it, start a newer one"},
		{"a format before the first release", "\x01rest", ErrUnknown, "log entry has format 1, which only builds from before the first release wrote, and this version does not read: start with an empty directory, or use the build that wrote it"},
		{"a newer level", "\x02\x07rest", ErrUnknown, "log entry has feature level 7, and levels up to 1 are known here"},
		{"a number that is too long", "\x02\x01\x80\x00\x00\x00\x00", ErrMalformed, "at byte 2, term: the number is written longer than it need be"},
		{"a number of 65 bits", "\x02\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", ErrMalformed, "more than 64 bits"},
		{"more commands than bytes", "\x02\x01\x01\x02\x02\x05\x09\x00", ErrMalformed, "commands: it is longer than what is left"},
		{"more commands than allowed", "\x02\x01\x01\x02\x02\x81\x40" + strings.Repeat("\x09\x00", 8193), ErrMalformed, "commands"},
		{"an origin that is cut off", entryOf("\x00\x02\x01\x05"), ErrMalformed, "command 1 of 1: origin is malformed at byte 10, actor: it is longer than what is left"},
		{"an origin that says nothing", entryOf("\x00\x00\x09\x00"), ErrMalformed, "door: it says nothing, and then it is left out"},
		{"an origin of nothing", entryOf("\x00\x03\x01\x01a"), ErrMalformed, "command 1 of 1: command is malformed"},
		{"two origins", entryOf("\x00\x03\x01\x01a\x00\x03\x01\x01a\x09\x00"), ErrMalformed, "an origin stands where a command should"},
		{"the cluster as an asker with a name", entryOf("\x7f\x04\x01\x02\x01a\x09\x00"), ErrMalformed, "asker is malformed at byte 12, system: it has a name"},
		{"a newer kind", "\x02\x01\x01\x02\x02\x02\x09\x00\x1f\x00", ErrUnknown, "command 2 of 2: command is of kind 31, and verbs up to 30 are known here"},
		{"a body beyond the end", entryOf("\x05\x09\x00"), ErrMalformed, "length: it is longer than what is left"},
		{"bytes behind the last command", entryOf("\x09\x00\x00"), ErrMalformed, "1 bytes follow its last command"},
		{"bytes behind the last field", entryOf("\x09\x01\x00"), ErrMalformed, "tick is malformed at byte 8, end: 1 bytes follow that belong to nothing"},
		{"bytes behind the last field of a message", entryOf("\x06\x06\x03\x04\x01\x01a\x00"), ErrMalformed, "release is malformed at byte 13, end: 1 bytes follow that belong to nothing"},
		{"a tag that is not known", entryOf("\x09\x01\x02"), ErrUnknown, "tick has field 2 at byte 8, which is not known here: this server is too old for it, start a newer one"},
		{"a tag that is not known behind others", entryOf("\x02\x08\x01\x01a\x02\x01b\x03\x00"), ErrUnknown, "renew-session has field 3 at byte 14, which is not known here"},
		{"a tag that is not known in a message", entryOf("\x06\x03\x03\x01\x09"), ErrUnknown, "release has field 9 at byte 10, which is not known here"},
		{"a tag of two bytes", entryOf("\x09\x02\x81\x01"), ErrUnknown, "tick has field 129 at byte 8, which is not known here"},
		{"a tag twice", entryOf("\x02\x06\x01\x01a\x01\x01b"), ErrMalformed, "renew-session is malformed at byte 11, namespace: it stands twice"},
		{"a flag twice", entryOf("\x08\x02\x08\x08"), ErrMalformed, "break is malformed at byte 9, remains: it stands twice"},
		{"a flag with a value", entryOf("\x08\x02\x08\x01"), ErrMalformed, "break is malformed at byte 9, remains: field 1 stands behind it, out of order"},
		{"tags out of order", entryOf("\x02\x06\x02\x01b\x01\x01a"), ErrMalformed, "renew-session is malformed at byte 11, id: field 1 stands behind it, out of order"},
		{"tags out of order in a message", entryOf("\x06\x08\x03\x06\x02\x01b\x01\x01a"), ErrMalformed, "release is malformed at byte 13, request session: field 1 stands behind it, out of order"},
		{"an empty text", entryOf("\x02\x02\x01\x00"), ErrMalformed, "renew-session is malformed at byte 10, namespace: it is zero, and then it is left out"},
		{"a number of 0", entryOf("\x0a\x02\x01\x00"), ErrMalformed, "node: it is zero"},
		{"a duration of 0", entryOf("\x01\x02\x03\x00"), ErrMalformed, "ttl: it is zero"},
		{"the first of an enumeration", entryOf("\x04\x02\x0c\x00"), ErrMalformed, "pick: it is zero"},
		{"no labels", entryOf("\x01\x02\x04\x00"), ErrMalformed, "labels: it is zero"},
		{"an empty list", entryOf("\x04\x02\x07\x00"), ErrMalformed, "also: it is zero"},
		{"an empty list of texts", entryOf("\x19\x02\x03\x00"), ErrMalformed, "units: it is zero"},
		{"an empty list of moments", entryOf("\x1d\x02\x0c\x00"), ErrMalformed, "starts: it is zero"},
		{"an empty message", entryOf("\x06\x02\x03\x00"), ErrMalformed, "request: it is zero"},
		{"an enumeration without a zero", entryOf("\x15\x00"), ErrMalformed, "acknowledge-alarm is malformed at byte 8, kind: it is missing, and is one of 1 to"},
		{"an enumeration that ends before", entryOf("\x04\x02\x0c\x04"), ErrMalformed, "pick: 4 is none of 0 to 3"},
		{"a text beyond its body", entryOf("\x05\x05\x01\x01a\x02\x01"), ErrMalformed, "renew is malformed at byte 13, id: it is longer than what is left"},
		{"a text beyond its message", entryOf("\x06\x05\x03\x02\x01\x01a"), ErrMalformed, "release is malformed at byte 12, request key: it is longer than what is left"},
		{"a message beyond its body", entryOf("\x06\x05\x03\x04\x01\x01a"), ErrMalformed, "release is malformed at byte 10, request: it is longer than what is left"},
		{"a tag without a value", entryOf("\x05\x01\x01"), ErrMalformed, "renew is malformed at byte 9, namespace: it is cut off"},
		{"two values", entryOf("\x0b\x25\x03\x01a\x04" + strings.Repeat("d", 33)), ErrMalformed, "value: there are two of them"},
		{"a label without a key", entryOf("\x01\x05\x04\x01\x00\x01v"), ErrMalformed, "label key"},
		{"labels out of order", entryOf("\x01\x0a\x04\x02\x01b\x01v\x01a\x01v"), ErrMalformed, "label key: it is empty, or stands twice, or out of order"},
		{"a label twice", entryOf("\x01\x0a\x04\x02\x01a\x01v\x01a\x01v"), ErrMalformed, "label key"},
		{"too many labels", entryOf("\x01\x05\x04\x02\x01a\x00"), ErrMalformed, "label key"},
		{"more parts than bytes", entryOf("\x04\x03\x07\x05\x00"), ErrMalformed, "also: it is longer than what is left"},
		{"more operations than allowed", entryOf("\x0d\x04\x03\x81\x01\x00"), ErrMalformed, "then: it has 129 parts, and at most 128 are allowed"},
		{"too many bytes", strings.Repeat("\x01", maxEntry+1), ErrMalformed, "at most 4194304 are allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := DecodeEntry([]byte(c.bytes))
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %+v, %v\nwant %v: …%s…", e, err, c.kind, c.says)
			}
		})
	}
}

func TestWhatWouldNotBeReadIsNotWritten(t *testing.T) {
	unsorted := leasehold.Labels{{Key: "b"}, {Key: "a"}}
	for name, c := range map[string]core.Command{
		"labels out of order":   &core.Acquire{Labels: unsorted},
		"a label without a key": &core.OpenSession{Labels: leasehold.Labels{{Value: "v"}}},
		"a command of 1 MiB":    &core.Renew{ID: strings.Repeat("x", maxCommand)},
		"no command":            nil,
		"many operations":       &core.Txn{Then: slices.Repeat([]core.Op{{Do: core.Get}}, leasehold.MaxOps+1)},
		"many nested operations": &core.Txn{Then: slices.Repeat([]core.Op{{Do: core.Nested, Txn: &core.Txn{
			Else: []core.Op{{Do: core.Get}, {Do: core.Get}, {Do: core.Get}},
		}}}, leasehold.MaxOps)},
		"a transaction too deep":                nested(leasehold.MaxOps + 8),
		"a nested transaction with a namespace": &core.Txn{Then: []core.Op{{Do: core.Nested, Txn: &core.Txn{Namespace: "a"}}}},
		"no thing to compare":                   &core.Txn{If: []core.Compare{{Is: core.Equal}}},
	} {
		if b, err := AppendCommand(nil, c); err == nil {
			t.Errorf("%s: it was written, with %d bytes", name, len(b))
		}
	}
	tick, _ := AppendCommand(nil, &core.Tick{})
	if _, err := AppendEncoded(nil, Header{}, make([][]byte, maxCommands+1)); err == nil {
		t.Error("an entry with too many commands was written")
	}
	if _, err := AppendEncoded(nil, Header{}, [][]byte{tick, make([]byte, maxEntry)}); err == nil {
		t.Error("an entry with too many bytes was written")
	}
}

func nested(deep int) *core.Txn {
	t := new(core.Txn)
	for range deep {
		t = &core.Txn{Then: []core.Op{{Do: core.Nested, Txn: t}}}
	}
	return t
}

// The core counts operations, nested ones too, and so transactions may be nested as often as there may be operations.
func TestTheDeepestTransactionComesBack(t *testing.T) {
	want := nested(leasehold.MaxOps)
	b, err := AppendCommand(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeCommand(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("it came back otherwise: %v", err)
	}
}

// Of a short body all strings share one copy, in whatever message they are.
func TestTextsOfMessagesInMessagesComeBack(t *testing.T) {
	want := &core.Txn{Then: []core.Op{{Do: core.Nested, Txn: &core.Txn{If: []core.Compare{{What: core.RecordValue, Is: core.Equal, Path: "p", Text: "t"}}}}, {Do: core.Get, Path: "q"}}, Request: goldenKey}
	b, err := AppendCommand(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeCommand(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v came back as %+v: %v", want, got, err)
	}
}

func TestEntryKeepsNothingOfItsBytes(t *testing.T) {
	b, err := AppendEntry(nil, newDice(5).entry(40))
	if err != nil {
		t.Fatal(err)
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	e, err := DecodeEntry(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range e.Commands {
		eachText(reflect.ValueOf(c).Elem(), func(s string) {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(s))); s != "" && at >= from && at < from+uintptr(len(b)) {
				t.Fatalf("%T keeps the entry alive", c)
			}
		})
	}
}

func eachText(v reflect.Value, fn func(string)) {
	switch v.Kind() {
	case reflect.String:
		fn(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			eachText(v.Field(i), fn)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), fn)
		}
	}
}

// An id that is remembered for long must not keep long labels with it.
func TestLongBodiesAreNotShared(t *testing.T) {
	long := &core.Acquire{ID: "id", Labels: leasehold.Labels{{Key: "k", Value: strings.Repeat("v", 4000)}}}
	b, err := AppendCommand(nil, long)
	if err != nil {
		t.Fatal(err)
	}
	c, err := DecodeCommand(b)
	if err != nil {
		t.Fatal(err)
	}
	got := c.(*core.Acquire)
	id := uintptr(unsafe.Pointer(unsafe.StringData(got.ID)))
	value := uintptr(unsafe.Pointer(unsafe.StringData(got.Labels[0].Value)))
	if value-id == uintptr(bytes.Index(b, []byte("vvv"))-bytes.Index(b, []byte("id"))) {
		t.Fatal("the id stands in memory as it stood in the entry, and keeps the labels alive")
	}
}

// What is claimed in a few bytes must not cost many. What is there may: a command without fields takes two bytes, of which
// there are 8,192 at most in an entry, and an operation takes three.
func TestEntryAllocatesInProportion(t *testing.T) {
	many, err := AppendEntry(nil, &Entry{Commands: slices.Repeat([]core.Command{&core.Acquire{}}, maxCommands)})
	if err != nil {
		t.Fatal(err)
	}
	txn := &core.Txn{Then: slices.Repeat([]core.Op{{Do: core.Get}}, leasehold.MaxOps)}
	operations, err := AppendEntry(nil, &Entry{Commands: slices.Repeat([]core.Command{txn}, 100)})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"8,192 commands in no bytes": []byte("\x02\x01\x01\x02\x02\x80\x40"),
		"many labels in few bytes":   []byte(entryOf("\x01\x07\x04\xff\xff\xff\xff\x0f\x00")),
		"a long text in few bytes":   []byte(entryOf("\x05\x06\x01\xff\xff\xff\x7f\x00")),
		"many operations":            []byte(entryOf("\x0d\x06\x03\xff\xff\xff\xff\x0f")),
		"the smallest acquires":      many,
		"the smallest operations":    operations,
	} {
		most := uint64(4096 + 32*len(b))
		if len(b) > 100 {
			most = uint64(maxCommands*5/4*unsafe.Sizeof(core.Acquire{})) + uint64(len(b)/3+1)*uint64(unsafe.Sizeof(core.Op{}))
		}
		if got := allocated(func() { _, _ = DecodeEntry(b) }); got > most {
			t.Errorf("%s: %d bytes in, %d bytes allocated, want at most %d", name, len(b), got, most)
		}
	}
}

// allocated returns how many bytes fn allocates. Others may allocate at the same time,
// so it is the least of a few tries.
func allocated(fn func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fn()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// A value that the dictionary adds needs a new feature level: servers of this one
// refuse it.
func TestEnumerationsAreKnownToTheirEnd(t *testing.T) {
	for name, next := range map[string]string{
		"state": leasehold.State(states.Last + 1).String(),
		"how":   leasehold.How(hows.Last + 1).String(),
		"kind":  leasehold.Kind(kinds.Last + 1).String(),
		"code":  leasehold.Code(codes.Last + 1).String(),
	} {
		if next != "unknown" {
			t.Errorf("%s: %q is in the dictionary and not in the format", name, next)
		}
	}
}

func TestMomentsOutOfRangeAreNotWritten(t *testing.T) {
	w := writing(nil)
	m := w.Message()
	late := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if m.Moment(1, "at", &late); m.Fault == nil {
		t.Fatal("the year 9999 was written as nanoseconds since 1970")
	}
}

// TestWeight: what is sent all the time weighs little, and a transaction by its size; who
// sends it does not matter.
func TestWeight(t *testing.T) {
	weigh := func(c core.Command, origin bool) int {
		var b []byte
		if origin {
			b = AppendOrigin(b, leasehold.Origin{Door: "http", Address: "192.0.2.1"})
		}
		b, err := AppendCommand(b, c)
		if err != nil {
			t.Fatal(err)
		}
		return Weight(b)
	}
	// Puts that are as short as they can be: the core counts two units for each.
	puts := func(n int) *core.Txn {
		txn := &core.Txn{Namespace: "n"}
		for i := range n {
			txn.Then = append(txn.Then, core.Op{Do: core.Put, Path: string([]byte{'a' + byte(i/16), 'a' + byte(i%16)})})
		}
		return txn
	}
	for _, origin := range []bool{false, true} {
		renew := weigh(&core.Renew{Namespace: "n", ID: "i"}, origin)
		acquire := weigh(&core.Acquire{Namespace: "n", Resource: "r", ID: "i", Holder: "h"}, origin)
		if renew != renewWeight || acquire != commandWeight {
			t.Errorf("a renewal weighs %d, and an acquire %d", renew, acquire)
		}
		for n := range leasehold.MaxOps + 1 {
			if many := weigh(puts(n), origin); many < 2*n-n/4 {
				t.Errorf("a transaction of %d puts weighs %d", n, many)
			}
		}
		large := &core.Txn{Namespace: "n", Then: []core.Op{{Do: core.Put, Path: "a", Value: strings.Repeat("v", 4096)}}}
		if weight := weigh(large, origin); weight > 8+4200/bytesPerUnit+leasehold.MaxOps {
			t.Errorf("a transaction with a value of 4 KiB weighs %d", weight)
		}
	}
	if Weight(nil) != commandWeight || Weight([]byte{0, 200}) != commandWeight {
		t.Error("what cannot be read weighs something else than a command")
	}
}
