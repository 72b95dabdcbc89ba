package cluster

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/leasehold/leasehold/internal/engine/replica"
)

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	r := replica.Relay{First: 1 << 60, Commands: [][]byte{[]byte("one"), {}, []byte("three")}}
	if got, err := decodeRelay(appendRelay(nil, r)); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("relay %+v, %v", got, err)
	}
	places := []replica.Placement{{ID: 1 << 63, Index: 2, Term: 3, At: 4}, {ID: 5}}
	if got, err := decodePlaces(appendPlaces(nil, places)); err != nil || !reflect.DeepEqual(got, places) {
		t.Errorf("places %+v, %v", got, err)
	}
	h := health{applied: 7, lowRoom: true}
	if got, err := decodeHealth(append(appendHealth(nil, h), "what comes later"...)); err != nil || got != h {
		t.Errorf("health %+v, %v", got, err)
	}
}

// What comes from the network is read without trust: no panic, and what is read is what
// was written.
func FuzzMessages(f *testing.F) {
	f.Add(appendRelay(nil, replica.Relay{First: 9, Commands: [][]byte{[]byte("one"), nil}}))
	f.Add(appendPlaces(nil, []replica.Placement{{ID: 1, Index: 2, Term: 3, At: 4}, {ID: 5, Index: 6, Term: 7, At: 8}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decodeRelay(b); err == nil {
			again, err := decodeRelay(appendRelay(nil, r))
			if err != nil || again.First != r.First || len(again.Commands) != len(r.Commands) {
				t.Fatalf("%x is %+v, and again %+v, %v", b, r, again, err)
			}
			for i := range r.Commands {
				if !bytes.Equal(r.Commands[i], again.Commands[i]) {
					t.Fatalf("command %d of %x differs", i, b)
				}
			}
		}
		if p, err := decodePlaces(b); err == nil {
			if again, err := decodePlaces(appendPlaces(nil, p)); err != nil || !reflect.DeepEqual(p, again) {
				t.Fatalf("%x is %+v, and again %+v, %v", b, p, again, err)
			}
		}
		_, _ = decodeHealth(b)
	})
}
