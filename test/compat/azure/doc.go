// Package azure asks Leasehold's doors through the clients that people really use: the
// Azure SDK, and Terraform itself. It is a module of its own, so that nobody who uses
// Leasehold gets those clients with it.
//
// What a machine lacks is left out, and the reason is told. -full takes everything, and
// some minutes.
package azure
