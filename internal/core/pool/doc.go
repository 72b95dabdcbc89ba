// Package pool keeps the units of pools, and picks those that a lease gets. A pool is a resource whose slots have
// names, labels and hosts: GPUs, phones, licences. Which of them are granted is decided from the units, from what is
// asked for and from those who asked before alone, so that all replicas come to the same.
//
// A Table has the units of a namespace, by host. Values in it are never changed in place: a change of a unit sets
// a copy, and a frozen state goes on with the old one.
//
// A Selector is what a request demands of each unit:
//
//	model=H100, memory>=40, zone in (a, b), host!=node7
//
// A Line decides who gets what. Those who wait are shown to it in their order; for each it says which units it gets
// (Pick) or what is kept for it (Keep). The rules:
//
//   - All or none. Nothing is held for a request that gets a part.
//   - One host, unless the request says that its units may be spread, or names them.
//   - A free unit is for the first in the line that could use it. It is kept even if that one needs more, or small
//     requests would starve large ones.
//   - The first in the line keeps the units of one host and no others: it needs no more than one, and to keep all
//     would leave everything idle until it is served.
//   - Who comes later gets only what nobody before it could use: a job for an H100 does not hold up those for A100s.
//
// What is kept is worked out anew with each look and is part of no state. So it cannot go stale when units come, go or
// are drained, and a server that has just read a snapshot keeps the same.
//
// A look costs at most a pass over all units for each of MaxKept requests; hosts without enough free units are passed
// over, so it is a fraction of that in a pool that is full.
//
//	go test -bench Pool ./internal/core
package pool
