// Package server has the commands of an operator: serve, config, check,
// backup, restore, bench, alarms, doctor and version.
package server
