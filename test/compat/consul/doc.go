// Package consul runs programs of Consul's own clients against a Leasehold and against a real Consul, and compares what
// they are answered. What differs is in a list, with the reason.
package consul
