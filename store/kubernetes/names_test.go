package kubernetes

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
)

func TestNames(t *testing.T) {
	for name, plain := range map[string]bool{
		"a": true, "my-controller": true, "a.b": true, "0": true, strings.Repeat("x", 253): true,
		"": false, "A": false, "a/b": false, "a_b": false, "-a": false, "a-": false, "a..b": false, ".a": false,
		"ä": false, "a b": false, "a\n": false, strings.Repeat("x", 254): false,
	} {
		got := objectName(leasehold.DefaultNamespace, name)
		if (got == name) != plain {
			t.Errorf("%q is kept as %q", name, got)
		}
		if other := objectName("other", name); other == got || other == name {
			t.Errorf("%q has the same Lease %q in two namespaces", name, other)
		}
	}
	for name, begin := range map[string]string{
		"reports/nightly": "reports-nightly--", "Ä/ö": "x--", "A  B": "a-b--",
		strings.Repeat("long ", 30): "long-long-long-long-long-long--",
	} {
		if got := objectName(leasehold.DefaultNamespace, name); !strings.HasPrefix(got, begin) {
			t.Errorf("%q is %q, want one that begins with %q", name, got, begin)
		}
	}
	if got := labelOf(strings.Repeat("n", 64)); len(got) > maxLabel {
		t.Errorf("the label %q has %d bytes", got, len(got))
	}
}

// Whatever the name: Kubernetes allows that of its Lease, and nobody can choose a name that is another
// one's Lease.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"a", "A", "a/b", "reports-nightly--0123456789abcdefghijklmnop", "\x00", "日本語", "a--b",
	} {
		f.Add("default", name)
		f.Add("team/a", name)
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		got := objectName(namespace, name)
		if len(got) > maxName || !plain.MatchString(got) {
			t.Fatalf("%q in %q is %q, which Kubernetes does not allow", name, namespace, got)
		}
		if got != name && objectName("default", got) == got {
			t.Errorf("%q in %q has the Lease %q, and so has %q", name, namespace, got, got)
		}
		if label := labelOf(namespace); len(label) > maxLabel || !plain.MatchString(label) {
			t.Errorf("namespace %q is the label %q, which Kubernetes does not allow", namespace, label)
		}
	})
}

// What others wrote into a Lease does no harm, and comes back as it was.
func FuzzObject(f *testing.F) {
	f.Add(`{"metadata":{"name":"a","finalizers":["x"],"annotations":{"b":"c","leasehold/marks":"x ",` +
		`"leasehold/lease":"{"}},"spec":{"holderIdentity":null,"strategy":"OldestEmulationVersion"},"status":1}`)
	f.Add(`{"metadata":{"annotations":{"leasehold/marks":"12345678rzz 12345678t-1",` +
		`"leasehold/lease":"{\"id\":\"a\"}"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var o object
		if o.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		_ = o.current()
		_ = o.ending("a")
		next := o.clone()
		next.mark("a", wasReleased, testTime)
		if e := next.ending("a"); e == nil {
			t.Error("an id that was marked is not known")
		}
		written, err := next.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again object
		if err := again.UnmarshalJSON(written); err != nil {
			t.Fatalf("%s cannot be read: %v", written, err)
		}
		if again.Spec != o.Spec || len(again.all["status"]) == 0 != (len(o.all["status"]) == 0) {
			t.Errorf("%s was written as %s", text, written)
		}
	})
}
