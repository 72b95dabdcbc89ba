package wire

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
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
		command := newDice(seed).command()
		b, err := AppendCommand(nil, command)
		if err != nil {
			t.Fatal(err)
		}
		outer := codec{b: b}
		kind, c, err := outer.nextFrame()
		if err != nil {
			t.Fatal(err)
		}
		c.trace = func(at int, field string) {
			if tag := c.b[at]; tag <= c.last || tag > 127 {
				t.Errorf("%T: %s has tag %d, and stands behind %s with tag %d", command, field, tag, c.lastField, c.last)
			}
		}
		(*message)(&c).command(verbOf(kind).New())
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

func (m *message) later(v *later) {
	m.text(1, "id", &v.id)
	inner(m, 2, "inner", &v.inner, m.laterInner)
	m.text(3, "door", &v.door)
	m.from(laterLevel)
	m.text(4, "note", &v.note)
	inner(m, 5, "added", &v.added, m.laterInner)
	m.text(6, "end", &v.end)
}

func (m *message) laterInner(v *laterInner) {
	m.text(1, "inner id", &v.id)
	m.from(laterLevel)
	m.text(2, "inner note", &v.note)
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
			w := codec{writing: true}
			if (*message)(&w).later(&c.v); w.needed != c.needed || w.fault != nil {
				t.Fatalf("to write it needs level %d, want %d (%v)", w.needed, c.needed, w.fault)
			}
			for level := range uint64(laterLevel) + 1 {
				r, got := codec{b: w.b, level: level}, later{}
				m := (*message)(&r)
				m.later(&got)
				m.end()
				refused := level != 0 && c.needed > level
				if (r.fault != nil) != refused || !refused && (got != c.v || r.needed != c.needed) {
					t.Errorf("written at level %d it is read as %+v, and needs level %d: %v", level, got, r.needed, r.fault)
				}
			}
		})
	}
}

// A record that has fields of a later level says nothing about the records behind it.
func TestALaterFieldDoesNotConcernTheNextRecord(t *testing.T) {
	was := pieceKinds[kindMirror]
	defer func() { pieceKinds[kindMirror] = was }()
	pieceKinds[kindMirror] = inSpace("mirror", func(m *message, v *core.Mirror) {
		m.mirror(v)
		m.from(laterLevel)
	})
	w := snapshotWriter{w: io.Discard, codec: codec{writing: true}}
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
