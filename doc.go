// Package leasehold has the words of the project: the types that every other package uses. It
// does nothing itself.
//
// A lease is the right of one holder to a named resource until a moment. The server decides that
// moment; the holder's own deadline is never later. Each grant carries a [Token] that is larger
// than that of every grant before it, so that whatever the lease protects can refuse a late
// holder.
//
// One word means one thing here, in flags, in logs and in the documents; docs/glossary.md lists
// them, beside the words of other systems.
package leasehold
