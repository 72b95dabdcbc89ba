package main

import (
	"errors"
	"strings"
	"testing"
)

const passing = `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: left out: needs a browser\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p","Elapsed":1.25}
{"Action":"skip","Package":"empty"}
`

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, events, says string
		code               int
	}{
		{"what passed is a line", passing, "ok  \tp\t1.2s\n1 passed, 0 failed, 2 skipped\nleft out: TestC (it does not say why); needs a browser\n", 0},
		{"what takes long has a target", `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: left to: make compat\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}`, "left to make compat: 1 tests that take long\n1 passed, 0 failed, 1 skipped\nleft out: nothing\n", 0},
		{"nothing left out is said too", `{"Action":"pass","Package":"p","Test":"TestA"}`, "1 passed, 0 failed, 0 skipped\nleft out: nothing\n", 0},
		{"a failure shows its output", `{"Action":"output","Package":"p","Test":"TestA","Output":"it broke\n"}
{"Action":"fail","Package":"p","Test":"TestA"}`, "it broke\n0 passed, 1 failed, 0 skipped\nleft out: nothing\n", 1},
		{"a package that does not build fails", `{"Action":"build-output","ImportPath":"p","Output":"undefined: x\n"}
{"Action":"fail","Package":"p"}`, "undefined: x\n0 passed, 0 failed, 0 skipped\nleft out: nothing\n", 1},
		{"a process that dies in a test says why", `{"Action":"output","Package":"p","Test":"TestA","Output":"fatal error: it died\n"}
{"Action":"output","Package":"p","Output":"exit status 2\n"}
{"Action":"fail","Package":"p"}`, "fatal error: it died\nexit status 2\n0 passed, 0 failed, 0 skipped\nleft out: nothing\n", 1},
		{"what is no event is passed on", "panic: somewhere", "panic: somewhere\n0 passed, 0 failed, 0 skipped\nleft out: nothing\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReport()
			var out strings.Builder
			if err := r.read(strings.NewReader(c.events), &out); err != nil {
				t.Fatal(err)
			}
			if code := r.end(&out); code != c.code || out.String() != c.says {
				t.Errorf("code %d, want %d; it says:\n%s\nwant:\n%s", code, c.code, out.String(), c.says)
			}
		})
	}
}

func TestSecondTry(t *testing.T) {
	const failing = `{"Action":"output","Package":"p","Test":"TestA/inner","Output":"too slow\n"}
{"Action":"fail","Package":"p","Test":"TestA/inner"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`
	violation := strings.ReplaceAll(failing, "too slow", "VIOLATION: two holders")
	many := strings.Join([]string{failing, strings.ReplaceAll(failing, "TestA", "TestB"), strings.ReplaceAll(failing, "TestA", "TestC"), strings.ReplaceAll(failing, "TestA", "TestD")}, "")
	for _, c := range []struct {
		name, events string
		err          error
		tries, code  int
		says         string
	}{
		{"an accident", failing, nil, 1, 0, "failed once, and passed alone: p TestA (TestA/inner)\n1 passed, 0 failed"},
		{"it fails again", failing, errors.New("exit 1"), 1, 1, "0 passed, 1 failed"},
		{"a broken promise", violation, nil, 0, 1, "0 passed, 1 failed"},
		{"too many for an accident", many, nil, 0, 1, "0 passed, 4 failed"},
		{"outside of tests", `{"Action":"fail","Package":"p"}`, nil, 0, 1, "0 passed, 0 failed"},
		{"a panic", strings.ReplaceAll(failing, "too slow", "panic: nil map"), nil, 0, 1, "0 passed, 1 failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReport()
			var out strings.Builder
			if err := r.read(strings.NewReader(c.events), &out); err != nil {
				t.Fatal(err)
			}
			tries := 0
			r.tryAgain(func(failure) ([]byte, error) { tries++; return nil, c.err }, &out)
			if code := r.end(&out); code != c.code || tries != c.tries || !strings.Contains(out.String(), c.says) {
				t.Errorf("code %d after %d tries, want %d after %d; it says:\n%s", code, tries, c.code, c.tries, out.String())
			}
		})
	}
	// With -strict an accident fails the run, and is still named.
	r := newReport()
	r.strict = true
	var out strings.Builder
	if err := r.read(strings.NewReader(failing), &out); err != nil {
		t.Fatal(err)
	}
	r.tryAgain(func(failure) ([]byte, error) { return nil, nil }, &out)
	if code := r.end(&out); code != 1 || !strings.Contains(out.String(), "failed once, and passed alone: p TestA") {
		t.Errorf("strict: code %d; it says:\n%s", code, out.String())
	}
}
