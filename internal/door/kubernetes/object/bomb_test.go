package object

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/testtime"
)

// made returns how many bytes a function asks for in all, whatever it keeps of them.
func made(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A bomb is a short text that stands for much.
type bomb struct {
	name, text string
	open       func(t *testing.T, text string)
}

func parses(_ *testing.T, text string) { _, _, _ = ParseTree([]byte(text)) }

func parsesYAML(_ *testing.T, text string) { _, _ = ParseYAML([]byte(text)) }

// patches applies a patch to an object with as many values as one can have.
func patches(how func(tree, patch Tree) (Tree, error)) func(*testing.T, string) {
	return func(t *testing.T, text string) {
		tree := parse(t, `{"metadata":{"finalizers":[`+strings.Repeat(`"a",`, 9000)+`"b"],"labels":{`+numbered(`"%d":"",`, 4000)+`"x":""}}}`)
		patch, _, err := ParseTree([]byte(text))
		if err == nil {
			_, _ = how(tree, patch)
		}
	}
}

// encodes applies all of a JSON patch but its last operation, and encodes what it makes.
func encodes(_ *testing.T, text string) {
	patch, _, err := ParseTree([]byte(text))
	if err != nil {
		return
	}
	operations := patch.([]any)
	if tree, err := JSONPatch(map[string]any{}, operations[:len(operations)-1]); err == nil {
		_, _ = json.Marshal(tree)
	}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

const long = 120_000

var bombs = []bomb{
	{"aliases of aliases", "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + func() (s string) {
		for i := 1; i < 9; i++ {
			s += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
		}
		return s
	}(), parsesYAML},
	{"a long text by its alias", `a: &a "` + strings.Repeat("x", long) + `"` + "\nb: [" + strings.Repeat("*a,", 30_000) + "*a]\n", parsesYAML},
	{"a merged alias", "a: &a {" + numbered("k%d: v, ", 5000) + "}\nb: [" + strings.Repeat("{<<: *a},", 10_000) + "]\n", parsesYAML},
	{"deep YAML", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), parsesYAML},
	{"deep YAML by lines", strings.Repeat("- ", long), parsesYAML},
	{"YAML of empty items", "[" + strings.Repeat("a,", long) + "a]", parsesYAML},
	{"YAML of comments", strings.Repeat("#\n", long) + "a: b", parsesYAML},
	{"deep JSON", strings.Repeat("[", long), parses},
	{"many values under a long name", `{"` + strings.Repeat("x", long) + `":[` + strings.Repeat("0,", long/2) + `0]}`, parses},
	{"many twins under a long name", `{"` + strings.Repeat("x", long) + `":{` + strings.Repeat(`"a":0,`, long/6) + `"a":0}}`, parses},
	{"a list that grows by one", `[{"op":"add","path":"/x","value":[` + strings.Repeat("0,", 30_000) + `0]},` +
		strings.Repeat(`{"op":"add","path":"/x/-","value":0},`, 2500) + `{"op":"remove","path":"/x"}]`, patches(JSONPatch)},
	{"a list that is moved by one", `[{"op":"add","path":"/x","value":[` + strings.Repeat("0,", 30_000) + `0]},` +
		strings.Repeat(`{"op":"add","path":"/x/0","value":0},`, 2500) + `{"op":"remove","path":"/x"}]`, patches(JSONPatch)},
	{"many labels, changed one by one", `[` + strings.Repeat(`{"op":"add","path":"/metadata/labels/y","value":""},`, 4000) +
		`{"op":"remove","path":"/metadata/labels/y"}]`, patches(JSONPatch)},
	{"a list copied into itself", `[` + strings.Repeat(`{"op":"copy","from":"/metadata","path":"/metadata/m"},`, 4000) + `{"op":"remove","path":"/x"}]`,
		patches(JSONPatch)},
	{"a long text that is copied", `[{"op":"add","path":"/long","value":"` + strings.Repeat("x", long) + `"},{"op":"add","path":"/many","value":[]},` +
		strings.Repeat(`{"op":"copy","from":"/long","path":"/many/-"},`, 2500) + `0]`, encodes},
	{"a long name that is copied", `[{"op":"add","path":"/long","value":{"` + strings.Repeat("x", long) + `":0}},{"op":"add","path":"/many","value":[]},` +
		strings.Repeat(`{"op":"copy","from":"/long","path":"/many/-"},`, 2500) + `0]`, encodes},
	{"a path of slashes", `[{"op":"add","path":"` + strings.Repeat("/", 2*long) + `","value":0}]`, patches(JSONPatch)},
	{"finalizers that are all new", `{"metadata":{"finalizers":[` + numbered(`"%d",`, 30_000) + `"a"]}}`, patches(StrategicMerge)},
	{"owners that are all new", `{"metadata":{"ownerReferences":[` + numbered(`{"uid":"%d"},`, 15_000) + `{"uid":""}]}}`, patches(StrategicMerge)},
	{"owners that come and go", `{"metadata":{"ownerReferences":[` + numbered(`{"uid":"%d"},`, 5000) + numbered(`{"uid":"%d","$patch":"delete"},`, 4500) +
		`{"uid":""}]}}`, patches(StrategicMerge)},
	{"finalizers that all go", `{"metadata":{"$deleteFromPrimitiveList/finalizers":[` + numbered(`"%d",`, 30_000) + `""]}}`, patches(StrategicMerge)},
	{"labels that are kept", `{"metadata":{"labels":{"$retainKeys":[` + numbered(`"k%d",`, 30_000) + `""]}}}`, patches(StrategicMerge)},
	{"finalizers that are all wrong", `{"metadata":{"name":"x","finalizers":[` + strings.Repeat(`"!",`, 50_000) + `"!"]}}`, func(t *testing.T, text string) {
		if l, _, err := FromTree(parse(t, text)); err == nil {
			_ = l.Validate()
		}
	}},
	{"empty owners in protobuf", strings.Repeat("\x6a\x00", long), func(_ *testing.T, text string) {
		var m Meta
		if m.unmarshal([]byte(text)) == nil {
			_ = (&Lease{Meta: m}).Validate()
		}
	}},
	{"protobuf in protobuf", strings.Repeat("\x0a\x00", long), func(_ *testing.T, text string) {
		_ = new(Lease).Unmarshal([]byte(text))
		_, _, _, _ = Open([]byte(magic + text))
	}},
}

