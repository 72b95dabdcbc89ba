package audit

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/internal/core"
)

// capsText says which caps a command sets, and why.
func capsText(c *core.SetCaps) string {
	var parts []string
	for _, cap := range []struct {
		n    int
		what string
	}{
		{c.Caps.Leases, "leases"}, {c.Caps.Sessions, "sessions"}, {c.Caps.Waiters, "waiters"},
		{c.Caps.Namespaces, "namespaces"},
	} {
		if cap.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", cap.n, cap.what))
		}
	}
	text := strings.Join(parts, ", ")
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}
