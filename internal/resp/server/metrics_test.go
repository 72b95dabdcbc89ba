package server

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestMetrics(t *testing.T) {
	b := newBench(Config{})
	c, bad := b.start(t, t.Context()), b.start(t, t.Context())
	c.send("PING", "HOT 1", "NOPE")
	c.expect("PONG", "*(1)")
	c.read()
	bad.sendBytes("?")
	bad.read()
	bad.expect("EOF")
	<-bad.ended
	registry := prometheus.NewRegistry()
	registry.MustRegister(b)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	for name, want := range map[string]float64{
		"leasehold_resp_connections":           1,
		"leasehold_resp_commands_total":        3,
		"leasehold_resp_protocol_errors_total": 1,
		"leasehold_resp_slow_total":            0,
	} {
		if figure, ok := got[name]; !ok || figure != want {
			t.Errorf("%s is %v, want %v", name, figure, want)
		}
	}
}
