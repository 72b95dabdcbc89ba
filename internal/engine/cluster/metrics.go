package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/internal/engine/replica"
)

// metrics are the figures of a running node.
type metrics struct {
	commands, ticks, applied prometheus.Gauge
	serving, differ          prometheus.Gauge
	comparisons              prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_" + name, Help: help})
	}
	m := &metrics{
		commands: gauge("commands_applied", "Commands applied since the start."),
		ticks:    gauge("ticks_proposed", "Ticks proposed since the start, for time alone to change something."),
		applied:  gauge("log_applied_index", "Place in the log that the state has come to."),
		serving:  gauge("leader", "1 if this server leads and takes commands."),
		comparisons: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "leasehold_state_comparisons_total", Help: "How often the states of a majority of the servers were compared.",
		}),
		differ: gauge("states_differ", "How many servers had another state than the majority when they were last compared."),
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
