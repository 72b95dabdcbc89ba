package azblob

import (
	"strings"
	"testing"
)

func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"reports/nightly", "..", "a.", "=2f", "\x00\x7f", "日本", strings.Repeat("/", 1024),
	} {
		f.Add(name)
	}
	n := newNames("/app/", "default")
	f.Fuzz(func(t *testing.T, name string) {
		if back, err := unescaped(escaped(name)); err != nil || back != name {
			t.Errorf("%q came back as %q, %v", name, back, err)
		}
		if fromHeader(*toHeader(name)) != name {
			t.Errorf("%q did not come back from a header", name)
		}
		blob := n.resource(name)
		if len(blob) > 1000 || strings.HasSuffix(blob, ".") || !strings.HasPrefix(blob, "app/default/l/") {
			t.Errorf("%q is the blob %q", name, blob)
		}
		if back := (&Store{names: n}).nameOf(blob, map[string]*string{"Lease_Name": toHeader(name)}); back != name {
			t.Errorf("%q is listed as %q", name, back)
		}
		_, _ = unescaped(name)
	})
}

func TestLeaseIDsAreUUIDs(t *testing.T) {
	if id := leaseID("a"); len(id) != 36 || strings.Count(id, "-") != 4 || id == leaseID("b") {
		t.Errorf("the id is %s", id)
	}
}
