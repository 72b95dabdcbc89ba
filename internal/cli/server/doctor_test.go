package server

import "testing"

// What several servers said is one line of the diagnosis.
func TestDiagnosisIsOneLine(t *testing.T) {
	if got := oneLine("none of 2 servers could be reached:\n  one\n  two"); got != "none of 2 servers could be "+
		"reached: one; two" {
		t.Errorf("it is written %q", got)
	}
}
