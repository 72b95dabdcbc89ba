package wire

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core/command"
)

// The page that others read these bytes by has every field of every verb and record, with its tag.
func TestDocHasAllFields(t *testing.T) {
	b, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(b), "# Fields\n")
	verbs, rest, _ := strings.Cut(page, "kind  record")
	records, _, found := strings.Cut(rest, "message           fields")
	if !found {
		t.Fatal("doc.go has no table of messages")
	}
	missing, looked := map[string]bool{}, map[string]bool{}
	look := func(table, row string, pieces []piece) {
		pieces = slices.DeleteFunc(pieces, func(p piece) bool { return looked[row+p.name] })
		if len(pieces) == 0 {
			return
		}
		at := regexp.MustCompile(`(?m)^//\t *` + row + `(\s|$)`).FindStringIndex(table)
		if at == nil {
			missing["row "+row] = true
			return
		}
		// To the next row.
		text := table[at[1]:]
		if next := regexp.MustCompile(`\n//\t *\d+  \S`).FindStringIndex(text); next != nil {
			text = text[:next[0]]
		}
		for _, p := range pieces {
			looked[row+p.name] = true
			in, owner := text, row
			name, inner := strings.CutPrefix(p.name, "  ")
			if inner {
				in, owner = page, "any message"
			}
			tag, field, tagged := strings.Cut(strings.TrimSpace(name), " ")
			if !tagged || strings.HasPrefix(name, "kind: ") || strings.HasPrefix(name, "length: ") {
				continue
			}
			if !regexp.MustCompile(`\b` + tag + `( [^,\d]*)? ` + field + `\??(,|\n|$)`).MatchString(in) {
				missing[fmt.Sprintf("%s: %s", owner, strings.TrimSpace(name))] = true
			}
		}
	}
	for seed := range uint64(2000) {
		d := newDice(seed)
		c := d.command()
		written, err := AppendCommand(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		row := command.VerbOf(c)
		look(verbs, fmt.Sprintf("%d  %s", row.Number, row.Name), commandPieces(t, written))
		r := d.piece()
		kind := kindOf(r.Value)
		look(records, fmt.Sprintf("%d  %s", kind, pieceKinds[kind].name), recordPieces(t, appendRecord(t, r)))
	}
	for what := range missing {
		t.Errorf("doc.go does not have %s", what)
	}
}
