package credential

import "strings"

// matches reports whether a text is what a pattern describes, in which * stands for any text.
func matches(pattern, text string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !starred {
		return ok && text == ""
	}
	parts := strings.Split(rest, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, parts[last])
}
