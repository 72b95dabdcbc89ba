// Package kubernetes is the door for clients of Kubernetes' Lease API (coordination.k8s.io/v1): leader election of
// client-go and controller-runtime, kubelets' heartbeats, informers and kubectl, none of which has to be changed.
//
// The Lease NAME of the Kubernetes namespace NS is the record kubernetes/NS/NAME, whose value is the object as
// kube-apiserver keeps it in etcd. While it has a holder, the record is linked to a lease of ours on the resource of
// the same path: a PUT that renews the object renews the lease in one command, and when the lease ends by time or by a
// break, the record says so at a new revision, and the object shows no holder. resourceVersion is the revision that
// changed the record last.
//
// A request goes through the files in one direction: door.go reads it, operations.go finds what is asked, body.go and
// negotiate.go read what is sent and what is wanted, write.go, patch.go and delete.go let the engine decide, list.go
// and watch.go show, translate.go turns records into objects and back, and errors.go tells what went wrong as
// Kubernetes does. Package object knows the objects.
//
// Kubernetes has no clock in its server: an elector watches a Lease for its whole duration before it takes over, and
// the first writer wins. What this door adds is said in docs/doors/kubernetes.md for users.
package kubernetes
