// Package server has the commands of whoever operates a server: serve, config, check,
// backup, restore, bench, alarms, doctor and version.
package server
