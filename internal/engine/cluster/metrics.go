package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/metric"
)

// metrics are the figures of a running node. Counters of the node are shown as gauges that are
// set from its statistics, which belong to the node's goroutine.
type metrics struct {
	commands, ticks, applied prometheus.Gauge
	serving, differ          prometheus.Gauge
	comparisons              prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		commands:    metric.CommandsApplied.Gauge(),
		ticks:       metric.TicksProposed.Gauge(),
		applied:     metric.LogAppliedIndex.Gauge(),
		serving:     metric.Leader.Gauge(),
		comparisons: metric.StateComparisons.Counter(),
		differ:      metric.StatesDiffer.Gauge(),
	}
	if r != nil {
		r.MustRegister(m.commands, m.ticks, m.applied, m.serving, m.comparisons, m.differ)
	}
	return m
}

// compared notes what a comparison of states came to.
func (m *metrics) compared(c comparison) {
	if c.known > 1 {
		m.comparisons.Inc()
	}
	m.differ.Set(float64(len(c.odd)))
}

func (m *metrics) node(s replica.Statistics) {
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
	peerConnected = metric.PeerConnected.Desc()
	peerDropped   = metric.PeerDropped.Desc()
	peerLag       = metric.PeerLag.Desc()
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
			lag := max(0, float64(applied)-float64(h.applied))
			c <- prometheus.MustNewConstMetric(peerLag, prometheus.GaugeValue, lag, name)
		}
	}
}

// watch has the figures of the connections read at each scrape.
func (n *network) watch(r prometheus.Registerer) {
	if r != nil {
		r.MustRegister(peerMetrics{n})
	}
}
