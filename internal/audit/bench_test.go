package audit

import "testing"

// BenchmarkAppend measures one lease and its release, which are three lines, on their
// way to a file.
func BenchmarkAppend(b *testing.B) {
	w := newWorld(b)
	var entries []Entry
	for i := range 1000 {
		entries = append(entries, w.cycle(i))
	}
	j := start(b, Config{Dir: b.TempDir(), Bytes: DefaultBytes})
	defer closed(b, j)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := entries[i%len(entries)]
		e.Index = uint64(i + 1)
		j.Append(e)
	}
	if err := j.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(j.Statistics().Bytes)/float64(j.Statistics().Lines), "bytes/line")
}

// BenchmarkFind measures a page of the newest holds of one resource among twenty.
func BenchmarkFind(b *testing.B) {
	w := newWorld(b)
	j := start(b, Config{Dir: b.TempDir(), Bytes: DefaultBytes})
	defer closed(b, j)
	for i := range 100000 {
		j.Append(w.cycle(i))
	}
	q := Query{Kind: Hold, Namespace: space, Resource: "jobs/07", Limit: 100}
	b.ReportAllocs()
	for b.Loop() {
		if page, err := j.Find(b.Context(), q); err != nil || len(page.Lines) != 100 {
			b.Fatal(len(page.Lines), err)
		}
	}
}
