// Package child runs a command for as long as a lease lasts, and never longer.
//
// The command is a process group of its own, so that all of it can be ended: a shell that dies
// while what it started goes on is how such wrappers usually fail. A group is told to stop
// (SIGTERM) some time before the lease ends and is dead (SIGKILL) when it ends, by the holder's own
// clock. After a pause of the whole machine, the lease is the first thing that is checked.
package child
