// Package profile keeps what a person's commands know of servers: contexts, which name servers and what belongs to
// them, and credentials, which prove who the person is.
//
// Both are files in the person's configuration directory that nobody else can read. A credential is kept with the
// servers that it was made for, and is shown to no other: an address on the command line cannot take it elsewhere.
//
// In another directory the person's agents meet, and find the server that they share.
package profile
