// Package terraform is the door of the http backend of Terraform and OpenTofu, in
// its own dialect and in those of GitLab, Gitea and others that serve the same clients.
//
// A state S is the record terraform/S, and its lock is a lease on the resource
// terraform/S. The bytes of a state are kept as they came; its serial and lineage are
// read from them each time, so that there is nothing beside them that could differ.
//
// A request goes through the files in one direction: door.go reads it, operations.go finds
// what is asked, translate.go makes commands of it, lock.go, unlock.go and state.go let the
// engine decide, and errors.go or lockinfo.go writes the answer. Each decision is one command
// that names what was read before it; if something else is there by then, the door reads
// again.
//
// The client does not renew, keeps sending a request whose answer was lost, and frees a
// lock without naming it if somebody forces it to. What follows from that is said where it
// is done, and in docs/doors/terraform.md for users.
package terraform
