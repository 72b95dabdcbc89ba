//go:build linux

package workload

import (
	"fmt"

	"github.com/leasehold/leasehold/bench/report"
)

// The systems of most workloads: each kind of server once, and our other wire.
var usual = []string{"leasehold", "leasehold-http", "redis", "etcd", "zookeeper", "consul", "postgres"}

// rates are the columns of a workload that is done as often as possible.
func rates(what string, more ...report.Column) []report.Column {
	return append([]report.Column{
		{Key: "rate", Title: what + "/s"}, {Key: "p50", Title: "p50 ms", Digits: 2, Lower: true},
		{Key: "p99", Title: "p99 ms", Digits: 2, Lower: true}, {Key: "server", Title: "server µs", Lower: true},
		{Key: "client", Title: "client µs", Lower: true},
		{Key: "allocs", Title: "server allocs", Digits: 1, Lower: true},
	}, more...)
}

// late are the columns of a workload in which something should not take long.
var late = []report.Column{
	{Key: "p50", Title: "p50 ms", Digits: 1, Lower: true}, {Key: "p99", Title: "p99 ms", Digits: 1, Lower: true},
	{Key: "max", Title: "longest ms", Digits: 1, Lower: true},
}

// What renews by sessions, and its columns.
var (
	sessionful = []string{"leasehold", "leasehold-http", "etcd", "zookeeper"}
	bySession  = append([]report.Column{{Key: "leases", Title: "leases/s"}}, rates("sessions")...)
)

// title makes a title with numbers from the size.
func title(format string, of ...func(Size) int) func(Size) string {
	return func(s Size) string {
		var args []any
		for _, f := range of {
			args = append(args, f(s))
		}
		return fmt.Sprintf(format, args...)
	}
}

// How many there are of something.
func one(Size) int        { return 1 }
func ten(Size) int        { return 10 }
func clients(s Size) int  { return s.Clients }
func many(s Size) int     { return s.Many }
func group(s Size) int    { return s.Group }
func takers(s Size) int   { return s.Takers }
func dead(s Size) int     { return s.Dead }
func ending(s Size) int   { return s.Storm }
func largest(s Size) int  { return s.Growth[len(s.Growth)-1] }
func waiting(s Size) int  { return s.Waiters }
func watchers(s Size) int { return s.Watchers }
func events(s Size) int   { return s.Events }
func beats(s Size) int    { return s.Beats }
func live(s Size) int     { return s.Sessions }
func keepers(s Size) int  { return s.Keepers }

