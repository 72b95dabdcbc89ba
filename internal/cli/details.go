package cli

import (
	"fmt"
	"strings"
)

// A Details is a list of names and values, one under the other.
type Details struct{ strings.Builder }

func (s *Details) Line(name, format string, args ...any) {
	value := fmt.Sprintf(format, args...)
	if value == "" {
		return
	}
	if name != "" {
		name += ":"
	}
	fmt.Fprintf(s, "%-11s %s\n", name, value)
}
