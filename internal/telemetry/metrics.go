package telemetry

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/metric"
)

// Metrics are the metrics of one server. They belong to it and not to the
// process: two servers in one test count apart.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waits    prometheus.Histogram

	Watches prometheus.Gauge   // watches that are open
	Unsent  prometheus.Gauge   // bytes that are being written to them
	Cut     prometheus.Counter // watches that were too slow
	Waiting prometheus.Gauge   // requests that wait for a resource
	Exports prometheus.Gauge   // exports of the journal that are under way

	LoginsRefused *prometheus.CounterVec // by reason
}

// NewMetrics returns metrics that count nothing yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: metric.Requests.CounterVec(),
		seconds: metric.RequestSeconds.HistogramVec([]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05,
			.1, .25, 1, 5}),
		waits:   metric.WaitSeconds.Histogram([]float64{.001, .01, .1, .5, 1, 5, 15, 60, 300, 1800, 3600, 86400}),
		Watches: metric.Watches.Gauge(),
		Unsent:  metric.WatchUnsent.Gauge(),
		Cut:     metric.WatchesCut.Counter(),
		Exports: metric.Exports.Gauge(),
		Waiting: metric.Waiting.Gauge(),

		LoginsRefused: metric.LoginsRefused.CounterVec(),
	}
	m.registry.MustRegister(
		m.requests, m.seconds, m.waits, m.Watches, m.Unsent, m.Cut, m.Waiting, m.Exports, m.LoginsRefused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Registerer returns where the other parts of a server add their own.
func (m *Metrics) Registerer() prometheus.Registerer { return m.registry }

// Handler answers /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4,
	})
}

// CountBy counts leases, waiters and the like at each scrape, by the Read of an
// engine. It may be called once.
func (m *Metrics) CountBy(read func(context.Context, func(core.View)) error) {
	m.registry.MustRegister(&census{read})
}

// A census counts leases, waiters and the like when somebody asks.
type census struct {
	read func(context.Context, func(core.View)) error
}

var (
	leasesDesc     = metric.Leases.Desc()
	waitersDesc    = metric.Waiters.Desc()
	sessionsDesc   = metric.Sessions.Desc()
	namespacesDesc = metric.Namespaces.Desc()
	resourcesDesc  = metric.Resources.Desc()
	recordsDesc    = metric.Records.Desc()
	alarmsDesc     = metric.Alarms.Desc()
	raisedDesc     = metric.AlarmsRaised.Desc()
	quarantineDesc = metric.Quarantine.Desc()
)

func (c *census) Describe(ch chan<- *prometheus.Desc) {
	ch <- leasesDesc
	ch <- waitersDesc
	ch <- sessionsDesc
	ch <- namespacesDesc
	ch <- resourcesDesc
	ch <- recordsDesc
	ch <- alarmsDesc
	ch <- raisedDesc
	ch <- quarantineDesc
}

// Collect sends nothing when the engine cannot be read: a gap in the graph is
// the truth, a zero would not be.
func (c *census) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var n core.Counts
	var q core.Quarantine
	if err := c.read(ctx, func(v core.View) {
		n = v.Counts()
		q, _ = v.Quarantine()
	}); err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(quarantineDesc, prometheus.GaugeValue, q.Left.Seconds())
	gauge := func(desc *prometheus.Desc, value int) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
	gauge(leasesDesc, n.Leases)
	gauge(waitersDesc, n.Waiters)
	gauge(sessionsDesc, n.Sessions)
	gauge(namespacesDesc, n.Namespaces)
	gauge(resourcesDesc, n.Resources)
	gauge(recordsDesc, n.Records)
	for _, a := range n.Alarms {
		ch <- prometheus.MustNewConstMetric(alarmsDesc, prometheus.GaugeValue, float64(a.Stand), a.Kind.String())
		ch <- prometheus.MustNewConstMetric(raisedDesc, prometheus.CounterValue, float64(a.Raised), a.Kind.String())
	}
}
