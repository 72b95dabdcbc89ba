package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/api/v1"
)

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"src/auth/login.go", "src/auth/login.go", true},
		{"src/auth/login.go", "src/auth/login.go.orig", false},
		{"src/auth", "src/auth/login.go", true},
		{"src/auth/", "src/auth/deep/login.go", true},
		{"src/auth", "src/authors.go", false},
		{"src/**", "src/a/b/c.go", true},
		{"src/**/c.go", "src/c.go", true},
		{"src/**/c.go", "src/a/b/c.go", true},
		{"src/**/c.go", "src/a/b/d.go", false},
		{"**/*_test.go", "a/b/x_test.go", true},
		{"**/*_test.go", "a/b/x.go", false},
		{"*.md", "README.md", true},
		{"*.md", "docs/README.md", false},
		{"**", "anything/at/all", true},
		{"", "anything", true},
		{"a/**/b/**/c", "a/x/b/y/b/z/c", true},
		{"app/[id].tsx", "app/[id].tsx", true},
		{"app/[id].tsx", "app/i.tsx", false},
		{"src/auth/login.go", "src", false},
		{"src/*", "src/a.go", true},
		{"src/*", "src/a/b.go", false},
		{"**/a", "x/a/b/a", true},
		{"**/a", "x/a/b", false},
		{"src//a.go", "src//a.go", true}, // on a store that allows it
		{"src//a.go", "src/a.go", false},
	} {
		if got := covers("repo/web:"+c.pattern, "repo/web:", c.file); got != c.want {
			t.Errorf("a lease on %q covers %q: %v", c.pattern, c.file, got)
		}
	}
}

// Whose leases are in the way, and whose are not.
func TestConflicts(t *testing.T) {
	mine := func(holder string) bool { return holder == "me" }
	held := func(resource, holder string) v1.Resource {
		return v1.Resource{Resource: resource, State: "leased", Holders: []v1.Lease{{Holder: holder, Reason: "work"}}}
	}
	ended := func(resource, holder, state string) v1.Resource {
		return v1.Resource{Resource: resource, State: state, Last: &v1.Ending{Holder: holder, How: "expired"}}
	}
	for _, c := range []struct {
		resource v1.Resource
		found    bool
		lost     bool
	}{
		{held("repo/web:src", "other"), true, false},
		{held("repo/web:src", "me"), false, false},
		{held("repo/web:docs", "other"), false, false},
		{ended("repo/web:src/a.go", "me", "expired"), true, true},
		{ended("repo/web:src/a.go", "me", "broken"), true, true},
		{ended("repo/web:src/a.go", "other", "expired"), false, false},
		{ended("repo/web:src/a.go", "me", "available"), false, false},
	} {
		got := conflicts([]v1.Resource{c.resource}, "repo/web:", []string{"src/a.go"}, mine)
		if (len(got) == 1) != c.found || c.found && got[0].lost != c.lost {
			t.Errorf("%+v is answered %+v", c.resource, got)
		}
	}
}

// What else is in a file stays, in its order; a second time changes nothing.
func TestSettingJSON(t *testing.T) {
	for before, want := range map[string]string{
		"":   `{"mcpServers":{"leasehold":1}}`,
		"{}": `{"mcpServers":{"leasehold":1}}`,
		`{"z":1,"mcpServers":{"other":{"b":[1,2.50]}},"a":"\u00e4"}`: `{"z":1,"mcpServers":{"other":{"b":[1,2.50]},"leasehold":1},"a":"\u00e4"}`,
		`{"mcpServers":{"leasehold":0,"other":2}}`:                   `{"mcpServers":{"leasehold":1,"other":2}}`,
	} {
		got, err := inJSON(before, json.RawMessage("1"), "mcpServers", "leasehold")
		if compact := strings.NewReplacer(" ", "", "\n", "").Replace(got); err != nil || compact != want {
			t.Errorf("%s becomes %s, %v; want %s", before, compact, err, want)
		}
		if again, err := inJSON(got, json.RawMessage("1"), "mcpServers", "leasehold"); err != nil || again != got {
			t.Errorf("a second time %s becomes %s, %v", got, again, err)
		}
	}
	for _, bad := range []string{"// a comment\n{}", "[]", `{"mcpServers":[]}`, "{"} {
		if got, err := inJSON(bad, json.RawMessage("1"), "mcpServers", "leasehold"); err == nil {
			t.Errorf("%s becomes %s", bad, got)
		}
	}
}

func FuzzSettingJSON(f *testing.F) {
	f.Add(`{"mcpServers":{"other":{}},"mcpServers":3}`)
	f.Add(`{"a":{"b":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := inJSON(text, json.RawMessage(`{"command":"x"}`), "mcpServers", "leasehold")
		if err != nil {
			return
		}
		again, err := inJSON(got, json.RawMessage(`{"command":"x"}`), "mcpServers", "leasehold")
		if err != nil || again != got {
			t.Errorf("%q becomes %q, and then %q, %v", text, got, again, err)
		}
	})
}

// The section of a file is replaced, and what is around it stays.
func TestPrimed(t *testing.T) {
	if n := strings.Count(primer, "\n"); n > 10 {
		t.Errorf("the primer has %d lines", n)
	}
	for _, before := range []string{"", "# Notes\n", "# Notes", "a\n" + primerBegins + "\nformer\n" + primerEnds + "\nb\n"} {
		once := primed(before)
		if !strings.Contains(once, primer) || strings.Contains(once, "former") || primed(once) != once {
			t.Errorf("%q becomes %q", before, once)
		}
		if strings.HasPrefix(before, "a\n") && (!strings.HasPrefix(once, "a\n<!--") || !strings.HasSuffix(once, "-->\nb\n")) {
			t.Errorf("what is around it becomes %q", once)
		}
	}
}

func TestParentIn(t *testing.T) {
	for stat, want := range map[string]int{
		"12 (sh) S 7 12 12": 7, "12 (a) b) (c) R 9 1": 9, "": 0, "12": 0, "12 (x": 0,
	} {
		if got := parentIn(stat); got != want {
			t.Errorf("the parent in %q is %d, want %d", stat, got, want)
		}
	}
}
