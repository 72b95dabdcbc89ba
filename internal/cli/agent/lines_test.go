package agent

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A line that is not JSON is answered, and those after it are handed on.
func TestLinesThatAreNotJSON(t *testing.T) {
	in := "{\"a\":1}\r\nnonsense\n\n[2\n  {\"b\": [2]}"
	var out bytes.Buffer
	got, err := io.ReadAll(iotest.OneByteReader(newLines(strings.NewReader(in), &output{out: &out})))
	if want := "{\"a\":1}\n{\"b\": [2]}\n"; string(got) != want || err != nil {
		t.Errorf("%q, %v is handed on, want %q", got, err, want)
	}
	if want := parseError + "\n" + parseError + "\n"; out.String() != want {
		t.Errorf("%q is answered, want %q", out.String(), want)
	}
	if _, err := io.ReadAll(newLines(strings.NewReader(strings.Repeat("x", maxLine+1)), io.Discard)); err == nil {
		t.Error("a line that never ends is read")
	}
}

func FuzzLines(f *testing.F) {
	f.Add("{}\n")
	f.Add("nonsense\n{\"id\":1}\r\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := io.ReadAll(newLines(strings.NewReader(in), io.Discard))
		if err == nil && len(got) > len(in)+1 {
			t.Errorf("%q is handed on as %q", in, got)
		}
	})
}
