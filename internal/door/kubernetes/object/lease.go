package object

import "maps"

// The names of the one kind that is served.
const (
	Group      = "coordination.k8s.io"
	APIVersion = Group + "/v1"
	Kind       = "Lease"
	Resource   = "leases"
)

// A Lease is the object of Kubernetes, not a lease of ours.
type Lease struct {
	Meta Meta `json:"metadata"`
	Spec Spec `json:"spec"`
}

// Meta is what all objects of Kubernetes have. It has no managedFields: nobody is told who wrote which field.
type Meta struct {
	Name            string            `json:"name,omitempty"`
	GenerateName    string            `json:"generateName,omitempty"`
	Namespace       string            `json:"namespace,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Generation      int64             `json:"generation,omitempty"`
	Created         Time              `json:"creationTimestamp,omitzero"`
	Deleted         Time              `json:"deletionTimestamp,omitzero"`
	GraceSeconds    *int64            `json:"deletionGracePeriodSeconds,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	Owners          []Owner           `json:"ownerReferences,omitempty"`
	Finalizers      []string          `json:"finalizers,omitempty"`
}

// An Owner is an object that another one belongs to.
type Owner struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
	Controller         *bool  `json:"controller,omitempty"`
	BlockOwnerDeletion *bool  `json:"blockOwnerDeletion,omitempty"`
}

// A Spec is what an elector or a kubelet writes.
type Spec struct {
	Holder          *string   `json:"holderIdentity,omitempty"`
	DurationSeconds *int32    `json:"leaseDurationSeconds,omitempty"`
	AcquireTime     MicroTime `json:"acquireTime,omitzero"`
	RenewTime       MicroTime `json:"renewTime,omitzero"`
	Transitions     *int32    `json:"leaseTransitions,omitempty"`
	Strategy        *string   `json:"strategy,omitempty"`
	PreferredHolder *string   `json:"preferredHolder,omitempty"`
}

// HolderName returns who holds the object; empty: nobody.
func (s *Spec) HolderName() string {
	if s.Holder == nil {
		return ""
	}
	return *s.Holder
}

// Clone returns a copy whose labels and annotations can be changed.
func (l *Lease) Clone() *Lease {
	c := *l
	c.Meta.Labels, c.Meta.Annotations = maps.Clone(l.Meta.Labels), maps.Clone(l.Meta.Annotations)
	return &c
}

// Annotate sets an annotation; an empty value takes it away.
func (l *Lease) Annotate(key, value string) {
	if value == "" {
		delete(l.Meta.Annotations, key)
		if len(l.Meta.Annotations) == 0 {
			l.Meta.Annotations = nil
		}
		return
	}
	if l.Meta.Annotations == nil {
		l.Meta.Annotations = map[string]string{}
	}
	l.Meta.Annotations[key] = value
}
