package etcd

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestKeysHaveTheOrderOfNames(t *testing.T) {
	names := []string{"a", "a b", "a!", "a#", "a##h", "a$", "a/b", "a/b/c", "ab", "ä", "a\x00", "a\x1f", "日本", "~",
		"a#23"}
	slices.Sort(names)
	k := newKeys("/p/", "n/s")
	if k.root != "/p/n#2fs/" {
		t.Errorf("the root is %s", k.root)
	}
	var keys []string
	for _, name := range names {
		keys = append(keys, k.holder(name))
	}
	if !slices.IsSorted(keys) {
		t.Errorf("the keys are not in the order of the names: %q", keys)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("reports/nightly", "id")
	f.Add("##h", "##w/")
	f.Add("a\x00#2", strings.Repeat("#", 1024))
	k := newKeys(DefaultPrefix, "default")
	f.Fuzz(func(t *testing.T, name, id string) {
		if got, waiter, err := k.parse(k.holder(name)); err != nil || got != name || waiter != "" {
			t.Errorf("%q came back as %q, %q, %v", name, got, waiter, err)
		}
		if id == "" {
			return
		}
		if got, waiter, err := k.parse(k.waiter(name, id)); err != nil || got != name || waiter != id {
			t.Errorf("%q, %q came back as %q, %q, %v", name, id, got, waiter, err)
		}
		if utf8.ValidString(name) && !utf8.ValidString(k.holder(name)) {
			t.Errorf("the key of %q cannot be shown", name)
		}
		_, _, _ = k.parse(name)
	})
}
