package usage

import (
	"testing"

	"github.com/leasehold/leasehold"
)

func TestKindNames(t *testing.T) {
	command := func(s string) leasehold.Labels { return leasehold.Labels{{Key: "command", Value: s}} }
	long := "a name that is longer than any kind can have, and ends in an umlaut: ä"
	for _, c := range []struct {
		labels leasehold.Labels
		holder string
		want   string
	}{
		{nil, "trainer-17", ""},
		{leasehold.Labels{{Key: "team", Value: "vision"}}, "trainer-17", ""},
		{command("python train.py"), "trainer-17", "python train.py|trainer"},
		{command("python train.py"), "trainer", "python train.py|trainer"},
		{command("make"), "ann@gpu-3:4711", "make|ann@gpu"},
		{command("make"), "job_2026-05-17", "make|job"},
		{command("make"), "1234", "make|1234"},
		{labelled("nightly"), "trainer-17", "nightly"},
		{append(command("make"), labelled("nightly")...), "trainer-17", "nightly"},
		{append(command("make"), labelled("")...), "trainer-17", "make|trainer"},
		{labelled(long), "ann", long[:64]},
		{labelled("äääääääääääääääääääääääääääääääää"), "ann", "ääääääääääääääääääääääääääääääää"},
		{labelled("xäääääääääääääääääääääääääääääääää"), "ann", "xäääääääääääääääääääääääääääääää"},
		{labelled("\xff\xff\xff"), "ann", "\xff\xff\xff"},
	} {
		if got := KindName(c.labels, c.holder); got != c.want {
			t.Errorf("%v of %s is of kind %q, want %q", c.labels, c.holder, got, c.want)
		}
	}
	every := ""
	for range 200 {
		every += "\x80"
	}
	if got := KindName(labelled(every), "ann"); got != "" {
		t.Errorf("a text that has no beginning of a character becomes %q", got)
	}
}

func labelled(kind string) leasehold.Labels { return leasehold.Labels{{Key: kindLabel, Value: kind}} }
