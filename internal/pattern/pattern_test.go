package pattern

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func parsed(t testing.TB, name string) *Pattern {
	t.Helper()
	p, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhichNamesAreInAnArea(t *testing.T) {
	for name, in := range map[string]bool{
		"repo/web:src": true, "repo/web:": true, "repo/a/b:x:y": true,
		"repo/web": false, "env/staging:x": false, "repository:x": false, "": false,
	} {
		if In(name) != in {
			t.Errorf("%q is in an area: %v", name, !in)
		}
	}
	if p := parsed(t, "repo/a/b:x:y"); p.Area != "repo/a/b" || p.segments[0].text != "x:y" {
		t.Errorf("the area is %q and the path %v", p.Area, p.segments)
	}
}

func TestWhatIsNoPattern(t *testing.T) {
	for _, path := range []string{
		"/src", "src//a", "./src", "src/../a", "src/**a", "src/***", "a/" + deep + "x", "/", "//",
		strings.Repeat("a/", MaxSegments+1), strings.Repeat("*a", MaxWildcards+1),
	} {
		if p, err := Parse("repo/web:" + path); err == nil {
			t.Errorf("%q is the pattern %v", path, p.segments)
		}
	}
	for _, path := range []string{"", "src/", "[id].tsx", "a?b", "**", strings.Repeat("a/", MaxSegments), "*a*b*"} {
		parsed(t, "repo/web:"+path)
	}
}

func TestOverlaps(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "src/a.go", true},
		{"**", "", true},
		{"src", "src/a.go", true},
		{"src/", "src/a.go", true},
		{"src", "source", false},
		{"src/**", "src", true},
		{"src/a.go", "src/b.go", false},
		{"src/auth/**", "src/api/**", false},
		{"src/*.go", "src/a.go", true},
		{"src/*.go", "src/a.md", false},
		{"src/*.go", "src/sub/a.go", false},
		{"src/*.go", "src", true},
		{"src/*", "src/sub", true},
		{"src/*", "src/sub/a.go", false},
		{"src/*.go", "src/a*", true},
		{"src/a*", "src/b*", false},
		{"src/*a", "src/*b", false},
		{"src/a*c", "src/abc*", true},
		{"src/a*a", "src/a", false},
		{"src/a*a", "src/aa", true},
		{"**/*.go", "**/*.md", false},
		{"**/*.go", "src/**", true},
		{"**/*.go", "src/*/x*", true},
		{"**/testdata/**/x", "a/testdata/b/x", true},
		{"**/testdata/**/x", "a/*/b/y*", false},
		{"a/**/b/**/c", "a/b/c", true},
		{"a/**/b/**/b/**/c", "a/*/c", false},
		{"a/**/b", "a/**/c/**", true},
		{"a/*/c", "a/b/*", true},
		{"a/*/c", "a/b/c/d", false},
		{"*/b", "a/*", true},
		{"*/b", "a/c", false},
	} {
		a, b := parsed(t, "repo/web:"+c.a), parsed(t, "repo/web:"+c.b)
		if a.Overlaps(b) != c.want || b.Overlaps(a) != c.want {
			t.Errorf("%q and %q overlap: %v", c.a, c.b, !c.want)
		}
	}
	if parsed(t, "repo/web:src").Overlaps(parsed(t, "repo/api:src")) {
		t.Error("paths of two areas overlap")
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"src", "src/a/b.go", true},
		{"src/*", "src/a/b.go", false},
		{"src/*", "src/[a]*.go", true},
		{"src/a", "src/*", false},
		{"**/a.go", "a.go", true},
	} {
		if got := parsed(t, "repo/web:"+c.pattern).Covers(c.file); got != c.want {
			t.Errorf("%q covers %q: %v", c.pattern, c.file, got)
		}
	}
}

// expression says in another language which paths a pattern means.
func expression(path string) *regexp.Regexp {
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return regexp.MustCompile(".")
	}
	segments := strings.Split(path, "/")
	if !strings.Contains(path, "*") {
		segments = append(segments, "**")
	}
	var b strings.Builder
	for _, s := range segments {
		if s == "**" {
			b.WriteString("([^/]+/)*")
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, "[^/]*") + "/")
	}
	return regexp.MustCompile("^" + b.String() + "$")
}

// paths are all of up to four segments of some texts, each with a slash at its end.
func paths() (all []string) {
	for i, level := 0, []string{""}; i < 4; i++ {
		var next []string
		for _, path := range level {
			for _, text := range []string{"a", "b", "ab", "ba"} {
				next = append(next, path+text+"/")
			}
		}
		all, level = append(all, next...), next
	}
	return all
}

// somePath is a random pattern that is small enough for paths to have a witness of every overlap: for two of them that
// is a path of four segments at most.
func somePath(r *rand.Rand) string {
	segments := []string{"a", "b", "ab", "*", "a*", "*b", "*a", "b*"}
	pick := func() string { return segments[r.IntN(len(segments))] }
	switch r.IntN(8) {
	case 0:
		return pick()
	case 1:
		return pick() + "/" + pick()
	case 2:
		return "**/" + pick()
	case 3:
		return pick() + "/**"
	case 4:
		return pick() + "/**/" + pick()
	case 5:
		return "**/" + pick() + "/**"
	case 6:
		return pick() + "/" + pick() + "/" + pick()
	}
	return []string{"", "**", "a/", "b/a"}[r.IntN(4)]
}

