package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// archives are towns with many records instead of leases.
var archives = map[int]*town{}

func inArchives(b *testing.B, op func(t *town, path string)) {
	value := strings.Repeat("v", 100)
	for _, records := range sizes {
		b.Run(fmt.Sprint("records=", records), func(b *testing.B) {
			t := archives[records]
			if t == nil {
				t = newTown(0)
				for i := range records {
					t.do(&core.PutRecord{Namespace: ns, Path: fmt.Sprintf("config/%08d", i), Value: value})
				}
				archives[records] = t
			}
			b.ReportAllocs()
			for b.Loop() {
				op(t, fmt.Sprintf("config/%08d", t.chance.IntN(records)))
			}
		})
	}
}

func BenchmarkPutRecord(b *testing.B) {
	value := strings.Repeat("w", 100)
	inArchives(b, func(t *town, path string) { t.do(&core.PutRecord{Namespace: ns, Path: path, Value: value}) })
}

func BenchmarkDeletePutRecord(b *testing.B) {
	inArchives(b, func(t *town, path string) {
		t.do(&core.DeleteRecord{Namespace: ns, Path: path})
		t.do(&core.PutRecord{Namespace: ns, Path: path, Value: "again"})
	})
}

func BenchmarkTxnRecord(b *testing.B) {
	inArchives(b, func(t *town, path string) {
		t.do(&core.Txn{
			Namespace: ns, If: []core.Compare{{What: core.RecordVersion, Is: core.Greater, Path: path}},
			Then: []core.Op{{Do: core.Put, Path: path, Value: "next"}}, Else: []core.Op{{Do: core.Get, Path: path}},
		})
	})
}

func BenchmarkGetRecord(b *testing.B) {
	inArchives(b, func(t *town, path string) {
		if _, failure := t.state.View(0).Record(ns, path, 0); failure != nil {
			b.Fatal(failure)
		}
	})
}

func BenchmarkCountRecords(b *testing.B) {
	inArchives(b, func(t *town, path string) {
		_, failure := t.state.View(0).Records(ns, core.RecordQuery{From: path, Most: 1, Count: true})
		if failure != nil {
			b.Fatal(failure)
		}
	})
}

// BenchmarkGetOldRecord reads as of the oldest revision there is: it walks over all of
// history, which is as long in both archives.
func BenchmarkGetOldRecord(b *testing.B) {
	inArchives(b, func(t *town, path string) {
		oldest, _ := t.state.View(0).History(ns).Oldest()
		_, failure := t.state.View(0).Record(ns, path, max(1, oldest))
		if failure != nil && failure.Code != leasehold.NotFound {
			b.Fatal(failure)
		}
	})
}
