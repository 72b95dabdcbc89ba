package telemetry

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasehold/leasehold/internal/core"
)

// Metrics are the numbers of one server. They belong to it and not to the
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
}

// NewMetrics returns metrics that count nothing yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasehold_requests_total", Help: "Requests answered, by door, verb and code (ok, or why not).",
		}, []string{"door", "verb", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "leasehold_request_seconds", Help: "Time from a request to its answer, without those that waited for a resource.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"verb"}),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leasehold_wait_seconds", Help: "Time that requests waited for a resource, granted or not.",
			Buckets: []float64{.001, .01, .1, .5, 1, 5, 15, 60, 300, 1800, 3600, 86400},
		}),
		Watches: prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_watches", Help: "Watches that are open."}),
		Unsent:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_watch_unsent_bytes", Help: "Bytes of events on their way to readers that have not taken them yet."}),
		Cut:     prometheus.NewCounter(prometheus.CounterOpts{Name: "leasehold_watches_cut_total", Help: "Watches that were cut off because the reader was too slow."}),
		Exports: prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_exports", Help: "Exports of the journal that are under way."}),
		Waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_waiting_requests", Help: "Requests held open until a resource is free."}),
	}
	m.registry.MustRegister(
		m.requests, m.seconds, m.waits, m.Watches, m.Unsent, m.Cut, m.Waiting, m.Exports,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Registerer is where the other parts of a server add their own.
func (m *Metrics) Registerer() prometheus.Registerer { return m.registry }

// Handler answers /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4,
	})
}

// CountBy has what there is counted at each scrape, by the Read of an engine. It
// may be called once.
func (m *Metrics) CountBy(read func(context.Context, func(core.View)) error) {
	m.registry.MustRegister(&census{read})
}

// A census counts leases, waiters and the like when somebody asks.
type census struct {
	read func(context.Context, func(core.View)) error
}

var (
	leasesDesc     = prometheus.NewDesc("leasehold_leases", "Leases that are held.", nil, nil)
	waitersDesc    = prometheus.NewDesc("leasehold_waiters", "Waiters in all queues.", nil, nil)
	sessionsDesc   = prometheus.NewDesc("leasehold_sessions", "Sessions that are open.", nil, nil)
	namespacesDesc = prometheus.NewDesc("leasehold_namespaces", "Namespaces that were ever used.", nil, nil)
	resourcesDesc  = prometheus.NewDesc("leasehold_resources", "Resources that something is remembered of.", nil, nil)
	recordsDesc    = prometheus.NewDesc("leasehold_records", "Records that are kept.", nil, nil)
	alarmsDesc     = prometheus.NewDesc("leasehold_alarms", "Alarms that stand.", []string{"kind"}, nil)
	raisedDesc     = prometheus.NewDesc("leasehold_alarms_total", "How often there was reason for an alarm, since the first entry of the log.", []string{"kind"}, nil)
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
}

// Collect sends nothing when the engine can not be read: a gap in the graph is
// the truth, a zero would not be.
func (c *census) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var n core.Counts
	if err := c.read(ctx, func(v core.View) { n = v.Counts() }); err != nil {
		return
	}
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
