// Command testreport reads what "go test -json" prints and says it shorter: a line
// for each package, everything of what failed, and at the end what was left out and
// why. It ends with 1 if anything failed.
//
// Tests with real processes share the machine with whatever else runs there. So a test
// that failed is run once more, alone, and both results are reported; but a data race, a
// panic or a broken promise (VIOLATION) is never put to a second try: it was seen.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	failures                []failure
	again                   []string // passed at the second try
}

// A failure is a test that failed, not counting those inside others.
type failure struct {
	pkg, test string
	final     bool // what it showed can't be taken back by a second try
}

// maxAgain is how many failures may be an accident.
const maxAgain = 3

func main() {
	r := report{output: map[string][]string{}}
	if err := r.read(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	r.tryAgain(goTest, os.Stdout)
	os.Exit(r.end(os.Stdout))
}

// goTest runs one test alone.
func goTest(f failure) ([]byte, error) {
	return exec.Command("go", "test", "-race", "-count=1", "-timeout=20m", "-run", "^"+f.test+"$", f.pkg).CombinedOutput()
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
		r.again = append(r.again, f.test)
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
		r.leftOut = append(r.leftOut, reason(r.output[key], e.Test))
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
	if !inner {
		r.failed++
	}
}

func (r *report) endPackage(e event, to io.Writer) {
	if e.Action == "skip" {
		return // it has no tests
	}
	if e.Action == "fail" {
		output := strings.Join(r.output[e.Package+" "], "")
		fmt.Fprint(to, output)
		ofTests := slices.ContainsFunc(r.failures, func(f failure) bool { return f.pkg == e.Package })
		r.broken = r.broken || !ofTests || strings.Contains(output, "DATA RACE") || strings.Contains(output, "panic: ")
		return
	}
	fmt.Fprintf(to, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
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
	if len(r.again) > 0 {
		fmt.Fprintf(to, "failed once, and passed alone: %s\n", strings.Join(r.again, ", "))
	}
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	fmt.Fprintf(to, "left out: %s\n", left)
	// Where no test passed, something went wrong that sent no event.
	if r.failed > 0 || r.broken || r.passed == 0 {
		return 1
	}
	return 0
}
