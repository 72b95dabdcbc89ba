package wire

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// What stands before commands has numbers that no verb gets.
func TestVerbsStayBelowTheAsker(t *testing.T) {
	if n := len(command.Verbs()); n >= kindAsker || verbOf(kindOrigin) != nil || verbOf(kindAsker) != nil || verbOf(1<<32+1) != nil {
		t.Errorf("there are %d verbs", n)
	}
	for _, row := range command.Verbs() {
		if verbOf(uint64(row.Number)) == nil || kindName(uint64(row.Number)) != row.Name {
			t.Errorf("%s is not found by its number", row.Name)
		}
	}
}

// The order of a description is that of its tags.
func TestTagsOfADescriptionAscend(t *testing.T) {
	for seed := range uint64(3000) {
		made := newDice(seed).command()
		b, err := AppendCommand(nil, made)
		if err != nil {
			t.Fatal(err)
		}
		outer := reading(b)
		kind, c, err := outer.nextFrame()
		if err != nil {
			t.Fatal(err)
		}
		c.Trace = func(at int, field string) {
			if tag := c.B[at]; tag <= c.Last || tag > 127 {
				t.Errorf("%T: %s has tag %d, and stands behind %s with tag %d", made, field, tag, c.LastField, c.Last)
			}
		}
		command.Describe(verbOf(kind).New(), c.Message())
	}
}

// laterLevel is one that no release has.
const laterLevel = core.NewestLevel + 1

// later is a message that got fields with the level after the newest, as a message in it did.
type later struct {
	id, door, note, end string
	inner, added        laterInner
}

type laterInner struct{ id, note string }

func laterFields(v *later, m *tagged.Message) {
	m.Text(1, "id", &v.id)
	tagged.Inner(m, 2, "inner", &v.inner, tagged.Of(m, laterInnerFields))
	m.Text(3, "door", &v.door)
	m.From(uint64(laterLevel))
	m.Text(4, "note", &v.note)
	tagged.Inner(m, 5, "added", &v.added, tagged.Of(m, laterInnerFields))
	m.Text(6, "end", &v.end)
}

func laterInnerFields(v *laterInner, m *tagged.Message) {
	m.Text(1, "inner id", &v.id)
	m.From(uint64(laterLevel))
	m.Text(2, "inner note", &v.note)
}

// A field that came with a later level needs it when it is there, and only then; and what was written at an earlier
// level has none.
func TestAFieldSaysSinceWhichLevelItIs(t *testing.T) {
	old, added := laterInner{id: "x"}, laterInner{note: "n"}
	for name, c := range map[string]struct {
		v      later
		needed uint64
	}{
		"nothing":                       {later{}, 0},
		"what there always was":         {later{id: "a", inner: old, door: "d"}, 0},
		"a later field":                 {later{id: "a", note: "n"}, uint64(laterLevel)},
		"the field behind it":           {later{inner: old, end: "e"}, uint64(laterLevel)},
		"a message that is later":       {later{added: old}, uint64(laterLevel)},
		"a later field in an older one": {later{inner: added, door: "d"}, uint64(laterLevel)},
	} {
		t.Run(name, func(t *testing.T) {
			w := writing(nil)
			if laterFields(&c.v, w.Message()); w.Needed != c.needed || w.Fault != nil {
				t.Fatalf("to write it needs level %d, want %d (%v)", w.Needed, c.needed, w.Fault)
			}
			for level := range uint64(laterLevel) + 1 {
				r, got := codec{Codec: tagged.Codec{B: w.B, Level: level}}, later{}
				m := r.Message()
				laterFields(&got, m)
				m.End()
				refused := level != 0 && c.needed > level
				if (r.Fault != nil) != refused || !refused && (got != c.v || r.Needed != c.needed) {
					t.Errorf("written at level %d it is read as %+v, and needs level %d: %v", level, got, r.Needed, r.Fault)
				}
			}
		})
	}
}

// A record that has fields of a later level says nothing about the records behind it.
func TestALaterFieldDoesNotConcernTheNextRecord(t *testing.T) {
	was := pieceKinds[kindMirror]
	defer func() { pieceKinds[kindMirror] = was }()
	pieceKinds[kindMirror] = inSpace("mirror", func(v *core.Mirror, m *tagged.Message) {
		mirrorFields(v, m)
		m.From(uint64(laterLevel))
	})
	w := snapshotWriter{w: io.Discard, codec: writing(nil)}
	if err := w.version("snapshot", uint64(core.NewestLevel), Level); err != nil {
		t.Fatal(err)
	}
	for _, piece := range []any{new(core.SpaceHead{Token: 1}), new(core.Mirror{Resource: "a", Prefix: "b"}),
		new(core.Resource{Path: "a"})} {
		if err := w.write(core.Piece{Space: "s", Value: piece}); err != nil {
			t.Error(err)
		}
	}
}

// What is in a list has a name wherever it can. A part of one byte would cost more than a hundred times as many.
func TestPartsOfListsHaveNames(t *testing.T) {
	for name, c := range map[string]core.Command{
		"token":       &core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{{}}}},
		"role":        &core.ChangeAccess{Put: access.Items{Roles: []*access.Role{{}}}},
		"binding":     &core.ChangeAccess{Put: access.Items{Bindings: []*access.Binding{{}}}},
		"quota":       &core.ChangeAccess{Put: access.Items{Quotas: []*access.Quota{{}}}},
		"issuer":      &core.ChangeAccess{Put: access.Items{Issuers: []*access.Issuer{{}}}},
		"rule":        &core.ChangeAccess{Put: access.Items{Issuers: []*access.Issuer{{Name: "i", Groups: []access.ClaimRule{{}}}}}},
		"certificate": &core.ChangeAccess{Put: access.Items{Certificates: []*access.Certificate{{}}}},
		"host unit":   &core.SetUnits{Units: []core.HostUnit{{}}},
		"unit report": &core.ReportUse{Units: []core.UnitReport{{}}},
		"item":        &core.Acquire{Also: []core.Item{{}}},
	} {
		if b, err := AppendCommand(nil, c); err == nil {
			t.Errorf("%s: one without a name was written: % x", name, b)
		}
	}
	tokens := "\x17\xd6\x0f\x02\xd3\x0f\x01\xd0\x0f" + strings.Repeat("\x00", access.MaxChange)
	if _, err := DecodeCommand([]byte(tokens)); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "id: it is missing") {
		t.Errorf("tokens without ids: %v", err)
	}
	if got := allocated(func() { _, _ = DecodeCommand([]byte(tokens)) }); got > uint64(32*len(tokens)) {
		t.Errorf("%d bytes of tokens took %d of memory", len(tokens), got)
	}
}

// No command of today needs a later level, and at the newest nothing is looked at for that.
func TestWhatIsWrittenNeedsTheFirstLevel(t *testing.T) {
	for name, c := range goldenCommands {
		b, err := AppendCommand(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, level := range []core.Level{core.OldestLevel, core.NewestLevel} {
			if err := Check(b, level); err != nil || AtLevel(c, level) != nil {
				t.Errorf("%s at level %d: %v, %v", name, level, err, AtLevel(c, level))
			}
		}
		if err := Check(b, core.OldestLevel-1); err == nil || AtLevel(c, core.OldestLevel-1) == nil {
			t.Errorf("%s can be written at level %d", name, core.OldestLevel-1)
		}
	}
}