// What a body of 256 KiB makes is bounded, whatever its form: in bytes, and in work. Each of these took gigabytes or
// seconds once, or would have by a small mistake.
func TestBombs(t *testing.T) {
	const mostBytes, mostTime = 64 << 20, 2 * time.Second // the time is a hundred times what they take
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			if len(b.text) > 256<<10 {
				t.Fatalf("the door would not read %d bytes", len(b.text))
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			began := testtime.CPU()
			if got := made(func() { b.open(t, b.text) }); got > mostBytes {
				t.Errorf("%d bytes make %d MiB", len(b.text), got>>20)
			}
			if took := testtime.CPU() - began; took > mostTime {
				t.Errorf("%d bytes take %v of a processor", len(b.text), took)
			} else if testing.Verbose() {
				t.Log(took)
			}
		})
	}
}

func TestYAML(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a: 1\nb: [x, 1.5, true, null, ~]\nc: {d: '1'}", `{"a":1,"b":["x",1.5,true,null,null],"c":{"d":"1"}}`},
		{"renewTime: 2026-01-01T00:00:00.123456Z", `{"renewTime":"2026-01-01T00:00:00.123456Z"}`},
		{`{"spec":{"leaseDurationSeconds":15}}`, `{"spec":{"leaseDurationSeconds":15}}`}, {"", `null`}, {"0x10", `16`},
	} {
		tree, err := ParseYAML([]byte(c.text))
		if got := written(t, tree); err != nil || got != c.want {
			t.Errorf("%q is %s, %v; want %s", c.text, got, err, c.want)
		}
	}
	for _, bad := range []string{"a: &a 1", "a: &a 1\nb: *a", "<<: {a: b}", "a: 1\na: 2", "1: a", "[a]: b", "a: .inf", "a: [", "? *x\n: 1"} {
		if tree, err := ParseYAML([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, tree)
		}
	}
}
