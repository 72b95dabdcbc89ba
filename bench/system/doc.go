// Package system has what a benchmark measures: real servers, each with the client library that its
// users use. A [System] is one such pair. All of them are driven through the same few interfaces, so
// that a workload is written once.
package system
