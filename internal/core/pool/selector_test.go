package pool_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

var card = &pool.Unit{Host: "node1", Name: "GPU-1", Labels: leasehold.Labels{
	{Key: "memory", Value: "80"}, {Key: "model", Value: "H100"}, {Key: "name", Value: "NVIDIA H100 80GB"},
}}

func TestSelectorMatches(t *testing.T) {
	for text, want := range map[string]bool{
		"":                              true,
		"model=H100":                    true,
		" model == H100 ":               true,
		"model=A100":                    false,
		"model!=A100":                   true,
		"model!=H100":                   false,
		"zone!=a":                       true, // it has no such label
		"zone=a":                        false,
		"model in (A100, H100)":         true,
		"model in(A100)":                false,
		"memory>=80":                    true,
		"memory>80":                     false,
		"memory<80.5, memory<=80":       true,
		"model>1":                       false, // that is no number
		"host=node1, unit=GPU-1":        true,
		`name="NVIDIA H100 80GB"`:       true,
		"model=H100, memory>=40, zone=": false,
	} {
		s, err := pool.ParseSelector(text)
		if text == "model=H100, memory>=40, zone=" {
			if err == nil {
				t.Errorf("%q was read", text)
			}
			continue
		}
		if err != nil || s.Matches(card) != want {
			t.Errorf("%q: %v, %v, want %v", text, s.Matches(card), err, want)
		}
	}
}

func TestSelectorsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"model":                           "is no condition",
		"=H100":                           "the name of a label is missing",
		"model=H100 memory=80":            "put a comma between",
		"model in (A100":                  "ends without )",
		"memory>=much":                    "no number",
		"memory>=NaN":                     "no number",
		`name="NVIDIA`:                    "without a double quote",
		strings.Repeat("a=b,", 8) + "a=b": "more than 8 conditions",
		strings.Repeat("a", 1025):         "at most 1024",
		"a in (" + strings.Repeat("b,", 64) + "b)": "more than 64 values",
	} {
		if _, err := pool.ParseSelector(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzSelector reads any text, and what it writes again means the same and is written the same.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{"model=H100", "a!=b, c in (d, e), f>=4", `"a b"="c ""d"""`, "in in (in)", "x<1,y<=2,z>3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := pool.ParseSelector(text)
		if err != nil {
			return
		}
		again, err := pool.ParseSelector(s.String())
		if err != nil && len(s.String()) <= leasehold.MaxSelector {
			t.Fatalf("%q was written as %q, which cannot be read: %v", text, s, err)
		}
		if err == nil && (again.String() != s.String() || again.Matches(card) != s.Matches(card)) {
			t.Fatalf("%q was written as %q, and then as %q", text, s, again)
		}
	})
}
