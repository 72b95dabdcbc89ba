package wire

import (
	"reflect"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

func reads(t *testing.T, c core.Command) bool {
	t.Helper()
	_, same, err := Encode(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	return same
}

// What is not decoded again must be what decoding gives, in any command of which Encode says so.
func TestCommandsThatNeedNotBeDecoded(t *testing.T) {
	met := map[reflect.Type]int{}
	for seed := range uint64(2000) {
		e := newDice(seed).entry(8)
		for i, c := range e.Commands {
			// Where a list is empty, it may be nil or not.
			if a, ok := c.(*core.Acquire); ok && seed%3 == 0 {
				a.Also, a.Labels = a.Also[:0:0], append(leasehold.Labels{}, a.Labels...)
			}
			if !reads(t, c) {
				continue
			}
			met[reflect.TypeOf(c)]++
			var b []byte
			var origin leasehold.Origin
			if e.Origins != nil {
				origin = e.Origins[i]
				b = AppendOrigin(b, origin)
			}
			if e.Askers != nil {
				b = AppendAsker(b, e.Askers[i])
			}
			b, err := AppendCommand(b, c)
			if err != nil {
				t.Fatal(err)
			}
			got, from, asker, err := DecodeCall(nil, b)
			if err != nil || !reflect.DeepEqual(got, c) || from != origin {
				t.Fatalf("%+v of %v came back as %+v of %v: %v", c, origin, got, from, err)
			}
			if alone, err := AskerOf(nil, b); err != nil || !reflect.DeepEqual(alone, asker) {
				t.Fatalf("it is asked for by %v, and by %v alone: %v", asker, alone, err)
			}
		}
	}
	if len(met) < 8 {
		t.Errorf("only %d kinds of commands were met: %v", len(met), met)
	}
}

// Transactions with links, nested ones among them.
func TestGoldenCommandsThatNeedNotBeDecoded(t *testing.T) {
	met := 0
	for name, c := range goldenCommands {
		if !reads(t, c) {
			continue
		}
		b, err := AppendCommand(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeCommand(b); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s came back as %+v: %v", name, got, err)
		}
		if name == "txn-nested" {
			met++
		}
	}
	if met == 0 {
		t.Error("no transaction with a link was met")
	}
}

func TestEntryIsMadeOfItsParts(t *testing.T) {
	for seed := range uint64(300) {
		want := newDice(seed).entry(int(seed % 20))
		got := &Entry{Term: want.Term, Stamp: want.Stamp, Wall: want.Wall}
		for i, c := range want.Commands {
			var origin leasehold.Origin
			if want.Origins != nil {
				origin = want.Origins[i]
			}
			if want.Askers != nil {
				got.Add(c, origin, want.Askers[i])
			} else {
				got.Add(c, origin, nil)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: got %+v, want %+v", seed, got, want)
		}
	}
}
