// Package run has the commands run and elect: they run another program while something is
// held, and stop it before the lease ends.
package run
