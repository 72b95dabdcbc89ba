// Package journal has the commands that read the journal: audit and holds.
package journal
