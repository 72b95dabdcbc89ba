package main

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/cli"
)

func TestClusterLimits(t *testing.T) {
	_, tr := newVillage(t, false)
	tr.does(t, 0, "cluster", "limits", "set", "--leases", "1", "--reason", "too much")
	tr.does(t, 0, "acquire", "printer")
	tr.does(t, 0, "cluster", "limits")
	want := `LIMIT       USED  ALLOWED  STATE
leases         1        1  full: new ones are refused
sessions       0  1000000  -
waiters        0  1000000  -
namespaces     1     4096  -
`
	if tr.out.String() != want {
		t.Errorf("it shows\n%s", tr.out.String())
	}
	tr.does(t, 0, "cluster", "limits", "-o", "json")
	if !strings.Contains(tr.out.String(), `"allowed": 1`) && !strings.Contains(tr.out.String(), `"allowed":1`) {
		t.Errorf("it prints %s", tr.out.String())
	}
	tr.does(t, 0, "audit", "--verb", "set-limits")
	if !strings.Contains(tr.out.String(), "set-limits") {
		t.Errorf("the audit has\n%s", tr.out.String())
	}
	tr.does(t, cli.ExitUsage, "cluster", "limits", "set")
	tr.does(t, cli.ExitUsage, "cluster", "limits", "set", "--leases", "many")
}
