package native

import (
	"os"
	"strings"
	"testing"
)

// commandTable is the table of commands in docs/doors/resp.md.
func commandTable() string {
	var b strings.Builder
	b.WriteString("| command | as by HTTP | keywords |\n|---|---|---|\n")
	for i := range operations {
		o := &operations[i]
		if o.resp == "" {
			continue
		}
		g := o.grammar()
		var words []string
		for _, word := range g.Known {
			switch word {
			case "NAMESPACE", "KEY", "KEY_SESSION":
			default:
				words = append(words, word)
			}
		}
		b.WriteString("| `" + g.Usage() + "` | `" + o.method + " " + strings.ReplaceAll(o.path, "...", "") + "` | " +
			strings.Join(words, " ") + " |\n")
	}
	return b.String()
}

// The page lists all commands, with all of their keywords.
func TestCommandsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/doors/resp.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := commandTable(); !strings.Contains(string(page), want) {
		t.Errorf("docs/doors/resp.md has to have this table:\n%s", want)
	}
}
