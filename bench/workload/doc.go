// Package workload has what is done to every system under measurement. Each workload is written once,
// for all systems.
package workload
