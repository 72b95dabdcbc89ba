// Package tui is the terminal user interface of leasehold top: a live table of resources,
// the details of one, and a dialogue that breaks a lease.
//
// A board decides what is shown and what a key means, and does no I/O; a screen connects it
// with a terminal and a server.
package tui
