package main

import (
	"fmt"
	"strings"
)

// A sheet is a list of names and values, one under the other.
type sheet struct{ strings.Builder }

func (s *sheet) line(name, format string, args ...any) {
	value := fmt.Sprintf(format, args...)
	if value == "" {
		return
	}
	if name != "" {
		name += ":"
	}
	fmt.Fprintf(s, "%-11s %s\n", name, value)
}
