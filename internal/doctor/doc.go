// Package doctor judges whether this machine, the server and its cluster are fit to hold
// leases, and says what to do where they are not. It changes nothing.
//
// Each judge is a function of what was measured, so that tests need no broken clock.
package doctor
