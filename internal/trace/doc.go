// Package trace replays two weeks of jobs on a pool of cards, in virtual time and on the real core, once for each way
// to choose a TTL. It measures what the choice costs: how long cards stay blocked by hosts that died, how many renewals
// are sent, how many jobs are cut off, and how far forecasts are off. make trace writes the figures of docs/pools.md.
package trace
