// Package telemetry is what an operator sees of a running server: the numbers
// under /metrics and the lines of its log.
//
// Nothing here has a label, or a line at the ordinary level, for each resource or
// each request: what it costs to be watched does not grow with the load.
package telemetry
