// Command testreport reads what "go test -json" prints and says it shorter: a line
// for each package, everything of what failed, and at the end what was left out and
// why. It ends with 1 if anything failed.
//
// Tests with real processes share the machine with whatever else runs there. So a test
// that failed is run once more, alone, and both results are reported; but a data race, a
// panic or a broken promise (VIOLATION) is never put to a second try: it was seen. With
// -strict a test that needed its second try fails the run as well.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// event is one line of test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// report is what was seen so far.
type report struct {
	passed, failed, skipped int
	broken                  bool // a package failed outside its tests
	output                  map[string][]string
	leftOut                 []string
	leftTo                  map[string]int // tests of a target of its own, by that
	failures                []failure
	again                   []failure // passed at the second try
	strict                  bool      // none may be
}

func newReport() *report { return &report{output: map[string][]string{}, leftTo: map[string]int{}} }

// A failure is a test that failed, not counting those inside others.
type failure struct {
	pkg, test string
	inner     []string // the tests inside it that failed
	final     bool     // what it showed can't be taken back by a second try
}

func (f failure) String() string {
	name := strings.TrimPrefix(f.pkg, module+"/") + " " + f.test
	if len(f.inner) > 0 {
		name += " (" + strings.Join(f.inner, ", ") + ")"
	}
	return name
}

const module = "github.com/leasehold/leasehold"

// maxAgain is how many failures may be an accident of a busy machine. With more than that,
// something is broken, and repeating would only cost time.
const maxAgain = 3

func main() {
	r := newReport()
	flag.BoolVar(&r.strict, "strict", false, "fail if a test needed its second try")
	flag.Parse()
	if err := r.read(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	r.tryAgain(goTest, os.Stdout)
	os.Exit(r.end(os.Stdout))
}

// goTest runs one test alone. It runs in the directory of its package, which may belong to
// another module than this one.
func goTest(f failure) ([]byte, error) {
	cmd := exec.Command("go", "test", "-race", "-count=1", "-timeout=20m", "-run", "^"+f.test+"$", ".")
	cmd.Dir = directory(f.pkg)
	return cmd.CombinedOutput()
}

// directory returns where a package is, seen from the root of the tree.
func directory(pkg string) string {
	return filepath.FromSlash("." + strings.TrimPrefix(pkg, module))
}

// tryAgain gives the tests that failed a second chance, if they are few.
func (r *report) tryAgain(run func(failure) ([]byte, error), to io.Writer) {
	if len(r.failures) > maxAgain {
		return
	}
	for _, f := range r.failures {
		if f.final {
			continue
		}
		fmt.Fprintf(to, "again\t%s %s\n", f.pkg, f.test)
		output, err := run(f)
		if err != nil {
			fmt.Fprintf(to, "%s\n", output)
			continue
		}
		r.failed--
		r.passed++
		r.again = append(r.again, f)
	}
}

func (r *report) read(from io.Reader, to io.Writer) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(to, lines.Text()) // not ours: the compiler's, perhaps
			continue
		}
		r.take(e, to)
	}
	return lines.Err()
}

func (r *report) take(e event, to io.Writer) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		fmt.Fprint(to, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e, to)
		} else {
			r.endTest(e, key, to)
		}
		delete(r.output, key)
	}
}

func (r *report) endTest(e event, key string, to io.Writer) {
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		output := strings.Join(r.output[key], "")
		fmt.Fprint(to, output)
		r.endFailure(e, output)
	case "skip":
		r.skipped++
		r.skip(e, r.output[key])
	}
}

// endFailure counts a test that failed once, whatever failed inside it.
func (r *report) endFailure(e event, output string) {
	name, _, inner := strings.Cut(e.Test, "/")
	i := slices.IndexFunc(r.failures, func(f failure) bool { return f.pkg == e.Package && f.test == name })
	if i < 0 {
		i = len(r.failures)
		r.failures = append(r.failures, failure{pkg: e.Package, test: name})
	}
	for _, sign := range []string{"DATA RACE", "VIOLATION", "panic: ", "race detected"} {
		r.failures[i].final = r.failures[i].final || strings.Contains(output, sign)
	}
	if inner {
		r.failures[i].inner = append(r.failures[i].inner, e.Test)
	} else {
		r.failed++
	}
}

func (r *report) endPackage(e event, to io.Writer) {
	if e.Action == "skip" {
		return // it has no tests
	}
	if e.Action == "fail" {
		output := r.unfinished(e.Package) + strings.Join(r.output[e.Package+" "], "")
		fmt.Fprint(to, output)
		ofTests := slices.ContainsFunc(r.failures, func(f failure) bool { return f.pkg == e.Package })
		r.broken = r.broken || !ofTests || strings.Contains(output, "DATA RACE") || strings.Contains(output, "panic: ")
		return
	}
	fmt.Fprintf(to, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
}

// unfinished returns what the tests printed that never ended. A process that dies in the middle
// of a test, by a panic in another goroutine or a fatal error, says why there and nowhere else.
func (r *report) unfinished(pkg string) string {
	var output strings.Builder
	for _, key := range slices.Sorted(maps.Keys(r.output)) {
		if test, ok := strings.CutPrefix(key, pkg+" "); ok && test != "" {
			output.WriteString(strings.Join(r.output[key], ""))
			delete(r.output, key)
		}
	}
	return output.String()
}

// skip notes why a test did not run: something is missing here, or it is one of those that
// take long and have a target of their own.
func (r *report) skip(e event, output []string) {
	if _, target, ok := strings.Cut(strings.Join(output, ""), "left to: "); ok {
		target, _, _ = strings.Cut(target, "\n")
		r.leftTo[target]++
		return
	}
	r.leftOut = append(r.leftOut, reason(output, e.Test))
}

// reason finds why a test was left out in what it printed.
func reason(output []string, test string) string {
	for _, line := range output {
		if _, why, ok := strings.Cut(line, "left out: "); ok {
			return strings.TrimSpace(why)
		}
	}
	return test + " (it does not say why)"
}

// end prints the last lines and returns the exit code.
func (r *report) end(to io.Writer) int {
	slices.Sort(r.leftOut)
	left := strings.Join(slices.Compact(r.leftOut), "; ")
	if left == "" {
		left = "nothing"
	}
	for _, target := range slices.Sorted(maps.Keys(r.leftTo)) {
		fmt.Fprintf(to, "left to %s: %d tests that take long\n", target, r.leftTo[target])
	}
	for _, f := range r.again {
		fmt.Fprintf(to, "failed once, and passed alone: %s\n", f)
	}
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	fmt.Fprintf(to, "left out: %s\n", left)
	// Where no test passed, something went wrong that sent no event.
	if r.failed > 0 || r.broken || r.passed == 0 || r.strict && len(r.again) > 0 {
		return 1
	}
	return 0
}
