// Command testreport reads what "go test -json" prints and says it shorter: a line
// for each package, everything of what failed, and at the end what was left out and
// why. It ends with 1 if anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
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
}

func main() {
	r := report{output: map[string][]string{}}
	if err := r.read(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	os.Exit(r.end(os.Stdout))
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
		r.failed++
		fmt.Fprint(to, strings.Join(r.output[key], ""))
	case "skip":
		r.skipped++
		r.leftOut = append(r.leftOut, reason(r.output[key], e.Test))
	}
}

func (r *report) endPackage(e event, to io.Writer) {
	if e.Action == "skip" {
		return // it has no tests
	}
	if e.Action == "fail" {
		r.broken = true
		fmt.Fprint(to, strings.Join(r.output[e.Package+" "], ""))
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
	fmt.Fprintf(to, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	fmt.Fprintf(to, "left out: %s\n", left)
	// Where no test passed, something went wrong that sent no event.
	if r.failed > 0 || r.broken || r.passed == 0 {
		return 1
	}
	return 0
}
