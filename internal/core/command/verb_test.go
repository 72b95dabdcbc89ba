package command

import (
	"reflect"
	"testing"
)

// Every verb has all that its row says, and every number leads to its row and back.
func TestEveryVerbHasARow(t *testing.T) {
	names, types := map[string]bool{}, map[reflect.Type]bool{}
	for i, v := range Verbs() {
		if v.Number != Number(i+1) {
			t.Errorf("%s has number %d and stands at place %d", v.Name, v.Number, i+1)
		}
		if v.Name == "" || names[v.Name] {
			t.Errorf("verb %d has no name of its own: %q", v.Number, v.Name)
		}
		names[v.Name] = true
		made := reflect.TypeOf(v.New())
		if types[made] {
			t.Errorf("%s makes a %v, as another verb does", v.Name, made)
		}
		types[made] = true
		if VerbOf(v.New()) != VerbNumbered(v.Number) || VerbOf(v.New()).Name != v.Name {
			t.Errorf("the verb of a %v is %s, and not %s", made, VerbOf(v.New()).Name, v.Name)
		}
		if v.Since < OldestLevel || v.Since > NewestLevel {
			t.Errorf("%s is there since level %d, which is none", v.Name, v.Since)
		}
		if v.Class < Adds || v.Class > Internal {
			t.Errorf("%s has no class", v.Name)
		}
		if _, ok := v.New().(noted); ok == (v.Quiet != "") {
			t.Errorf("%s has to have a note for the journal, or a reason why it has none", v.Name)
		}
	}
	if VerbNumbered(0) != nil || VerbNumbered(Number(len(Verbs())+1)) != nil {
		t.Error("there is a verb whose number no row has")
	}
}

// Without a credential, the journal takes the author of a command for its actor. A record is different: whoever approved
// it need not write it, as when a person lets Terraform replace a state.
func TestWhoActs(t *testing.T) {
	if n := NoteOf(&Drain{By: "ann"}); n.By != "ann" || n.Actor != "ann" {
		t.Errorf("a drain is by %q, and %q acts", n.By, n.Actor)
	}
	if n := NoteOf(&PutRecord{By: "ann"}); n.By != "ann" || n.Actor != "" {
		t.Errorf("a record is wanted by %q, and %q acts", n.By, n.Actor)
	}
}
