package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/internal/audit"
)

// metrics are the figures of a running node.
type metrics struct {
	snapshotFailures prometheus.Counter

	writeSeconds    prometheus.Histogram
	entriesWritten  prometheus.Counter
	snapshotSeconds prometheus.Histogram
	snapshotBytes   prometheus.Gauge
	commands        prometheus.Gauge
	ticks           prometheus.Gauge
	applied         prometheus.Gauge
	serving         prometheus.Gauge
	comparisons     prometheus.Counter
	differ          prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_" + name, Help: help})
	}
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
		snapshotBytes: gauge("snapshot_bytes", "Size of the newest snapshot."),
		commands:      gauge("commands_applied", "Commands applied since the start."),
		ticks:         gauge("ticks_proposed", "Ticks proposed since the start, for time alone to change something."),
		applied:       gauge("log_applied_index", "Place in the log that the state has come to."),
		serving:       gauge("leader", "1 if this server leads and takes commands."),
		comparisons: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "leasehold_state_comparisons_total", Help: "How often the states of a majority of the servers were compared.",
		}),
		differ: gauge("states_differ", "How many servers had another state than the majority when they were last compared."),
	}
	if r != nil {
		r.MustRegister(m.writeSeconds, m.entriesWritten, m.snapshotSeconds, m.snapshotBytes, m.snapshotFailures, m.commands, m.ticks, m.applied, m.serving, m.comparisons, m.differ)
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

// journal has the figures of a journal read at each scrape.
func (m *metrics) journal(r prometheus.Registerer, j *audit.Journal) {
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

func (m *metrics) write(took time.Duration, w Write) {
	m.writeSeconds.Observe(took.Seconds())
	m.entriesWritten.Add(float64(len(w.Entries)))
}

func (m *metrics) snapshot(took time.Duration, bytes int64) {
	m.snapshotSeconds.Observe(took.Seconds())
	m.snapshotBytes.Set(float64(bytes))
}

// compared notes what a comparison of states came to.
func (m *metrics) compared(c comparison) {
	if c.known > 1 {
		m.comparisons.Inc()
	}
	m.differ.Set(float64(len(c.odd)))
}

func (m *metrics) node(s Statistics) {
	m.commands.Set(float64(s.Commands))
	m.ticks.Set(float64(s.Ticks))
	m.applied.Set(float64(s.Applied))
	m.serving.Set(0)
	if s.Serving {
		m.serving.Set(1)
	}
}

// peerMetrics are the figures of the connections to other servers, read at each scrape.
type peerMetrics struct{ *network }

var (
	peerConnected = prometheus.NewDesc("leasehold_peer_connected", "1 if messages get through to another server.", []string{"server"}, nil)
	peerDropped   = prometheus.NewDesc("leasehold_peer_dropped_total", "Messages to another server that were lost before they were sent.", []string{"server"}, nil)
	peerLag       = prometheus.NewDesc("leasehold_peer_lag_entries", "Entries of the log that another server is behind this one.", []string{"server"}, nil)
)

// Describe says which figures there are.
func (p peerMetrics) Describe(c chan<- *prometheus.Desc) {
	c <- peerConnected
	c <- peerDropped
	c <- peerLag
}

// Collect returns the figures.
func (p peerMetrics) Collect(c chan<- prometheus.Metric) {
	healths := p.healths()
	applied, seen := p.applied.Load(), map[string]bool{"": true}
	for id, s := range p.mesh.Peers() {
		name := p.nameOf(id)
		if seen[name] {
			continue // it is not known yet, or takes the name of one that is just leaving
		}
		seen[name] = true
		connected := 0.0
		if s.Connected {
			connected = 1
		}
		c <- prometheus.MustNewConstMetric(peerConnected, prometheus.GaugeValue, connected, name)
		c <- prometheus.MustNewConstMetric(peerDropped, prometheus.CounterValue, float64(s.Dropped), name)
		if h, ok := healths[id]; ok {
			c <- prometheus.MustNewConstMetric(peerLag, prometheus.GaugeValue, max(0, float64(applied)-float64(h.applied)), name)
		}
	}
}

// watch has the figures of the connections read at each scrape.
func (n *network) watch(r prometheus.Registerer) {
	if r != nil {
		r.MustRegister(peerMetrics{n})
	}
}
