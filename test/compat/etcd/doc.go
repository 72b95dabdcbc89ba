// Package etcd runs programs of etcd's own clients against a Leasehold and against a real etcd, and compares what they
// are answered. What differs is in a list, with the reason.
package etcd
