package audit

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

// Bytes of any kind are read as far as they are good, and what is read would be written
// the same way again.
func FuzzSegment(f *testing.F) {
	w := newWorld(f)
	b := []byte(segmentMagic)
	for _, l := range projected([]Entry{w.cycle(1), w.cycle(2)}) {
		b = appendFramed(b, &l)
	}
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add([]byte(segmentMagic))
	f.Add([]byte{})
	f.Add(appendLine(nil, &Line{Kind: Hold, Since: time.Unix(0, -1), Until: time.Unix(9, 9), Waited: 1 << 62}))
	f.Add(appendLine(nil, &Line{Kind: Hold, Busy: time.Hour, Idle: time.Minute}))
	f.Add(appendLine(nil, &Line{Kind: Hold, Foreign: "f", Idle: time.Minute}))
	f.Add(appendLine(nil, &Line{Kind: Hold, Share: leasehold.Share{Units: 3, Labels: leasehold.Labels{{Key: "team", Value: "nlp"}},
		Hosts: []leasehold.HostUnits{{Host: "a", Units: 1}, {Host: "b", Units: 2}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		good := eachLine(b, func(at int, text string) bool {
			again(t, text)
			if string(b[at+lineHead:at+lineHead+len(text)]) != text {
				t.Fatalf("the line at %d is another", at)
			}
			return true
		})
		if good > len(b) {
			t.Fatalf("%d of %d bytes are good", good, len(b))
		}
		again(t, string(b)) // few bytes that a fuzzer makes have the right checksum
		if _, _, err := parseIndex(b, 1, int64(len(b))); err == nil && len(b) < indexHead {
			t.Fatal("an index without a head was read")
		}
	})
}

func again(t *testing.T, text string) {
	t.Helper()
	var l Line
	if decodeLine(text, &l) != nil {
		return
	}
	if got := appendLine(nil, &l); !bytes.Equal(got, []byte(text)) {
		t.Fatalf("% x\nis written again as\n% x", text, got)
	}
}

func TestTheLargestLineFits(t *testing.T) {
	long := strings.Repeat("x", leasehold.MaxName)
	l := Line{
		Kind: Operation, Index: 1 << 63, N: 1 << 31, At: time.Unix(1<<33, 0), Namespace: long, Resource: long, ID: long, Holder: long, Token: leasehold.MaxToken,
		Session: long, By: long, Reason: long, Verb: long, Outcome: long, Actor: long, Address: long, Door: long,
	}
	if n := len(appendLine(nil, &l)); n > maxLine/4 {
		t.Errorf("it has %d bytes, of %d", n, maxLine)
	}
}
