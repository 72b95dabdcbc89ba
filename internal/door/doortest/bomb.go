package doortest

import (
	"runtime"
	"strings"
	"testing"
)

// What reading a body may make: so many times its length, or so many bytes where that is more.
const (
	madeTimes = 20
	madeLeast = 16 << 20
)

// Bombs opens bodies that are short and stand for much, and fails if one makes more than a body may, whatever is kept of
// it. size is that of the largest body which the door reads. Of each bomb there is a body of that size: what it begins
// with, a part as often as there is room, and what it ends with.
func Bombs(t *testing.T, size int, bombs map[string][3]string, open func(body []byte)) {
	t.Helper()
	for name, b := range bombs {
		t.Run(name, func(t *testing.T) {
			times := (size - len(b[0]) - len(b[2])) / len(b[1])
			body := []byte(b[0] + strings.Repeat(b[1], times) + b[2])
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			open(body)
			runtime.ReadMemStats(&after)
			made, most := after.TotalAlloc-before.TotalAlloc, uint64(max(madeTimes*len(body), madeLeast))
			if made > most {
				t.Errorf("%d KiB make %d KiB, of at most %d", len(body)>>10, made>>10, most>>10)
			} else if testing.Verbose() {
				t.Logf("%d KiB make %d KiB", len(body)>>10, made>>10)
			}
		})
	}
}

// JSONBombs are bombs of JSON. Where an object has a list, and where it has a text, the door says.
func JSONBombs(list, text string) map[string][3]string {
	begin := `{"` + list + `":[`
	return map[string][3]string{
		"objects":         {begin, "{},", "{}]}"},
		"lists":           {begin, "[],", "[]]}"},
		"nulls":           {begin, "null,", "null]}"},
		"numbers":         {begin, "0,", "0]}"},
		"texts":           {begin, `"",`, `""]}`},
		"wrong values":    {begin, `{"` + text + `":0},`, "{}]}"},
		"deep lists":      {begin, "[", ""},
		"deep objects":    {"", `{"a":`, ""},
		"deep unknown":    {`{"unknown":`, "[", ""},
		"lists of lists":  {`[`, "[[[[[[[[]]]]]]]],", "[]]"},
		"unknown objects": {`{"unknown":[`, "{},", "{}]}"},
		"unknown fields":  {"{", `"a":0,`, `"a":0}`},
		"the same field":  {"{", `"` + text + `":"a",`, `"` + text + `":"a"}`},
		"the same list":   {"{", `"` + list + `":[{}],`, `"` + list + `":[]}`},
		"escapes":         {`{"` + text + `":"`, `\u00e9`, `"}`},
		"blanks":          {"", " ", "{}"},
		"long numbers":    {`{"` + text + `":`, "1", "}"},
		"top objects":     {"[", "{},", "{}]"},
		"many values":     {"", "{} ", ""},
	}
}
