package wire

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page that others read these bytes by has every command.
func TestDocHasAllCommands(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range commandNames {
		if line := fmt.Sprintf("\n//\t%4d  %s", kind, name); name != "" && !strings.Contains(string(page), line) {
			t.Errorf("doc.go has no line for command %d, %s", kind, name)
		}
	}
}
