package keyword

import (
	"bytes"
	"reflect"
	"slices"
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

var sessionWords = bytes.Split([]byte("r/x\nHOLDER\nci\nID\nabc\nPARTY\nabc\nSESSION\ns.1"), []byte("\n"))

// What was said before costs nothing, and what is new replaces only what the same field said.
func TestKnownWordsAreNotAllocated(t *testing.T) {
	g := acquireGrammar()
	w := Words{Known: &Known{}}
	r := new(v1.AcquireRequest)
	fill := func(words ...[]byte) {
		*r = v1.AcquireRequest{}
		if err := g.Parse(&w, words); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Fill(r); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { fill(sessionWords...) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	words := slices.Clone(sessionWords)
	id := []byte("abc")
	words[4], words[6] = id, id
	n := testing.AllocsPerRun(100, func() {
		id[0] = 'a' + (id[0]-'a'+1)%26
		fill(words...)
		if r.ID != string(id) || r.Party != string(id) || r.Holder != "ci" || r.Session != "s.1" {
			t.Fatalf("%+v", r)
		}
	})
	if n > 1 {
		t.Errorf("%v allocations for a new id", n)
	}
	long := bytes.Repeat([]byte("x"), maxKnown+1)
	fill(long)
	for _, text := range w.Known.texts {
		if len(text) > maxKnown {
			t.Error("a long word is kept")
		}
	}
}

func BenchmarkKnown(b *testing.B) {
	g := acquireGrammar()
	for name, known := range map[string]*Known{"new": nil, "known": {}} {
		b.Run(name, func(b *testing.B) {
			w := Words{Known: known}
			r := new(v1.AcquireRequest)
			b.ReportAllocs()
			for b.Loop() {
				*r = v1.AcquireRequest{}
				_ = g.Parse(&w, sessionWords)
				_, _ = w.Fill(r)
			}
		})
	}
}
