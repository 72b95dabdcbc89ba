//go:build linux

package workload

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/system"
)

// growth does the same with more and more leases: a cycle beside them, and the memory that they take.
// Then the server is killed, and has to be ready again with all of them.
func growth(ctx context.Context, t *Trial) (report.Metrics, error) {
	filling, err := t.dial(ctx, fillers, system.Dialing{TTL: time.Minute})
	if err != nil {
		return nil, err
	}
	cycling, err := t.dial(ctx, t.Size.Clients, system.Dialing{})
	if err != nil {
		return nil, err
	}
	m := report.Metrics{"memory-0": t.resident()}
	have, most := 0, t.Size.Growth[len(t.Size.Growth)-1]
	for _, n := range t.Size.Growth {
		began := time.Now()
		t.Say("acquiring %d leases", n)
		if err := t.fill(ctx, filling, have, n, began.Add(12*time.Hour)); err != nil {
			return nil, err
		}
		speed := float64(n-have) / time.Since(began).Seconds()
		have = n
		sleep(ctx, t.Size.WarmUp)
		m[GrowthKey("memory", n)] = t.resident()
		at, err := t.cycle(ctx, cycling)
		if err != nil {
			return nil, err
		}
		m[GrowthKey("cycles", n)], m[GrowthKey("server", n)] = at["rate"], at["server"]
		if left := float64(most-n) / speed; left > 5*t.Size.Patience.Seconds() {
			t.note = fmt.Sprintf("only up to %d: %d would have taken %.0f s more", n, most, left)
			break
		}
	}
	m["fold"] = m[GrowthKey("cycles", t.Size.Growth[0])] / m[GrowthKey("cycles", have)]
	m["memory"] = m[GrowthKey("memory", have)]
	m["bytes"] = (m["memory"] - m["memory-0"]) * 1e6 / float64(have)
	t.closeClients()
	return m, t.restart(m)
}

// GrowthKey is the key of a figure at a number of leases.
func GrowthKey(what string, n int) string { return what + "-" + strconv.Itoa(n) }

// restart kills the server and measures how long it takes to answer again.
func (t *Trial) restart(m report.Metrics) error {
	t.Say("killing it")
	node := t.Server.Nodes[0]
	node.Kill()
	began := time.Now()
	node.Restart()
	m["ready"] = time.Since(began).Seconds()
	m["restarted"] = t.resident()
	return nil
}

// growthColumns are those of its table.
func growthColumns(s Size) (columns []report.Column) {
	columns = []report.Column{
		{Key: "memory", Title: "MB", Lower: true}, {Key: "bytes", Title: "bytes/lease", Lower: true},
		{Key: "ready", Title: "ready s", Digits: 1, Lower: true}, {Key: "restarted", Title: "MB then", Lower: true},
		{Key: "fold", Title: "times slower", Digits: 2, Lower: true},
	}
	for _, n := range s.Growth {
		columns = append(columns, report.Column{Key: GrowthKey("cycles", n), Title: "cycles/s at " + strconv.Itoa(n)})
	}
	return columns
}
