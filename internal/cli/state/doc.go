// Package state has the commands for Terraform states.
package state
