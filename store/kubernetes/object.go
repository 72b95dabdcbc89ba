package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
)

// The keys of labels and annotations.
const (
	labelNamespace = "leasehold/namespace"
	keyResource    = "leasehold/resource"
	keyToken       = "leasehold/token"
	keyLease       = "leasehold/lease"
	keyMarks       = "leasehold/marks"
	keyBroken      = "leasehold/broken"
)

// microTime is how Kubernetes writes the times of a Lease.
const microTime = "2006-01-02T15:04:05.000000Z07:00"

// fields are the parts of an object that this package does not know; they are written back as they are.
type fields map[string]json.RawMessage

// An object is a Lease as the API server has it.
type object struct {
	Meta metadata
	Spec spec

	all, meta, spec fields
}

type metadata struct {
	Name            string            `json:"name"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// spec has what an elector writes. It is comparable: another spec is a sign of life.
type spec struct {
	HolderIdentity       string `json:"holderIdentity"`
	LeaseDurationSeconds int64  `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          string `json:"acquireTime,omitempty"`
	RenewTime            string `json:"renewTime,omitempty"`
	LeaseTransitions     int64  `json:"leaseTransitions"`
}

func (o *object) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &o.all); err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		into  *fields
		known any
	}{{"metadata", &o.meta, &o.Meta}, {"spec", &o.spec, &o.Spec}} {
		raw := o.all[part.name]
		if len(raw) == 0 {
			continue
		}
		if err := json.Unmarshal(raw, part.into); err != nil {
			return err
		}
		if err := json.Unmarshal(raw, part.known); err != nil {
			return err
		}
	}
	return nil
}

func (o *object) MarshalJSON() ([]byte, error) {
	meta, err := overlay(o.meta, o.Meta)
	if err != nil {
		return nil, err
	}
	// The API server keeps those that it has, and they are as large as all the rest.
	delete(meta, "managedFields")
	spec, err := overlay(o.spec, o.Spec)
	if err != nil {
		return nil, err
	}
	return marshalOver(o.all, map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec,
	})
}

// overlay returns the unknown fields with the known ones over them.
func overlay(under fields, known any) (fields, error) {
	text, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(under)
	if all == nil {
		all = fields{}
	}
	return all, json.Unmarshal(text, &all)
}

func marshalOver(under fields, known map[string]any) ([]byte, error) {
	all, err := overlay(under, known)
	if err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// clone returns a copy that can be changed.
func (o *object) clone() *object {
	c := *o
	c.Meta.Labels, c.Meta.Annotations = maps.Clone(o.Meta.Labels), maps.Clone(o.Meta.Annotations)
	return &c
}

// set writes an annotation; an empty one is removed.
func (o *object) set(key, value string) {
	if value == "" {
		delete(o.Meta.Annotations, key)
		return
	}
	if o.Meta.Annotations == nil {
		o.Meta.Annotations = map[string]string{}
	}
	o.Meta.Annotations[key] = value
}

// nextToken returns the token of a grant by a write that is conditioned on this version.
func (o *object) nextToken(floor leasehold.Token) (leasehold.Token, error) {
	version, err := strconv.ParseUint(o.Meta.ResourceVersion, 10, 64)
	if err != nil {
		return 0, refused("the resourceVersion of Lease %s is %q, which is not a number: "+
			"this API server has no fencing tokens", o.Meta.Name, o.Meta.ResourceVersion)
	}
	last, err := strconv.ParseUint(o.Meta.Annotations[keyToken], 10, 64)
	if err != nil {
		last = 0 // nobody was granted it by us
	}
	token := max(leasehold.Token(last)+1, leasehold.Token(version), floor+1)
	if token > leasehold.MaxToken || leasehold.Token(last) >= leasehold.MaxToken || floor >= leasehold.MaxToken {
		return 0, refused("the tokens of Lease %s are used up: the next one would be above %d", o.Meta.Name,
			leasehold.MaxToken)
	}
	return token, nil
}

// nextTime returns the time of a renewal. Each is later than the one before, so that no two look the
// same. If the clock is behind, it is later by a whole second, because electors see no less, and by a bit more,
// because two attempts at a renewal must not look the same either: one of them could be taken for the other.
func (s *spec) nextTime() string {
	now := time.Now().UTC()
	last, err := time.Parse(microTime, s.RenewTime)
	if err == nil && !now.Truncate(time.Microsecond).After(last) && last.Year() < 9999 {
		now = last.UTC().Add(time.Second + rand.N(time.Second/2))
	}
	return now.Format(microTime)
}

func refused(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}
