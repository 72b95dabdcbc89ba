// Package client holds leases.
package client
