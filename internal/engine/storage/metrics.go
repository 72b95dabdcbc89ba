package storage

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/metric"
)

// metrics are a disk's own metrics. A disk without a registry counts all the same, so that its
// code need not ask.
type metrics struct {
	writeSeconds, snapshotSeconds    prometheus.Histogram
	entriesWritten, snapshotFailures prometheus.Counter
	snapshotBytes                    prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		writeSeconds:     metric.LogWriteSeconds.Histogram(prometheus.ExponentialBuckets(0.0001, 2, 16)),
		entriesWritten:   metric.LogEntries.Counter(),
		snapshotSeconds:  metric.SnapshotSeconds.Histogram(prometheus.ExponentialBuckets(0.001, 4, 10)),
		snapshotFailures: metric.SnapshotFailures.Counter(),
		snapshotBytes:    metric.SnapshotBytes.Gauge(),
	}
	if r != nil {
		r.MustRegister(m.writeSeconds, m.entriesWritten, m.snapshotSeconds, m.snapshotBytes, m.snapshotFailures)
	}
	return m
}

// room registers the figures of the data disk, which are read at each scrape.
func (m *metrics) room(r prometheus.Registerer, room *room) {
	if r == nil {
		return
	}
	r.MustRegister(
		metric.DiskFree.GaugeFunc(func() float64 { return float64(room.free.Load()) }),
		metric.DiskReserved.GaugeFunc(func() float64 { return float64(room.reserved.Load()) }),
		metric.DiskNeeded.GaugeFunc(func() float64 { return float64(room.needed.Load()) }),
		metric.DiskLowRoom.GaugeFunc(func() float64 {
			if room.full.Load() {
				return 1
			}
			return 0
		}),
	)
}

// watchJournal registers the figures of a journal, which are read at each scrape.
func watchJournal(r prometheus.Registerer, j *audit.Journal) {
	if r == nil {
		return
	}
	gauge := func(m metric.Metric, value func(audit.Statistics) float64) {
		r.MustRegister(m.GaugeFunc(func() float64 { return value(j.Statistics()) }))
	}
	counter := func(m metric.Metric, value func(audit.Statistics) uint64) {
		r.MustRegister(m.CounterFunc(func() float64 { return float64(value(j.Statistics())) }))
	}
	gauge(metric.JournalBytes, func(s audit.Statistics) float64 { return float64(s.Bytes) })
	gauge(metric.JournalLag, func(s audit.Statistics) float64 { return float64(s.Queued) })
	counter(metric.JournalLines, func(s audit.Statistics) uint64 { return s.Lines })
	counter(metric.JournalDropped, func(s audit.Statistics) uint64 { return s.Dropped })
	counter(metric.JournalLost, func(s audit.Statistics) uint64 { return s.Lost })
	counter(metric.JournalDamaged, func(s audit.Statistics) uint64 { return s.Damaged })
	counter(metric.JournalFailures, func(s audit.Statistics) uint64 { return s.Failures })
}

func (m *metrics) write(took time.Duration, w replica.Write) {
	m.writeSeconds.Observe(took.Seconds())
	m.entriesWritten.Add(float64(len(w.Entries)))
}

func (m *metrics) snapshot(took time.Duration, bytes int64) {
	m.snapshotSeconds.Observe(took.Seconds())
	m.snapshotBytes.Set(float64(bytes))
}