// All are the workloads, in the order in which they are run and shown.
var All = []Workload{
	{
		Name: "cycle-1", Title: title("acquire and release, one client"), Nodes: []int{1},
		Systems: append(usual, "leasehold-consul", "etcd-own"), Columns: rates("cycles"), run: cycles(one),
	}, {
		Name: "cycle-64", Title: title("acquire and release, %d clients with a connection each", clients),
		Nodes: []int{1, 3}, Columns: rates("cycles"), run: cycles(clients),
		Systems: append(usual, "leasehold-etcd", "leasehold-consul", "rueidis", "etcd-own", "etcd-raw"),
	}, {
		Name: "cycle-512", Title: title("acquire and release, %d clients with a connection each", many),
		Nodes: []int{1}, Systems: usual, Columns: rates("cycles"), run: cycles(many),
	}, {
		Name: "cycle-shared", Title: title("acquire and release, %d goroutines on one client", clients),
		Nodes: []int{1}, Systems: append(usual, "leasehold-etcd", "rueidis", "etcd-own"), Columns: rates("cycles"),
		run: sharedCycles,
	}, {
		Name: "renew-64", Title: title("renew, %d clients with a connection each", clients),
		Nodes: []int{1, 3}, Columns: rates("renewals"), run: renewals,
		Systems: append(usual, "leasehold-etcd", "leasehold-etcd-stream", "etcd-stream", "leasehold-consul",
			"leasehold-kubernetes", "kubernetes", "rueidis"),
	}, {
		Name: "renew-shared", Title: title("renew, %d goroutines on one client", clients),
		Nodes: []int{1}, Systems: append(usual, "leasehold-etcd", "rueidis"), Columns: rates("renewals"),
		run: sharedRenewals,
	}, {
		Name: "heartbeats", Title: title("%d heartbeats a second of nodes, by %d clients", beats, clients),
		Nodes: []int{1, 3}, Systems: []string{"leasehold-kubernetes", "kubernetes"}, run: heartbeats,
		Columns: append(rates("heartbeats"), late[2]),
	}, {
		Name:  "renew-session",
		Title: title("renew by sessions of %d leases, %d clients with a connection each", group, clients),
		Nodes: []int{1}, Systems: sessionful, run: groupRenewals(group), Columns: bySession,
	}, {
		Name:  "renew-session-10",
		Title: title("renew by sessions of %d leases, %d clients with a connection each", ten, clients),
		Nodes: []int{1}, Systems: sessionful, run: groupRenewals(ten), Columns: bySession,
	}, {
		Name: "handover", Title: title("hand over among %d, who ask again at once", takers),
		Nodes: []int{1, 3}, run: handOvers,
		Systems: append(usual, "leasehold-etcd", "leasehold-consul", "rueidislock", "etcd-own"),
		Columns: rates("hand-overs",
			report.Column{Key: "least", Title: "least"}, report.Column{Key: "most", Title: "most"}),
	}, {
		Name: "takeover", Title: title("take over %d leases of a holder that was killed: how late", dead),
		Nodes: []int{1}, Fresh: true, Systems: []string{"leasehold", "redis", "etcd-own", "zookeeper", "consul"},
		Columns: late, run: takeOvers,
	}, {
		Name: "storm", Title: title("%d leases end in the same second; others renew meanwhile", ending),
		Nodes: []int{1}, Fresh: true, Systems: []string{"leasehold", "leasehold-etcd", "redis", "etcd"}, run: storm,
		Columns: append([]report.Column{{Key: "late", Title: "the last is late ms", Lower: true}}, late...),
	}, {
		Name: "growth", Title: title("memory, speed and restart with up to %d leases", largest),
		Nodes: []int{1}, Fresh: true, run: growth,
		Systems: []string{"leasehold", "redis", "etcd"},
	}, {
		Name: "waiters", Title: title("%d wait in one queue", waiting), Nodes: []int{1}, Fresh: true,
		Systems: []string{"leasehold", "redis", "etcd-own", "zookeeper"}, run: waiters,
		Columns: []report.Column{
			{Key: "rate", Title: "hand-overs/s"}, {Key: "p50", Title: "gap p50 ms", Digits: 2, Lower: true},
			{Key: "p99", Title: "p99 ms", Digits: 2, Lower: true},
			{Key: "queued", Title: "queued in s", Digits: 1, Lower: true}, {Key: "memory", Title: "MB", Lower: true},
		},
	}, {
		Name: "watch", Title: title("%d watchers of %d events/s", watchers, events), Nodes: []int{1}, Fresh: true,
		Systems: []string{"leasehold", "redis", "etcd"}, run: watches,
		Columns: append(late[:3:3],
			report.Column{Key: "rate", Title: "deliveries/s"}, report.Column{Key: "lost", Title: "lost"},
			report.Column{Key: "server", Title: "server µs"}, report.Column{Key: "client", Title: "client µs"}),
	}, {
		Name: "sessions", Title: title("%d live sessions by %d clients", live, keepers), Nodes: []int{1}, Fresh: true,
		Systems: []string{"leasehold", "redis", "etcd"}, run: sessions,
		Columns: []report.Column{
			{Key: "server", Title: "server cores", Digits: 2, Lower: true},
			{Key: "client", Title: "client cores", Digits: 2, Lower: true}, {Key: "lost", Title: "lost", Lower: true},
			{Key: "opened", Title: "opened in s", Digits: 1, Lower: true}, {Key: "memory", Title: "MB", Lower: true},
			{Key: "connections", Title: "connections", Lower: true},
		},
	}, {
		Name: "failover", Title: title("the leader is killed: how long %d clients have no success", clients),
		Nodes: []int{3}, Fresh: true, Systems: []string{"leasehold", "etcd", "zookeeper", "consul"},
		run: failover, Columns: []report.Column{
			{Key: "p50", Title: "p50 ms", Lower: true}, {Key: "max", Title: "longest ms", Lower: true},
			{Key: "before", Title: "cycles/s before"}, {Key: "after", Title: "after"},
		},
	},
}
