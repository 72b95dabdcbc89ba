package kubernetes

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	v1 "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// samples are Leases with all fields and with none.
func samples() []*v1.Lease {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	strategy := v1.OldestEmulationVersion
	return []*v1.Lease{
		{},
		{ObjectMeta: meta.ObjectMeta{Name: "op", Namespace: "ns"}, Spec: v1.LeaseSpec{HolderIdentity: new("")}},
		{
			ObjectMeta: meta.ObjectMeta{
				Name: "op", GenerateName: "o", Namespace: "ns", UID: types.UID("u-1"), ResourceVersion: "12", Generation: 3,
				CreationTimestamp: meta.NewTime(at.Truncate(time.Second)), DeletionTimestamp: new(meta.NewTime(at.Truncate(time.Second))),
				DeletionGracePeriodSeconds: new(int64(0)),
				Labels:                     map[string]string{"a": "1", "b": ""}, Annotations: map[string]string{"k": "v é", "": "empty"},
				OwnerReferences: []meta.OwnerReference{
					{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u-2", Controller: new(true), BlockOwnerDeletion: new(false)}, {}},
				Finalizers: []string{"x/y", "z"},
			},
			Spec: v1.LeaseSpec{
				HolderIdentity: new("ann"), LeaseDurationSeconds: new(int32(15)), AcquireTime: new(meta.NewMicroTime(at)),
				RenewTime: new(meta.NewMicroTime(at.Add(-50 * 365 * 24 * time.Hour * 2))), LeaseTransitions: new(int32(-7)), Strategy: &strategy,
				PreferredHolder: new("bob"),
			},
		},
	}
}

// Our own codec reads and writes what k8s.io/api does, in protobuf and in JSON.
func TestCodecIsThatOfKubernetes(t *testing.T) {
	for i, theirs := range samples() {
		theirBytes, err := theirs.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var ours object.Lease
		if err := ours.Unmarshal(theirBytes); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		var back v1.Lease
		if err := back.Unmarshal(ours.Marshal()); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		same(t, i, "protobuf", theirs, &back)

		theirText, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		tree, _, err := object.ParseTree(theirText)
		if err != nil {
			t.Fatal(err)
		}
		read, unknown, err := object.FromTree(tree)
		if err != nil || len(unknown) > 0 {
			t.Fatalf("%d: %v, unknown: %v", i, err, unknown)
		}
		if !bytes.Equal(read.Marshal(), ours.Marshal()) {
			t.Errorf("%d: JSON and protobuf say different things:\n%+v\n%+v", i, read, ours)
		}
		ourText, err := ours.JSON()
		if err != nil {
			t.Fatal(err)
		}
		back = v1.Lease{}
		if err := json.Unmarshal(ourText, &back); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		back.TypeMeta = meta.TypeMeta{}
		same(t, i, "JSON", theirs, &back)
	}
}

func same(t *testing.T, i int, how string, want, got *v1.Lease) {
	t.Helper()
	a, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%d by %s:\ngot  %s\nwant %s", i, how, b, a)
	}
}
