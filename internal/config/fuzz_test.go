package config

import (
	"strings"
	"testing"
)

// FuzzYAML: whatever the file holds, the answer is settings that come back the
// same when they are written out, or a sentence that begins with the file.
func FuzzYAML(f *testing.F) {
	f.Add("listen: 127.0.0.1:4653\ndata: /var/lib/leasehold\n")
	f.Add("log-level: debug # why\nlog-format: json\ninsecure: true\n")
	f.Add("data: &a x\nlisten: *a\n")
	f.Add("? [a]\n: b\n")
	f.Add("<<: {data: x}\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := fileLayer("f.yaml", []byte(text), nil)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f.yaml") {
					t.Errorf("%q does not say where it is wrong", line)
				}
			}
			return
		}
		r := resolver{config: new(Config), layers: []layer{l}}
		r.settle(pick(nil, OfServer))
		if len(r.problems) > 0 {
			return
		}
		written, err := YAML(r.settings, true)
		if err != nil {
			t.Fatal(err)
		}
		again, err := fileLayer("f.yaml", written, nil)
		if err != nil {
			t.Fatalf("%v\nin what was written:\n%s", err, written)
		}
		for _, s := range r.settings {
			if again[s.Key.Name].value != s.Value {
				t.Errorf("%s was %q and came back as %q", s.Key.Name, s.Value, again[s.Key.Name].value)
			}
		}
	})
}