// TestOverlapsAsPathsSay compares Overlaps with a search for a path that both patterns mean.
func TestOverlapsAsPathsSay(t *testing.T) {
	all, r := paths(), rand.New(rand.NewPCG(1, 2))
	means := map[string][]bool{}
	set := func(path string) []bool {
		if m, ok := means[path]; ok {
			return m
		}
		m, e := make([]bool, len(all)), expression(path)
		for i, p := range all {
			m[i] = e.MatchString(p)
		}
		means[path] = m
		return m
	}
	overlaps := 0
	for range 3000 {
		a, b := somePath(r), somePath(r)
		as, bs, both := set(a), set(b), false
		for i := range all {
			both = both || as[i] && bs[i]
		}
		if got := parsed(t, "repo/x:"+a).Overlaps(parsed(t, "repo/x:"+b)); got != both {
			t.Fatalf("%q and %q overlap: %v", a, b, got)
		}
		if both {
			overlaps++
		}
	}
	if overlaps < 500 || overlaps > 2500 {
		t.Errorf("%d of 3000 overlap: the test says little", overlaps)
	}
}

// TestIndexFindsAllThatOverlap compares the index with a look at everything.
func TestIndexFindsAllThatOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x, all := NewIndex(), map[string]*Pattern{}
	for range 3000 {
		p := parsed(t, fmt.Sprintf("repo/%d:%s", r.IntN(2), somePath(r)))
		if r.IntN(3) == 0 {
			delete(all, p.Name)
			x.Delete(p)
		} else {
			all[p.Name] = p
			x.Set(p)
		}
		var want, got []string
		of := 0
		for name, q := range all {
			if q.Area == p.Area {
				of++
			}
			if q.Overlaps(p) {
				want = append(want, name)
			}
		}
		x.Overlapping(p, func(q *Pattern) bool { got = append(got, q.Name); return true })
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) || x.Of(p.Area) != of || x.Len() != len(all) {
			t.Fatalf("%s overlaps %q, and the index says %q", p.Name, want, got)
		}
	}
}

// TestIndexLooksAtFew: files of other directories cost nothing, and what is in the index was compared when it came.
func TestIndexLooksAtFew(t *testing.T) {
	x := NewIndex()
	for i := range 1000 {
		x.Set(parsed(t, fmt.Sprintf("repo/web:src/d%d/a.go", i)))
	}
	for path, most := range map[string]int{"src/d7/a.go": 1, "src/d7/*.go": 1, "src/d7": 1, "doc/**": 0, "src/**": 1000} {
		if n := x.Overlapping(parsed(t, "repo/web:"+path), func(*Pattern) bool { return false }); n > most {
			t.Errorf("%s was compared with %d", path, n)
		}
	}
}

// FuzzPatterns: no text breaks the parser, overlap has no direction, a pattern overlaps itself, and a file that two
// patterns cover is one by which they overlap.
func FuzzPatterns(f *testing.F) {
	f.Add("src/**/*.go", "src/a*/x", "src/a/x")
	f.Add("**/a/**/b", "*/*/*", "c/a/b")
	f.Add("a*b*c", "*a*", "abc")
	f.Add("src/", "", "src")
	f.Fuzz(func(t *testing.T, a, b, file string) {
		p, err := Parse("repo/x:" + a)
		q, other := Parse("repo/x:" + b)
		if err != nil || other != nil {
			return
		}
		overlap := p.Overlaps(q)
		if overlap != q.Overlaps(p) || !p.Overlaps(p) {
			t.Fatalf("%q and %q overlap: %v, and the other way round %v", a, b, overlap, q.Overlaps(p))
		}
		if one, err := Parse("repo/x:" + file); err == nil && !strings.Contains(file, star) && file != "" && file[len(file)-1] != '/' {
			if p.Covers(file) && q.Covers(file) && !overlap {
				t.Fatalf("%q and %q both cover %q", a, b, file)
			}
			if p.Covers(file) && !p.Overlaps(one) {
				t.Fatalf("%q covers %q and does not overlap it", a, file)
			}
		}
	})
}

func BenchmarkOverlaps(b *testing.B) {
	deepest := strings.Repeat("*/", 6) + strings.Repeat("a/", MaxSegments-7) + "b"
	for _, c := range [][2]string{
		{"src/auth/**", "src/auth/session.go"},
		{"src/**/*_test.go", "src/auth/*.go"},
		{"**/" + strings.Repeat("a/", MaxSegments/2-3) + "c/**/b", deepest},
	} {
		p, q := parsed(b, "repo/web:"+c[0]), parsed(b, "repo/web:"+c[1])
		b.Run(c[0][:min(16, len(c[0]))], func(b *testing.B) {
			for b.Loop() {
				p.Overlaps(q)
			}
		})
	}
}
