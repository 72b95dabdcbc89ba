//go:build linux

package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/bench/system"
)

// sessions keeps very many sessions alive for a while, by few clients, and counts how many are lost.
func sessions(ctx context.Context, t *Trial) (report.Metrics, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients, err := t.dial(ctx, t.Size.Keepers, system.Dialing{TTL: t.Size.KeepTTL})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	lost := make([]func() int, len(clients))
	err = atOnce(len(clients), len(clients), func(i int) error {
		able, err := as[system.Keeper](clients[i])
		if err == nil {
			lost[i], err = able.Keep(ctx, t.Size.Sessions/len(clients), t.Size.KeepTTL)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	m := report.Metrics{"opened": time.Since(began).Seconds(), "connections": float64(connections(t.Server))}
	t.Say("%d sessions are open", t.Size.Sessions)
	cpu, own, from := stage.CPU(t.Server.Pids()), stage.OwnCPU(), time.Now()
	sleep(ctx, t.Size.KeepFor)
	took := time.Since(from).Seconds()
	m["server"] = (stage.CPU(t.Server.Pids()) - cpu).Seconds() / took
	m["client"] = (stage.OwnCPU() - own).Seconds() / took
	m["memory"] = t.resident()
	// Renewals may have connections of their own, which are made for the first of them.
	m["connections"] = max(m["connections"], float64(connections(t.Server)))
	for _, count := range lost {
		m["lost"] += float64(count())
	}
	if m["connections"] > 1000 {
		t.note = fmt.Sprintf("it has %v connections", m["connections"])
	}
	return m, nil
}

// connections returns how many connections a server has.
func connections(s *system.Server) (n int) {
	for _, node := range s.Nodes {
		n += stage.Connections(node.Address)
	}
	return n
}
