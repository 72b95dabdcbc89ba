package consul

import (
	"path"
	"strings"
	"testing"
)

func FuzzNames(f *testing.F) {
	f.Add("reports/nightly")
	f.Add("//a/../b/./c//")
	f.Add("=2f a\x00日本?#%2e")
	k := newKeys(DefaultPrefix, "default")
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			return
		}
		key := k.lease(name)
		if got, err := k.resource(key); err != nil || got != name {
			t.Errorf("%q came back as %q, %v", name, got, err)
		}
		if clean := path.Clean("/" + key); clean != "/"+strings.TrimSuffix(key, "/") {
			t.Errorf("the key %q of %q would be taken for %q", key, name, clean)
		}
		for i := range name {
			if !strings.HasPrefix(key, k.lease(name[:i])) {
				t.Errorf("%q is a prefix of %q, but not of its key", name[:i], name)
			}
		}
		_, _ = k.resource(name)
	})
}
