// Package demo plays a scenario on a server, so that somebody who looks for the first time sees it alive: CI jobs, a
// fight for one deployment slot, Terraform states, GPU jobs in a pool, agents on the same code, a leader that changes,
// and a job that dies and leaves its lease behind.
//
// Its actors are clients like any other. Nothing that they do is faked: the times, the history and the alarms are
// those of the server, and begin when the demo does.
package demo
