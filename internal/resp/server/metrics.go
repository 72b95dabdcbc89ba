package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/internal/metric"
)

var (
	descConnections    = metric.RESPConnections.Desc()
	descCommands       = metric.RESPCommands.Desc()
	descProtocolErrors = metric.RESPProtocolErrors.Desc()
	descSlow           = metric.RESPSlow.Desc()
)

// Describe says which figures there are.
func (s *Server) Describe(c chan<- *prometheus.Desc) {
	c <- descConnections
	c <- descCommands
	c <- descProtocolErrors
	c <- descSlow
}

// Collect reads them.
func (s *Server) Collect(c chan<- prometheus.Metric) {
	s.mu.Lock()
	open := len(s.conns)
	s.mu.Unlock()
	count := func(d *prometheus.Desc, n int64) {
		c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	c <- prometheus.MustNewConstMetric(descConnections, prometheus.GaugeValue, float64(open))
	count(descCommands, s.commands.Load())
	count(descProtocolErrors, s.protocolErrors.Load())
	count(descSlow, s.slow.Load())
}
