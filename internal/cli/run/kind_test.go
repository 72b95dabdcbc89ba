package run

import (
	"strings"
	"testing"
)

func TestFirstWords(t *testing.T) {
	for line, want := range map[string]string{
		"./train":                         "train",
		"/usr/bin/python3 src/train.py":   "python3 train.py",
		"python train.py --lr 0.1":        "python train.py",
		"torchrun --nproc 2 train.py":     "torchrun",
		"env TOKEN=secret make":           "env",
		"curl https://ann:pw@host/x":      "curl",
		"psql postgres://u:p@h":           "psql",
		"ssh ann@host":                    "ssh",
		"make " + strings.Repeat("x", 80): "",
	} {
		if got := firstWords(strings.Fields(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := firstWords([]string{"sh", ""}); got != "sh" {
		t.Errorf("%q", got)
	}
}
