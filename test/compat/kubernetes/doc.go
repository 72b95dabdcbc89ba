// Package kubernetes asks Leasehold's door for Kubernetes through the clients that people really use: client-go's
// electors and informers, controller-runtime's manager, and kubectl. It is a module of its own, so that nobody who
// uses Leasehold gets those clients with it.
//
// With a kube-apiserver of `make peers` the same programs run against that too, and the answers are compared.
package kubernetes
