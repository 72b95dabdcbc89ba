// Package metric lists every metric of a server, in names.go: its name, what it
// means and its labels. The parts of a server make their collectors from that list,
// and tests hold docs/operations.md, the alerts and the dashboard to it.
package metric

import (
	"iter"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// A Kind is how a metric moves.
type Kind string

// The kinds of metrics, as Prometheus calls them.
const (
	Gauge     Kind = "gauge"     // up and down
	Counter   Kind = "counter"   // up only, from 0 when the server starts
	Histogram Kind = "histogram" // a counter for each bucket
)

// A Metric is the name of one metric and what it means.
type Metric struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []string
}

// list has every metric. names.go fills it.
var list []Metric

// All returns every metric of a server, in the order of names.go.
func All() iter.Seq[Metric] { return slices.Values(list) }

func add(kind Kind, name, help string, labels []string) Metric {
	m := Metric{"leasehold_" + name, kind, help, labels}
	list = append(list, m)
	return m
}

func gauge(name, help string, labels ...string) Metric     { return add(Gauge, name, help, labels) }
func counter(name, help string, labels ...string) Metric   { return add(Counter, name, help, labels) }
func histogram(name, help string, labels ...string) Metric { return add(Histogram, name, help, labels) }

func (m Metric) opts() prometheus.Opts { return prometheus.Opts{Name: m.Name, Help: m.Help} }

// Desc describes a metric whose collector is written by hand.
func (m Metric) Desc() *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }

// Gauge returns a gauge without labels.
func (m Metric) Gauge() prometheus.Gauge { return prometheus.NewGauge(prometheus.GaugeOpts(m.opts())) }

// GaugeFunc returns a gauge that is read at each scrape. It has values for its labels, in
// their order.
func (m Metric) GaugeFunc(read func() float64, values ...string) prometheus.GaugeFunc {
	opts := m.opts()
	opts.ConstLabels = prometheus.Labels{}
	for i, value := range values {
		opts.ConstLabels[m.Labels[i]] = value
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts), read)
}

// Counter returns a counter without labels.
func (m Metric) Counter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts(m.opts()))
}

// CounterVec returns a counter with its labels.
func (m Metric) CounterVec() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts(m.opts()), m.Labels)
}

// CounterFunc returns a counter that is read at each scrape.
func (m Metric) CounterFunc(read func() float64) prometheus.CounterFunc {
	return prometheus.NewCounterFunc(prometheus.CounterOpts(m.opts()), read)
}

// Histogram returns a histogram without labels.
func (m Metric) Histogram(buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets})
}

// HistogramVec returns a histogram with its labels.
func (m Metric) HistogramVec(buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets}, m.Labels)
}
