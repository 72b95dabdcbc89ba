package keyword

import (
	"bytes"
	"reflect"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func acquireGrammar() *Grammar {
	return New(Spec{Command: "LH.ACQUIRE resource", Path: "/v1/acquire", Params: []string{"namespace"},
		Body: reflect.TypeFor[v1.AcquireRequest](), Names: []string{"key"}})
}

// Whatever the words are, they are sorted or refused, and what is sorted can be filled in or is refused.
func FuzzWords(f *testing.F) {
	f.Add([]byte("r\nHOLDER\nh\nTTL\n30s\nLABEL\na=b\nSHARED\nWAIT\n5s"))
	f.Add([]byte("r\nalso\n[{\"resource\":\"x\"}]\nslots\nall\nlabels\n{}"))
	f.Add([]byte("r\nHOLDER\nHOLDER\nKEY"))
	f.Add([]byte("\xff\nTTL\nnone\nPRIORITY\n-1"))
	g := acquireGrammar()
	f.Fuzz(func(_ *testing.T, text []byte) {
		var w Words
		if g.Parse(&w, bytes.Split(text, []byte("\n"))) == nil {
			var r v1.AcquireRequest
			_, _ = w.Fill(&r)
			_ = w.Query()
		}
	})
}

// To read an acquire costs the copies of its texts, and nothing else.
func TestHotWordsAllocateLittle(t *testing.T) {
	g := acquireGrammar()
	words := bytes.Split([]byte("r/x\nHOLDER\nci\nID\nabc\nTTL\n30s"), []byte("\n"))
	var w Words
	r := new(v1.AcquireRequest)
	if n := testing.AllocsPerRun(100, func() {
		*r = v1.AcquireRequest{}
		if err := g.Parse(&w, words); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Fill(r); err != nil {
			t.Fatal(err)
		}
	}); n > 4 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAcquire(b *testing.B) {
	g := acquireGrammar()
	words := bytes.Split([]byte("r/x\nHOLDER\nci\nID\nabc\nTTL\n30s"), []byte("\n"))
	var w Words
	r := new(v1.AcquireRequest)
	b.ReportAllocs()
	for b.Loop() {
		*r = v1.AcquireRequest{}
		_ = g.Parse(&w, words)
		_, _ = w.Fill(r)
	}
}
