// Package tfstate knows the states of Terraform and OpenTofu: what they are called, what
// a state says of itself, what a client says of a lock, and how to ask a server for either.
//
// The door that serves them and the command line that asks it both import this package;
// neither imports the other.
package tfstate
