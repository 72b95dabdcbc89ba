package object

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func parse(t testing.TB, text string) Tree {
	t.Helper()
	tree, _, err := ParseTree([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tree
}

func written(t testing.TB, tree Tree) string {
	t.Helper()
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMerge(t *testing.T) { // the examples of RFC 7396
	for _, c := range []struct{ tree, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`}, {`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`}, {`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"a":"foo"}`, `null`, `null`}, {`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`}, {`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		tree := parse(t, c.tree)
		if got := written(t, Merge(tree, parse(t, c.patch))); got != c.want {
			t.Errorf("%s with %s is %s, want %s", c.tree, c.patch, got, c.want)
		}
		if written(t, tree) != written(t, parse(t, c.tree)) {
			t.Errorf("%s was changed by %s", c.tree, c.patch)
		}
	}
}

func TestStrategicMerge(t *testing.T) {
	const tree = `{"metadata":{"finalizers":["a","b"],"labels":{"x":"1","y":"2"},"ownerReferences":[{"name":"n","uid":"1"},{"name":"m","uid":"2"}]}}`
	for _, c := range []struct{ patch, want string }{
		{`{"metadata":{"finalizers":["b","c"]}}`, `"finalizers":["a","b","c"]`},
		{`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["b"]}}`, `"finalizers":["b"]`},
		{`{"metadata":{"ownerReferences":[{"uid":"2","name":"new"},{"uid":"3"}]}}`,
			`"ownerReferences":[{"name":"n","uid":"1"},{"name":"new","uid":"2"},{"uid":"3"}]`},
		{`{"metadata":{"ownerReferences":[{"uid":"1","$patch":"delete"}]}}`, `"ownerReferences":[{"name":"m","uid":"2"}]`},
		{`{"metadata":{"ownerReferences":[{"$patch":"replace"},{"uid":"9"}]}}`, `"ownerReferences":[{"uid":"9"}]`},
		{`{"metadata":{"labels":{"x":null,"z":"3"}}}`, `"labels":{"y":"2","z":"3"}`},
		{`{"metadata":{"labels":{"$patch":"replace","z":"3"}}}`, `"labels":{"z":"3"}`},
		{`{"metadata":{"labels":{"$patch":"delete"}}}`, `"labels":{}`},
		{`{"metadata":{"labels":{"$retainKeys":["y"],"y":"4"}}}`, `"labels":{"y":"4"}`},
		{`{"metadata":{"finalizers":null}}`, `"metadata":{"labels"`},
	} {
		merged, err := StrategicMerge(parse(t, tree), parse(t, c.patch))
		if got := written(t, merged); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, %v; want %s", c.patch, got, err, c.want)
		}
	}
	for _, bad := range []string{`{"metadata":{"$patch":"other"}}`, `{"metadata":{"$nonsense":1}}`, `{"metadata":{"finalizers":"a"}}`,
		`{"metadata":{"ownerReferences":["a"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":"a"}}`} {
		if got, err := StrategicMerge(parse(t, tree), parse(t, bad)); err == nil {
			t.Errorf("%s is accepted: %v", bad, got)
		}
	}
}

func TestJSONPatch(t *testing.T) {
	const tree = `{"a":{"b":"1"},"l":[1,2],"m~/n":0}`
	for _, c := range []struct{ patch, want string }{
		{`[{"op":"add","path":"/a/c","value":2}]`, `{"a":{"b":"1","c":2},"l":[1,2],"m~/n":0}`},
		{`[{"op":"add","path":"/l/1","value":9},{"op":"add","path":"/l/-","value":8}]`, `{"a":{"b":"1"},"l":[1,9,2,8],"m~/n":0}`},
		{`[{"op":"remove","path":"/l/0"},{"op":"remove","path":"/a"}]`, `{"l":[2],"m~/n":0}`},
		{`[{"op":"replace","path":"/m~0~1n","value":7}]`, `{"a":{"b":"1"},"l":[1,2],"m~/n":7}`},
		{`[{"op":"move","from":"/a/b","path":"/z"}]`, `{"a":{},"l":[1,2],"m~/n":0,"z":"1"}`},
		{`[{"op":"copy","from":"/a","path":"/a/a"}]`, `{"a":{"a":{"b":"1"},"b":"1"},"l":[1,2],"m~/n":0}`},
		{`[{"op":"test","path":"/l","value":[1.0,2]}]`, ``},
		{`[{"op":"test","path":"/l/0","value":1.0},{"op":"replace","path":"","value":{"x":1}}]`, `{"x":1}`},
	} {
		patch := parse(t, c.patch)
		got, err := JSONPatch(parse(t, tree), patch)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s passes", c.patch)
			}
			continue
		}
		if err != nil || written(t, got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.patch, written(t, got), err, c.want)
		}
		if !reflect.DeepEqual(patch, parse(t, c.patch)) {
			t.Errorf("%s was changed", c.patch)
		}
	}
	for _, bad := range []string{`{}`, `[1]`, `[{"op":"add","path":"/x"}]`, `[{"op":"add","path":"x","value":1}]`, `[{"op":"remove","path":"/x"}]`,
		`[{"op":"remove","path":""}]`, `[{"op":"replace","path":"/x","value":1}]`, `[{"op":"add","path":"/l/3","value":1}]`, `[{"op":"add","path":"/l/01","value":1}]`,
		`[{"op":"move","from":"/a","path":"/a/b"}]`, `[{"op":"test","path":"/a","value":1}]`, `[{"op":"jump","path":"/a"}]`, `[{"op":"copy","path":"/a"}]`,
		`[{"op":"add","path":"/q/r","value":1}]`, `[{"op":"add","path":"/m~0~1n/r","value":1}]`} {
		if got, err := JSONPatch(parse(t, tree), parse(t, bad)); err == nil {
			t.Errorf("%s is accepted: %v", bad, got)
		}
	}
	// A patch that doubles what is there with each operation is stopped.
	bomb := `[` + strings.Repeat(`{"op":"copy","from":"/l","path":"/l/-"},`, 40) + `{"op":"test","path":"/a","value":1}]`
	if _, err := JSONPatch(parse(t, tree), parse(t, bomb)); err == nil || !strings.Contains(err.Error(), "too much") {
		t.Errorf("a bomb: %v", err)
	}
}

