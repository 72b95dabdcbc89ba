package filter

import (
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

func readFilter(raw string) (core.Filter, error) {
	query, err := door.ReadQuery(raw, strings.Fields(Params)...)
	if err != nil {
		return core.Filter{}, err
	}
	return Read(query)
}

func TestFilterGrammar(t *testing.T) {
	f, err := readFilter("holder=ci%40*&label=team%3Dml&label=host&state=breaking&door=native&session=s*")
	if err != nil {
		t.Fatal(err)
	}
	if !f.Holder.Match("ci@build-7") || f.Holder.Match("ann") || f.State != leasehold.Breaking || len(f.Labels) != 2 ||
		f.Labels[0].Key != "team" || f.Labels[0].Value.Match("ops") || !f.Labels[1].Value.Match("") {
		t.Errorf("it is read as %+v", f)
	}
	for raw, want := range map[string]string{
		"state=held":                           `unknown state "held"; known states: available, leased, breaking, broken, expired`,
		"holder=":                              "holder is missing",
		"label=%3Dx":                           `label "=x" has no key: write key=value, or key alone for any value`,
		"holder=a&holder=b":                    "holder stands 2 times in the query: give it once",
		"holder=%00":                           "holder",
		"label%2B=x":                           "the query has \"label+\", which is unknown here",
		"owner=ann":                            "known are: holder, session, door, state, label",
		"label=a&label=a%3Dx":                  `label "a" is given twice: give each label once`,
		"holder=" + strings.Repeat("*", 17):    "holder has 17 stars: at most 16 are allowed",
		"label=a%3D" + strings.Repeat("*", 17): "the value of a label has 17 stars: at most 16 are allowed",
		strings.Repeat("label=a&", 17):         "label is given 17 times: at most 16 are allowed",
		"holder=" + strings.Repeat("a", 1025):  "holder has 1025 bytes: at most 1024 are allowed",
	} {
		if _, err := readFilter(strings.TrimSuffix(raw, "&")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", raw, err, want)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("ann*", "team=ml", "leased")
	f.Fuzz(func(t *testing.T, holder, label, state string) {
		raw := url.Values{"holder": {holder}, "label": {label, "other"}, "state": {state}}.Encode()
		filter, err := readFilter(raw)
		if err == nil && (filter.State == 0 || len(filter.Labels) != 2 || holder == "") {
			t.Errorf("%s is read as %+v", raw, filter)
		}
		if err == nil && !strings.Contains(holder, "*") && !filter.Holder.Match(holder) {
			t.Errorf("%q does not match itself", holder)
		}
	})
}
