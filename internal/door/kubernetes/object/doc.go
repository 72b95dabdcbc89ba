// Package object is the objects of Kubernetes that its door serves: what a Lease is, how it is written in JSON and in
// Kubernetes' protobuf, what makes one invalid, how patches change it and how selectors pick it. It knows nothing of
// leases of ours.
//
// The fields are those of k8s.io/api, kept by hand: that module costs every build of the server fifteen seconds. The
// tests of test/compat/kubernetes compare both.
package object
