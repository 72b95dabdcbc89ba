// Package leasehold is the dictionary of the project: the words that every
// other package speaks, and nothing that does anything.
//
// A lease is the right of one holder to a named resource until a moment. The
// server counts that moment; the holder's own deadline is never later. Each
// grant carries a [Token] that is larger than that of every grant before it, so
// that whatever the lease protects can turn away a holder that is late.
//
// One word means one thing here, in flags, in logs and in the documents; see
// docs/glossary.md for the list and for the words of other systems.
package leasehold