func TestSelectors(t *testing.T) {
	labels := map[string]string{"app": "x", "tier": "a", "example.com/z": ""}
	for text, want := range map[string]bool{
		"": true, "app=x": true, "app==x": true, "app!=x": false, "app=x,tier=a": true, "app=x,tier=b": false, "app": true, "!app": false, "!none": true,
		"app in (x,y)": true, "app in (y)": false, "app notin (y, z)": true, "none notin (y)": true, "none!=y": true, "none in (y)": false,
		"example.com/z=": true, " app = x , tier in ( a , b ) ": true,
	} {
		s, err := ParseLabels(text)
		if err != nil || s.Picks(labels) != want {
			t.Errorf("%q: %v, %v; want %v", text, s, err, want)
		}
	}
	for _, bad := range []string{"=x", "a b", "app in x", "app in (x", "app=x,", "a/b/c=1", "app=x y", "app near (x)", "!", "app=" + strings.Repeat("x", 64)} {
		if s, err := ParseLabels(bad); err == nil {
			t.Errorf("%q is accepted: %+v", bad, s)
		}
	}
	m := &Meta{Name: "n", Namespace: "s"}
	for text, want := range map[string]bool{
		"": true, "metadata.name=n": true, "metadata.name==n": true, "metadata.name=m": false, "metadata.name!=n": false, "metadata.name!=m": true,
		"metadata.namespace=s,metadata.name=n": true, "metadata.namespace!=s": false, "metadata.name=n,metadata.name=m": false,
	} {
		s, err := ParseFields(text)
		if err != nil || s.Picks(m) != want {
			t.Errorf("%q: %+v, %v; want %v", text, s, err, want)
		}
	}
	for _, bad := range []string{"spec.holderIdentity=x", "metadata.name", "x"} {
		if _, err := ParseFields(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// An object that was read is written as it was.
func FuzzProtobuf(f *testing.F) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	full := &Lease{
		Meta: Meta{Name: "n", Namespace: "s", UID: "u", Created: NewTime(at), Labels: map[string]string{"a": "1"}, GraceSeconds: new(int64(0)),
			Owners: []Owner{{Name: "o", Controller: new(true)}}, Finalizers: []string{"x/y"}},
		Spec: Spec{Holder: new("ann"), DurationSeconds: new(int32(15)), AcquireTime: NewMicroTime(at), Transitions: new(int32(-1))},
	}
	f.Add(Envelope(APIVersion, Kind, full.Marshal()))
	f.Add(Envelope(APIVersion, Kind, (&Lease{}).Marshal()))
	f.Add([]byte(magic + "\x0a\xff\xff\xff\xff\x0f"))
	f.Add([]byte("k8s"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _, message, err := Open(text)
		if err != nil {
			return
		}
		_, _, _, _ = DeleteOptions(message)
		var l, again Lease
		if l.Unmarshal(message) != nil {
			return
		}
		bytesOnce := l.Marshal()
		if err := again.Unmarshal(bytesOnce); err != nil || !bytes.Equal(again.Marshal(), bytesOnce) {
			t.Fatalf("%+v is written as %x and read as %+v, %v", l, bytesOnce, again, err)
		}
		if _, err := l.JSON(); err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		l.Validate()
	})
}

// What is read as JSON is written so that it is read as the same.
func FuzzJSON(f *testing.F) {
	f.Add(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","labels":{"b":"c"},"creationTimestamp":"2026-01-02T03:04:05Z"},` +
		`"spec":{"holderIdentity":"x","leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.678901Z"}}`)
	f.Add(`{"metadata":{"name":"a","name":"b","finalizers":[null]},"spec":null,"more":[[[]]]}`)
	f.Add(strings.Repeat("[", 100))
	f.Fuzz(func(t *testing.T, text string) {
		tree, _, err := ParseTree([]byte(text))
		if err != nil {
			return
		}
		l, _, err := FromTree(tree)
		if err != nil {
			return
		}
		l.Validate()
		once, err := l.JSON()
		if err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		again, unknown, err := FromTree(parse(t, string(once)))
		if err != nil || len(unknown) > 0 {
			t.Fatalf("%s: %v, unknown: %v", once, err, unknown)
		}
		if twice, _ := again.JSON(); !bytes.Equal(once, twice) {
			t.Fatalf("%s is read and written as %s", once, twice)
		}
	})
}

// No selector and no patch breaks anything, whatever is in it.
func FuzzPatchesAndSelectors(f *testing.F) {
	f.Add("app in (x,y),!z", "metadata.name=n", `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`)
	f.Add("a=b,c!=d", "metadata.name!=n", `{"metadata":{"ownerReferences":[{"uid":"u","$patch":"delete"}],"$retainKeys":["x"]}}`)
	f.Add("(", ",", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x"],"finalizers":null}}`)
	l := &Lease{Meta: Meta{Name: "n", Labels: map[string]string{"app": "x"}, Finalizers: []string{"x"}, Owners: []Owner{{UID: "u"}}}}
	f.Fuzz(func(t *testing.T, labels, fields, patch string) {
		if s, err := ParseLabels(labels); err == nil {
			s.Picks(l.Meta.Labels)
		}
		if s, err := ParseFields(fields); err == nil {
			s.Picks(&l.Meta)
		}
		change, _, err := ParseTree([]byte(patch))
		if err != nil {
			return
		}
		tree, err := l.Tree()
		if err != nil {
			t.Fatal(err)
		}
		before, asked := written(t, tree), written(t, change)
		_, _ = StrategicMerge(tree, change)
		Merge(tree, change)
		if written(t, tree) != before {
			t.Fatalf("%s changed its argument", patch)
		}
		_, _ = JSONPatch(tree, change)
		if written(t, change) != asked {
			t.Fatalf("%s was changed", patch)
		}
	})
}
