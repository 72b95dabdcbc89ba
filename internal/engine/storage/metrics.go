package storage

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// metrics are the figures of a disk.
type metrics struct {
	writeSeconds, snapshotSeconds    prometheus.Histogram
	entriesWritten, snapshotFailures prometheus.Counter
	snapshotBytes                    prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		writeSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leasehold_log_write_seconds", Help: "Time to make one batch durable.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		entriesWritten: prometheus.NewCounter(prometheus.CounterOpts{Name: "leasehold_log_entries_written_total", Help: "Entries written to the log."}),
		snapshotSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leasehold_snapshot_seconds", Help: "Time to write one snapshot in the background.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		snapshotFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "leasehold_snapshot_failures_total", Help: "Snapshots that could not be written, since there was no room, or the server stopped.",
		}),
		snapshotBytes: prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_snapshot_bytes", Help: "Size of the newest snapshot."}),
	}
	if r != nil {
		r.MustRegister(m.writeSeconds, m.entriesWritten, m.snapshotSeconds, m.snapshotBytes, m.snapshotFailures)
	}
	return m
}

// room has the figures of the data disk read at each scrape.
func (m *metrics) room(r prometheus.Registerer, room *room) {
	if r == nil {
		return
	}
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leasehold_disk_" + name, Help: help}, value))
	}
	gauge("free_bytes", "Room that is free on the data disk.", func() float64 { return float64(room.free.Load()) })
	gauge("reserved_bytes", "Room in the reserve on the data disk.", func() float64 { return float64(room.reserved.Load()) })
	gauge("needed_bytes", "Room that has to be free or in the reserve for anything new to be granted.", func() float64 { return float64(room.needed.Load()) })
	gauge("low_room", "1 if the data disk is low on room, and nothing new is granted or written.", func() float64 {
		if room.full.Load() {
			return 1
		}
		return 0
	})
}

// watchJournal has the figures of a journal read at each scrape.
func watchJournal(r prometheus.Registerer, j *audit.Journal) {
	if r == nil {
		return
	}
	gauge := func(name, help string, value func(audit.Statistics) float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leasehold_journal_" + name, Help: help}, func() float64 { return value(j.Statistics()) }))
	}
	counter := func(name, help string, value func(audit.Statistics) uint64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "leasehold_journal_" + name + "_total", Help: help}, func() float64 { return float64(value(j.Statistics())) }))
	}
	gauge("bytes", "Size of the journal on disk.", func(s audit.Statistics) float64 { return float64(s.Bytes) })
	gauge("lag_entries", "Entries of the log that the journal has not written yet.", func(s audit.Statistics) float64 { return float64(s.Queued) })
	counter("lines", "Lines written to the journal.", func(s audit.Statistics) uint64 { return s.Lines })
	counter("dropped_segments", "Segments removed to keep the journal within its bound.", func(s audit.Statistics) uint64 { return s.Dropped })
	counter("lost_lines", "Lines that the journal lost because the disk was full.", func(s audit.Statistics) uint64 { return s.Lost })
	counter("damaged_segments", "Segments that could not be read to their end.", func(s audit.Statistics) uint64 { return s.Damaged })
	counter("failures", "1 if the journal could not be written, which stops the server.", func(s audit.Statistics) uint64 { return s.Failures })
}

func (m *metrics) write(took time.Duration, w replica.Write) {
	m.writeSeconds.Observe(took.Seconds())
	m.entriesWritten.Add(float64(len(w.Entries)))
}

func (m *metrics) snapshot(took time.Duration, bytes int64) {
	m.snapshotSeconds.Observe(took.Seconds())
	m.snapshotBytes.Set(float64(bytes))
}
