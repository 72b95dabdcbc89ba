// Package stage is where a benchmark's servers run: it starts them, watches what they cost, and
// leaves nothing of them behind.
package stage
