package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/core/tagged"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// The golden files are the format. They may change until the first release, which freezes them.
var update = flag.Bool("update", false, "write the golden files")

const rule = "# Format 2.\n"

// golden returns the bytes of a golden file, after it compared them with those that
// are written today.
func golden(t *testing.T, name, about string, today []piece) []byte {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	text := rule + "# " + about + "\n\n" + strings.TrimLeft(dump(today), "\n")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run the test with -update to begin the file", err)
	}
	b := undump(t, string(kept))
	if want := join(today); !bytes.Equal(b, want) {
		t.Errorf("%s: what is written today differs from what was written once:\n%s", path, firstDifference(string(kept), text))
	}
	return b
}

func TestGoldenCommands(t *testing.T) {
	seen := map[string]bool{}
	for name, c := range goldenCommands {
		t.Run(name, func(t *testing.T) {
			written, err := AppendCommand(nil, c)
			if err != nil {
				t.Fatal(err)
			}
			row := command.VerbOf(c)
			pieces := commandPieces(t, written)
			for _, p := range pieces {
				seen[fieldOf(row.Name, p)] = true
				seen[strings.TrimSpace(p.name)] = true
			}
			b := golden(t, "command-"+name, fmt.Sprintf("A command of verb %d: %s.", row.Number, row.Name), pieces)
			got, err := DecodeCommand(b)
			if err != nil || !reflect.DeepEqual(got, c) {
				t.Fatalf("%+v was read as %+v, %v", c, got, err)
			}
		})
	}
	// Whatever a verb may say stands in some file.
	for seed := range uint64(3000) {
		c := newDice(seed).command()
		written, err := AppendCommand(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range commandPieces(t, written) {
			if name := fieldOf(command.VerbOf(c).Name, p); !seen[name] {
				t.Errorf("no golden file has %s", name)
				seen[name] = true
			}
		}
	}
}

// fieldOf names a field of a verb or a record, or of a message in it, which others may have as well.
func fieldOf(owner string, p piece) string {
	switch name, inner := strings.CutPrefix(p.name, "  "); {
	case inner:
		return strings.TrimSpace(name)
	case strings.HasPrefix(name, "length: "):
		return "length"
	default:
		return owner + ": " + name
	}
}

func TestGoldenEntries(t *testing.T) {
	for name, e := range map[string]*Entry{
		"entry":       {Term: 7, Stamp: 3600e9, Wall: goldenWall, Commands: []core.Command{goldenCommands["lead"], goldenCommands["renew"], goldenCommands["tick"]}},
		"entry-empty": {Term: 300, Stamp: 1, Wall: -1},
		"entry-versions": {
			Term: 7, Stamp: 3600e9, Wall: goldenWall, Commands: []core.Command{goldenCommands["tick"], goldenCommands["put-version"]},
			From: core.From{Origins: []leasehold.Origin{{}, {Actor: "ops@example.com"}}},
		},
		"entry-origin": {
			Term: 7, Stamp: 3600e9, Wall: goldenWall, Commands: []core.Command{goldenCommands["release"], goldenCommands["renew"]},
			From: core.From{Origins: []leasehold.Origin{{Actor: "ops@example.com", Address: "10.0.0.7:51234", Door: "native"}, {}}},
		},
		"entry-asker": {
			Term: 7, Stamp: 3600e9, Wall: goldenWall, Commands: []core.Command{goldenCommands["release"], goldenCommands["renew"], goldenCommands["set-caps"], goldenCommands["tick"]},
			From: core.From{
				Origins: []leasehold.Origin{{Address: "10.0.0.7:51234", Door: "native"}, {}, {}, {}},
				Askers:  []*access.Asker{{Principal: "ci:build", Groups: []string{"team-a", "ops"}}, {Principal: "ann", Token: "t1"}, &access.System, nil},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := AppendEntry(nil, e)
			if err != nil {
				t.Fatal(err)
			}
			b := golden(t, name, fmt.Sprintf("A log entry with %d commands.", len(e.Commands)), entryPieces(t, written))
			got, err := DecodeEntry(b)
			if err != nil || !reflect.DeepEqual(got, e) {
				t.Fatalf("%+v was read as %+v, %v", e, got, err)
			}
		})
	}
}

func TestGoldenRecords(t *testing.T) {
	seen, has := map[uint64]bool{}, map[string]bool{}
	for name, r := range goldenRecords {
		t.Run(name, func(t *testing.T) {
			kind := kindOf(r.Value)
			seen[kind] = true
			about := fmt.Sprintf("A record of kind %d: %s.", kind, pieceKinds[kind].name)
			pieces := recordPieces(t, appendRecord(t, r))
			for _, p := range pieces {
				has[fieldOf(pieceKinds[kind].name, p)] = true
				has[strings.TrimSpace(p.name)] = true
			}
			b := golden(t, "record-"+name, about, pieces)
			if got := decodeRecord(t, b); !reflect.DeepEqual(got, r) {
				t.Fatalf("%+v was read as %+v", r, got)
			}
		})
	}
	for kind, row := range pieceKinds {
		if kind != kindEnd && !seen[uint64(kind)] {
			t.Errorf("records of kind %d (%s) have no golden file", kind, row.name)
		}
	}
	// Whatever a record may say stands in some file.
	for seed := range uint64(6000) {
		r := newDice(seed).piece()
		for _, p := range recordPieces(t, appendRecord(t, r)) {
			if name := fieldOf(pieceKinds[kindOf(r.Value)].name, p); !has[name] {
				t.Errorf("no golden file has %s", name)
				has[name] = true
			}
		}
	}
}

// The golden snapshot holds two promises: the format's, that it is read and written
// again byte for byte, and the core's, that the commands which made it still make it.
// If only the second breaks, replicas of two versions would disagree.
func TestGoldenSnapshot(t *testing.T) {
	state := everything(t)
	b := golden(t, "snapshot", "A snapshot with everything in it.", snapshotPieces(t, write(t, state)))
	restored := read(t, b)
	if err := restored.Check(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(write(t, restored), b) {
		t.Error("it is not written again as it was read")
	}
	want, got := records(state), records(restored)
	for i := range min(len(want), len(got)) {
		if !reflect.DeepEqual(want[i], got[i]) {
			t.Fatalf("record %d: %+v was read as %+v", i+1, want[i].Value, got[i].Value)
		}
	}
	if len(want) != len(got) {
		t.Errorf("there are %d records, and %d were read", len(want), len(got))
	}
}

// The same of a state that names large values and keeps former versions.
func TestGoldenSnapshotOfVersions(t *testing.T) {
	state := versions(t)
	b := golden(t, "snapshot-versions", "A snapshot of a state with large values and former versions.", snapshotPieces(t, write(t, state)))
	restored := read(t, b)
	if err := restored.Check(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(write(t, restored), b) {
		t.Error("it is not written again as it was read")
	}
	if !reflect.DeepEqual(records(state), records(restored)) {
		t.Error("it is not read as it was written")
	}
}

// The same of a state that was restored.
func TestGoldenRestoredSnapshot(t *testing.T) {
	state := restoredWorld(t)
	b := golden(t, "snapshot-restored", "A snapshot of a state that was restored from a backup, in its quarantine.", snapshotPieces(t, write(t, state)))
	again := read(t, b)
	if err := again.Check(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(write(t, again), b) || !reflect.DeepEqual(records(state), records(again)) {
		t.Error("it is not written again as it was read")
	}
}

// restoredWorld is a small state that was restored, and then led.
func restoredWorld(t *testing.T) *core.State {
	t.Helper()
	s := read(t, small(t))
	if _, err := s.FromBackup(core.Restoration{Quarantine: 30e9}); err != nil {
		t.Fatal(err)
	}
	commands := []core.Command{
		&core.Lead{Node: 4, Boot: "boot"},
		&core.Acquire{Namespace: "after", Resource: "r", ID: "waits", Holder: "ann", TTL: 5e9, Wait: 60e9},
	}
	if _, err := s.Apply(s.Now()+1, goldenWall, commands); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEveryBitOfARestoredSnapshotIsGuarded is as for others.
func TestEveryBitOfARestoredSnapshotIsGuarded(t *testing.T) {
	b := write(t, restoredWorld(t))
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if s, _, err := ReadSnapshot(bytes.NewReader(b)); s != nil || err == nil {
			t.Fatalf("bit %d: %v", i, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func records(s *core.State) (list []core.Piece) {
	for r := range s.Pieces() {
		list = append(list, core.Piece{Space: r.Space, Value: plain(r.Value)})
	}
	return list
}

// A piece is the bytes of one field, with its name.
type piece struct {
	name  string
	bytes []byte
}

func join(pieces []piece) (b []byte) {
	for _, p := range pieces {
		b = append(b, p.bytes...)
	}
	return b
}

// cut takes the next n bytes as a piece.
func cut(b *[]byte, n int, name string) piece {
	p := piece{name, (*b)[:n]}
	*b = (*b)[n:]
	return p
}

func number(t *testing.T, b []byte) (uint64, int) {
	t.Helper()
	v, n := binary.Uvarint(b)
	if n <= 0 {
		t.Fatalf("no number in % x", b)
	}
	return v, n
}

// fieldPieces names each byte of a message after the field that it belongs to.
func fieldPieces(t *testing.T, b []byte, read func(*tagged.Message)) (pieces []piece) {
	t.Helper()
	var starts []int
	var names []string
	c := reading(b)
	c.Trace = func(at int, field string) {
		starts, names = append(starts, at), append(names, fmt.Sprintf("%s%d %s", strings.Repeat("  ", c.Depth), b[at], field))
	}
	m := c.Message()
	read(m)
	if m.End(); c.Fault != nil {
		t.Fatalf("% x: %s: %s", b, c.Fault.Field, c.Fault.Reason)
	}
	for i, from := range starts {
		to := len(b)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		pieces = append(pieces, piece{names[i], b[from:to]})
	}
	return pieces
}

// framePieces takes a frame: its head, and its body as it is read.
func framePieces(t *testing.T, b *[]byte, name func(kind uint64) string, read func(kind uint64, body []byte) []piece) []piece {
	t.Helper()
	kind, n := number(t, *b)
	pieces := []piece{cut(b, n, "kind: "+name(kind))}
	size, n := number(t, *b)
	pieces = append(pieces, cut(b, n, fmt.Sprintf("length: %d", size)))
	body := cut(b, int(size), "")
	return append(pieces, read(kind, body.bytes)...)
}

func commandPieces(t *testing.T, b []byte) (pieces []piece) {
	t.Helper()
	for len(b) > 0 {
		pieces = append(pieces, framePieces(t, &b, kindName, func(kind uint64, body []byte) []piece {
			return fieldPieces(t, body, func(m *tagged.Message) {
				switch kind {
				case kindOrigin:
					originFields(new(leasehold.Origin), m)
				case kindAsker:
					new(asker{Asker: new(access.Asker)}).fields(m)
				default:
					command.Describe(verbOf(kind).New(), m)
				}
			})
		})...)
	}
	return pieces
}

func entryPieces(t *testing.T, b []byte) []piece {
	t.Helper()
	c := reading(b)
	var h Header
	var count uint64
	c.header(0, &h, &count)
	var pieces []piece
	for head, names := b[:c.At], []string{"format", "level", "term", "stamp", "wall", "commands"}; len(names) > 0; names = names[1:] {
		_, n := number(t, head)
		pieces = append(pieces, cut(&head, n, names[0]))
	}
	return append(pieces, commandPieces(t, b[c.At:])...)
}

func recordPieces(t *testing.T, b []byte) (pieces []piece) {
	t.Helper()
	name := func(kind uint64) string { return pieceKinds[kind].name }
	for len(b) > 0 {
		pieces = append(pieces, framePieces(t, &b, name, func(kind uint64, body []byte) (pieces []piece) {
			if kind == kindEnd {
				count := len(body) - checksumSize
				return []piece{{"count", body[:count]}, {"checksum", body[count:]}}
			}
			if row := &pieceKinds[kind]; !row.wide {
				c, space := reading(body), ""
				c.Text("namespace", &space)
				pieces = append(pieces, cut(&body, c.At, "namespace"))
			}
			return append(pieces, fieldPieces(t, body, func(m *tagged.Message) { pieceKinds[kind].fields(pieceKinds[kind].fresh(), m) })...)
		})...)
	}
	return pieces
}

func snapshotPieces(t *testing.T, b []byte) []piece {
	t.Helper()
	pieces := []piece{cut(&b, len(magic), "magic"), cut(&b, 1, "format"), cut(&b, 1, "level")}
	return append(pieces, recordPieces(t, b)...)
}

// dump writes pieces as people read them, sixteen bytes a line.
func dump(pieces []piece) string {
	var text strings.Builder
	for _, p := range pieces {
		if strings.HasPrefix(p.name, "kind: ") {
			text.WriteString("\n")
		}
		name := p.name
		for from := 0; from < len(p.bytes); from += 16 {
			line := p.bytes[from:min(from+16, len(p.bytes))]
			fmt.Fprintf(&text, "%-47s  |%-16s|  %s", fmt.Sprintf("% x", line), printable(line), name)
			name = "…"
			text.WriteString("\n")
		}
	}
	return text.String()
}

func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, latin1(b))
}

func latin1(b []byte) string {
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes)
}

// undump reads the bytes of a dump.
func undump(t testing.TB, text string) (b []byte) {
	t.Helper()
	for line := range strings.Lines(text) {
		digits, _, _ := strings.Cut(line, "|")
		if strings.HasPrefix(line, "#") {
			continue
		}
		part, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
		if err != nil {
			t.Fatalf("%v in line %q", err, line)
		}
		b = append(b, part...)
	}
	return b
}

func firstDifference(once, today string) string {
	a, b := strings.Split(once, "\n"), strings.Split(today, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\nonce:  %s\ntoday: %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("one has %d lines, the other %d", len(a), len(b))
}

func sameText(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// The values behind the golden files.

const goldenWall = 1767323045000000006 // 2026-01-02 03:04:05.000000006

var (
	goldenLabels  = leasehold.Labels{{Key: "host", Value: "a1"}, {Key: "version", Value: "1.2"}}
	goldenKey     = core.Request{Key: "key-1"}
	goldenNumber  = core.Request{Session: "s1", Sequence: 300}
	goldenMoment  = time.Unix(0, goldenWall).UTC()
	goldenPast    = time.Unix(0, -1).UTC()
	goldenAnswers = map[string]core.Answer{
		"nothing": {},
		"lease":   {Lease: goldenLease},
		"session": {Session: &leasehold.Session{Namespace: "default", ID: "s1", TTL: 30e9, Labels: goldenLabels, Remaining: 29e9, Opened: goldenMoment, Expires: goldenMoment.Add(30e9), Claims: 3, Interventions: 300, Intervened: []string{"id1", "id2"}}},
		"waiter":  {Waiter: &leasehold.Waiter{Namespace: "default", Resource: "r", ID: "id2", Holder: "bob", Labels: goldenLabels, Reason: "next", Session: "s1", Slots: 2, Priority: -7, Position: 2, Since: goldenMoment, Until: goldenMoment.Add(1e9), Forecast: 240e9}},
		"error":   {Err: &leasehold.Error{Code: leasehold.Held, Message: "r is held by ann", Lease: goldenLease, Waiting: 2, Position: 1, Forecast: 240e9}},
		"record":  {Record: &leasehold.Record{Path: "config/a", Create: 3, Mod: 6, Version: 300, Session: "s1", Token: 5}},
		"large":   {Record: &leasehold.Record{Path: "config/a", Large: goldenLarge, Create: 3, Mod: 6, Version: 300, Session: "s1", Token: 5}},
		"txn": {Txn: &core.TxnAnswer{Succeeded: true, Revision: 6, Results: []core.TxnResult{
			{Record: &leasehold.Record{Create: 3, Mod: 6, Version: 300, Token: 5}}, {Deleted: 2}, {Lease: goldenLease, Also: []leasehold.Lease{*goldenLease}},
		}}},
		"nested": {Txn: &core.TxnAnswer{Results: []core.TxnResult{
			{Txn: &core.TxnAnswer{Succeeded: true, Results: []core.TxnResult{{Deleted: 300}}}}, {Waiter: &leasehold.Waiter{Namespace: "default", Resource: "r", ID: "id2", Holder: "bob", Position: 1, Foreign: "694d7a"}},
		}}},
		"refused": {Err: &leasehold.Error{Code: leasehold.Refused, Message: "no", Cycle: []leasehold.Wait{{Holder: "ann", Resource: "b"}, {Holder: "bob", Resource: "a"}}}},
		"several": {Lease: goldenLease, Also: []leasehold.Lease{*goldenLease}},
		"defined": {Definition: goldenDefinition},
	}
	goldenLease = &leasehold.Lease{
		Namespace: "default", Resource: "r", ID: "id1", Holder: "ann", Labels: goldenLabels, Reason: "because", Session: "s1",
		State: leasehold.Breaking, Token: 5, Floor: 4, Slots: 2, Units: []string{"gpu0", "gpu1"}, TTL: 10e9, HoldLimit: 3600e9, Remaining: 9e9,
		Acquired: goldenMoment, Expires: goldenPast, AvailableAt: goldenMoment, Revision: 6, Interventions: 300,
		After:   &leasehold.Ending{ID: "id0", Holder: "zoe", Token: 3, How: leasehold.ByTTL, By: "ops", Reason: "stuck", At: goldenMoment, Foreign: "guid-0", TTL: 30e9},
		Foreign: "guid-1", Door: "azure", Note: goldenNote, Noted: goldenMoment,
	}
)

var goldenLarge = &leasehold.Large{SHA256: sha256.Sum256([]byte("a large value")), Size: 30 << 20}

var goldenEnding = &core.Ending{ID: "id1", Holder: "ann", Token: 5, How: leasehold.ByBreak, By: "ops", Reason: "stuck", Wall: goldenWall, Foreign: "guid-1", TTL: 30e9}

var goldenDefinition = &leasehold.Definition{
	Path: "gpu/", Capacity: 2, Units: []string{"gpu0", "gpu1"}, DefaultTTL: 30e9, LargestTTL: 600e9, HoldLimit: 3600e9, Grace: 5e9, Expected: 1800e9,
	Unclean: leasehold.AwaitAcknowledgement, Revision: 6,
}

var goldenNote = "epoch 3 of 10"

// By the names of their files.
var goldenCommands = map[string]core.Command{
	"open-session":    &core.OpenSession{Namespace: "default", ID: "s1", TTL: 30 * time.Second, Labels: goldenLabels, Request: goldenKey},
	"renew-session":   &core.RenewSession{Namespace: "default", ID: "s1"},
	"close-session":   &core.CloseSession{Namespace: "default", ID: "s1", Request: goldenKey},
	"abandon-session": &core.CloseSession{Namespace: "default", ID: "s1", Abandon: true, Request: goldenKey},
	"acquire": &core.Acquire{
		Namespace: "default", Resource: "reports/nightly", ID: "id1", Holder: "ann", Labels: goldenLabels, Reason: "because", TTL: 10 * time.Second,
		Session: "s1", Wait: time.Minute, Grace: 5 * time.Second, HoldLimit: time.Hour, Priority: 7, Request: goldenNumber,
		Slots: 2, Capacity: 8, Also: []core.Item{{Resource: "gpu", ID: "id2", Slots: 1, Capacity: 300}, {Resource: "disk", ID: "id3"}}, Party: "p1", Pick: core.TTLByDefault,
	},
	"define-change": &core.Define{
		Namespace: "default", Definition: leasehold.Definition{Path: "gpu/", Units: []string{"gpu0"}, Grace: 5e9}, By: "ops", Request: goldenKey,
		Fields: core.FieldSlots | core.FieldGrace | core.FieldUnclean, KeepSlots: true, IfRevision: 300,
	},
	"define":      &core.Define{Namespace: "default", Definition: *goldenDefinition, By: "ops", Reason: "more of them", Request: goldenKey},
	"undefine":    &core.Undefine{Namespace: "default", Path: "gpu/", By: "ops", Reason: "fewer of them", Request: goldenKey},
	"acknowledge": &core.Acknowledge{Namespace: "default", Resource: "gpu", Token: 300, By: "ops", Reason: "looked at", Request: goldenKey},
	"set-caps":    &core.SetCaps{Caps: goldenCaps, IfUnset: true, By: "ops", Reason: "too many"},
	"acknowledge-alarm": &core.AcknowledgeAlarm{
		Namespace: "default", Kind: leasehold.HeldLong, Resource: "gpu", ID: "id1", Session: "s1", Order: 300, By: "ops", Reason: "it may", Request: goldenKey,
	},
	"change-access": &core.ChangeAccess{
		Remove:  access.Keys{Tokens: []string{"t0"}, Roles: []string{"old"}, Bindings: []string{"b0", "b1"}, Quotas: []string{"pann"}, Issuers: []string{"gone"}, Certificates: []string{"c0"}},
		Put:     goldenPolicy,
		Replace: true, Off: true, IfRevision: 300, By: "ops", Reason: "a new team",
		IfNone: true, Declared: goldenFile, Used: []access.Use{{ID: "t1", Wall: 1763856000000000003}}, Wall: 1763856000000000004,
	},
	"raise-tokens":   &core.RaiseTokens{Namespace: "default", Above: 1 << 40, By: "ops", Reason: "seen in Redis"},
	"end-quarantine": &core.EndQuarantine{Base: 1 << 40, By: "ops", Reason: "all were stopped"},
	"renew":          &core.Renew{Namespace: "default", ID: "id1"},
	"renew-note":     &core.Renew{Namespace: "default", ID: "id1", Note: &goldenNote},
	"release":        &core.Release{Namespace: "default", ID: "id1", Request: goldenNumber},
	"withdraw":       &core.Release{Namespace: "default", ID: "id1", Session: "s1", Withdraw: true, Request: goldenNumber},
	"change":         &core.Change{Namespace: "default", ID: "id1", Holder: "bob", NewID: "id2", Request: goldenKey},
	"break": &core.Break{
		Namespace: "default", ID: "id1", Resource: "reports/nightly", Token: leasehold.MaxToken, Period: time.Second, Remains: true,
		By: "ops", Reason: "stuck", Request: goldenKey,
	},
	"tick": &core.Tick{}, "tick-short": &core.Tick{Short: true},
	"lead": &core.Lead{Node: 1 << 63, Boot: "boot-1", Offset: -time.Hour},
	"put-record": &core.PutRecord{
		Namespace: "default", Path: "config/a", Value: "\x00one\xff", Session: "s1", IfRevision: 300, IfAbsent: true,
		Fence: core.Fence{Lease: "id1", Token: 5}, Request: goldenKey,
	},
	"put-version": &core.PutRecord{
		Namespace: "default", Path: "config/a", Large: goldenLarge, Keep: 300, Session: "s1", IfRevision: 300, IfAbsent: true,
		Fence: core.Fence{Lease: "id1", Token: 5}, Request: goldenKey,
	},
	"put-reason": &core.PutRecord{
		Namespace: "default", Path: "config/a", Value: "one", IfRevision: 300, Fence: core.Fence{Lease: "id1", Token: 5}, By: "ops",
		Reason: "forced", Request: goldenKey,
	},
	"acquire-foreign": &core.Acquire{
		Namespace: "default", Resource: "azure/a/b", ID: "id1", Holder: "ann", TTL: 15e9, Foreign: "0f5dd1f7-9d7c-4ef1-8d2e-6d9aa7a0b3c4", MayExpire: true, Request: goldenKey,
	},
	"txn-foreign": &core.Txn{
		Namespace: "default",
		Then: []core.Op{
			{Do: core.AcquireLease, Acquire: &core.Acquire{Namespace: "default", Resource: "r", ID: "id1", Holder: "ann", Foreign: "7587848943104623"}},
			{Do: core.AcquireLease, Acquire: &core.Acquire{Namespace: "default", Resource: "q", ID: "id2", Holder: "ann", TTL: 15e9, MayExpire: true}},
			{Do: core.Put, Path: "config/b", Value: "two", Keep: leasehold.KeepNone},
		},
		Request: goldenKey,
	},
	"break-exact": &core.Break{
		Namespace: "default", Resource: "gpu", Token: 300, All: true, Remains: true, By: "ops", Reason: "maintenance", Request: goldenKey,
	},
	"change-foreign": &core.Change{Namespace: "default", ID: "id1", NewID: "id2", Foreign: "guid-2", Request: goldenKey},
	"change-about": &core.Change{
		Namespace: "default", ID: "id1", About: &core.About{Holder: "ann@laptop", Reason: "apply", Labels: leasehold.Labels{{Key: "host", Value: "laptop"}}}, Request: goldenKey,
	},
	"txn-versions": &core.Txn{
		Namespace: "default",
		Then:      []core.Op{{Do: core.Put, Path: "config/a", Large: goldenLarge, Session: "s1"}, {Do: core.Put, Path: "config/b", Value: "two", Keep: leasehold.KeepNone}},
		Else:      []core.Op{{Do: core.Put, Path: "config/a", From: 300}, {Do: core.Get, Path: "config/b"}},
		Request:   goldenKey,
	},
	"delete-record": &core.DeleteRecord{
		Namespace: "default", Path: "config/", Range: true, To: "config0", IfRevision: 6, Fence: core.Fence{Lease: "id1", Token: 5}, Request: goldenNumber,
	},
	"move": &core.Move{Namespace: "default", ID: "id1", Priority: -300, By: "ops", Reason: "late", Request: goldenKey},
	"ask":  &core.Ask{Namespace: "default", Resource: "reports/nightly", By: "ops", Message: "please release", Request: goldenKey},
	"txn": &core.Txn{
		Namespace: "default",
		If: []core.Compare{
			{What: core.RecordMod, Is: core.Equal, Path: "config/a", Number: 300},
			{What: core.LeaseID, Is: core.NotEqual, Path: "reports/nightly", Text: "id1"},
		},
		Then: []core.Op{{Do: core.Put, Path: "config/a", Value: "two", Session: "s1"}, {Do: core.Delete, Path: "config/b", Range: true, To: "config/d"},
			{Do: core.AcquireLease, Acquire: &core.Acquire{Namespace: "default", Resource: "r", ID: "id1", Holder: "ann", TTL: 10e9}}, {Do: core.ReleaseLease, ID: "id0"}},
		Else:    []core.Op{{Do: core.Get, Path: "config/", Range: true, To: "config0", Most: 100, KeysOnly: true, Count: true}},
		Request: goldenKey,
	},
}

var goldenLink = &core.Link{
	Resource: "locks/a", ID: "id1", Holder: "ann", Labels: goldenLabels, Reason: "because", Foreign: "694d7a", TTL: 15e9, Grace: 5e9,
	Wait: true, MayExpire: true, Stay: true, Mirror: "locks/a/", Take: true,
}

var (
	goldenSelect = &leasehold.Select{Where: "model=H100, memory>=40", Spread: true}
	goldenRule   = leasehold.Rule{Zone: "Europe/Berlin", Days: 62, At: 14 * time.Hour, Length: 4 * time.Hour, Until: goldenMoment}
	goldenLimits = []leasehold.UnitLimit{{Most: 2}, {By: leasehold.EachValue, Name: "team", Most: 300}, {By: leasehold.EachPrefix, Name: "ci/", Most: 4}}
)

func init() {
	goldenCommands["acquire-select"] = &core.Acquire{
		Namespace: "default", Resource: "gpu", ID: "id1", Holder: "ann", TTL: 10 * time.Second, Slots: 2, Select: goldenSelect, Foreign: "f1", Request: goldenKey,
		Also: []core.Item{{Resource: "disk", ID: "id2"}, {Resource: "phones", ID: "id3", Slots: 1, Select: &leasehold.Select{Units: []string{"p1"}}}},
	}
	goldenCommands["define-limits"] = &core.Define{
		Namespace: "default", Definition: leasehold.Definition{Path: "gpu", Limits: goldenLimits}, By: "ops", Fields: core.FieldLimits, Request: goldenKey,
	}
	goldenCommands["acquire-unattended"] = &core.Acquire{
		Namespace: "default", Resource: "gpu", ID: "id1", Slots: 2, Select: goldenSelect, Holder: "ann", Labels: goldenLabels, TTL: 30e9,
		Pick: core.TTLUnattended, Request: goldenKey,
	}
	goldenCommands["set-units"] = &core.SetUnits{
		Namespace: "default", Resource: "gpu", Host: "a", By: "agent", Reason: "two cards", Request: goldenKey,
		Units: []core.HostUnit{{Name: "GPU-1", Labels: goldenLabels}, {Name: "GPU-2", Unfit: "vanished"}},
	}
	goldenCommands["drain"] = &core.Drain{Namespace: "default", Resource: "gpu", Units: []string{"GPU-1"}, Why: "repair", By: "ops", Request: goldenKey}
	goldenCommands["put-task"] = &core.PutTask{
		Namespace: "default", Path: "jobs/resize-42", Value: "{}", Priority: 2, Attempts: 300, By: "ops", Request: goldenKey,
	}
	goldenCommands["finish-task"] = &core.FinishTask{
		Namespace: "default", ID: "id1", Token: 300, Failed: true, Result: "no disk", Session: "s1", Request: goldenKey,
	}
	goldenCommands["acquire-task"] = &core.Acquire{
		Namespace: "default", Resource: "jobs/", ID: "id1", Holder: "ann", TTL: 10 * time.Second, Wait: time.Minute, Foreign: "f1", Task: true, Request: goldenKey,
	}
	goldenCommands["report-use"] = &core.ReportUse{
		Namespace: "default", Resource: "gpu", Host: "a", By: "agent", Request: goldenKey,
		Units: []core.UnitReport{
			{Name: "GPU-1", Percent: 97, Memory: 40000, Processes: []core.UnitProcess{{PID: 300, User: "ann", Name: "python", Lease: "id1"}}},
			{Name: "GPU-2", Percent: pool.UnknownPercent, Unfit: "vanished"},
		},
	}
	goldenCommands["define-idle"] = &core.Define{
		Namespace: "default", Definition: leasehold.Definition{Path: "gpu", Limits: goldenLimits, Idle: 20 * time.Minute, IdleRelease: time.Hour},
		By: "ops", Fields: core.FieldLimits | core.FieldIdle | core.FieldIdleRelease, Request: goldenKey,
	}
	goldenCommands["reserve"] = &core.Reserve{
		Namespace: "default", ID: "r1", Resource: "gpu", Slots: 2, Select: goldenSelect, Holder: "ann", Reason: "demo", Length: 4 * time.Hour,
		Rule: &goldenRule, Starts: []reservation.Moment{goldenWall, goldenWall + 86400e9}, To: goldenWall + 14*86400e9, Request: goldenKey,
	}
	goldenCommands["cancel-reservation"] = &core.CancelReservation{Namespace: "default", ID: "r1", By: "ops", Reason: "moved", Request: goldenKey}
	goldenCommands["acquire-reserved"] = &core.Acquire{
		Namespace: "default", Resource: "gpu", ID: "id1", Holder: "ann", TTL: 10 * time.Second, Reservation: "r1", Request: goldenKey,
	}
	goldenCommands["define-start"] = &core.Define{
		Namespace: "default", Definition: leasehold.Definition{Path: "gpu", OnReservation: leasehold.EndAtStart}, By: "ops", Fields: core.FieldOnReservation, Request: goldenKey,
	}
	goldenCommands["define-backfill"] = &core.Define{
		Namespace: "default", Definition: leasehold.Definition{Path: "gpu", Limits: goldenLimits, OnReservation: leasehold.EndAtStart, Backfill: true},
		By: "ops", Fields: core.FieldBackfill, Request: goldenKey,
	}
	goldenCommands["put-from"] = &core.PutRecord{Namespace: "default", Path: "config/a", From: 300, KeepLink: true, Request: goldenKey}
	goldenCommands["break-waiting"] = &core.Break{Namespace: "default", ID: "id1", Waiting: true, By: "ops", Request: goldenKey}
	goldenCommands["reserve-more"] = &core.Reserve{
		Namespace: "default", ID: "r1", Resource: "gpu", From: goldenWall, Rule: &goldenRule, Starts: []reservation.Moment{goldenWall + 2*86400e9}, After: goldenWall + 86400e9,
	}
	goldenCommands["put-link"] = &core.PutRecord{
		Namespace: "default", Path: "locks/a/1", Value: "one", Session: "s1", IfAbsent: true, By: "ops", Reason: "taken", Request: goldenKey, Link: goldenLink,
	}
	goldenCommands["txn-nested"] = &core.Txn{
		Namespace: "default",
		If:        []core.Compare{{What: core.RecordLease, Is: core.Equal, Path: "config/", Text: "id1", Range: true, To: "config0"}},
		Then: []core.Op{
			{Do: core.Put, Path: "locks/a/1", Value: "one", Session: "s1", Link: goldenLink},
			{Do: core.Nested, Txn: &core.Txn{
				If:   []core.Compare{{What: core.RecordVersion, Is: core.Greater, Path: "config/a", Number: 300}},
				Then: []core.Op{{Do: core.Put, Path: "config/a", KeepValue: true, KeepSession: true, KeepLink: true, Before: true}},
				Else: []core.Op{{Do: core.Delete, Path: "config/b", Before: true}},
			}},
		},
		Else: []core.Op{{Do: core.Get, Path: "locks/a/", Range: true, To: "locks/a0", Most: 1, Select: core.Selection{
			By: core.ByCreate, Descend: true, MinCreate: 1, MaxCreate: 300, MinMod: 2, MaxMod: 400,
		}}},
	}
}

var goldenPolicy = access.Items{
	Tokens: []*access.Token{{
		ID: "t1", Hash: strings.Repeat("h", 32), Principal: "ann", Groups: []string{"team-a"}, Description: "laptop", CreatedWall: goldenWall, CreatedBy: "root",
		ExpiresWall: goldenWall + 1, UsedWall: goldenWall + 2,
	}},
	Roles:        []*access.Role{{Name: "breaker", Any: access.Of(access.Read, access.Admin), Own: access.Of(access.Break), EndOnRevoke: true}},
	Bindings:     []*access.Binding{{Name: "b1", Role: "breaker", Principal: "ann", Group: "team-a", Namespace: "default", Prefix: "a/", Holders: "team-a/"}},
	Quotas:       []*access.Quota{{Principal: "ann", Namespace: "default", Leases: 300, Sessions: 2, Waiters: 3, Records: 4, Bytes: 5, Watches: 6, Requests: 7, Renewals: 8}},
	Issuers:      []*access.Issuer{{Name: "ci", URL: "https://ci.example.com", Audiences: []string{"leasehold"}, Keys: "{}", Principal: "sub", Groups: []access.ClaimRule{{Claim: "repo", Value: "a/*", Group: "team-a"}}}},
	Certificates: []*access.Certificate{{Name: "c1", SAN: "dns:*.example.com", Principal: "host", Groups: []string{"team-a"}}},
}

var goldenFile = access.Declaration{Hash: "ffff", Server: "n1"}

var goldenOwner = &access.Owner{Principal: "ann", Group: "team-a"}

var goldenCaps = leasehold.Caps{Leases: 1000000, Sessions: 1, Waiters: 2, Namespaces: 300}

var goldenRecords = func() map[string]core.Piece {
	list := map[string]core.Piece{
		"head":          {Value: &core.Head{Now: 3600e9, Wall: goldenWall, Lead: *goldenCommands["lead"].(*core.Lead), IdleSeq: 9, AlarmOrder: 11, Raised: []uint64{1, 0, 300}}},
		"namespace":     {Space: "default", Value: &core.SpaceHead{Token: 5, Revision: 6, Arrivals: 7, LostRevision: 8, LostN: 9}},
		"session":       {Space: "default", Value: &core.Session{ID: "s1", TTL: 30e9, Labels: goldenLabels, OpenedWall: goldenWall, Expires: 3630e9, Sequence: 300, Gap: 85, Touched: &core.Touched{Count: 300, IDs: []string{"id1"}}}},
		"withdrawn-id":  {Space: "default", Value: &core.Mark{Session: "s1", ID: "id1"}},
		"resource":      {Space: "default", Value: &core.Resource{Path: "r", Claim: "id1", Waiting: 2}},
		"resource-idle": {Space: "default", Value: &core.Resource{Path: "r", Idle: 4, More: &core.More{Last: goldenEnding}}},
		"resource-shared": {Space: "default", Value: &core.Resource{Path: "gpu", Waiting: 2, More: &core.More{
			Last: goldenEnding, Rests: []core.Rest{{Slots: 2, Units: []string{"gpu0", "gpu1"}, Until: 3605e9, After: goldenEnding}, {After: goldenEnding}},
			Shares: &core.Shares{Capacity: 8, Units: []core.Unit{{Name: "gpu0", Holder: "ann", Freed: 3600e9}, {Name: "gpu1"}}},
		}}},
		"resource-usual": {Space: "default", Value: &core.Resource{Path: "r", Idle: 4, More: &core.More{
			Last: goldenEnding, Usual: &core.Usual{Holds: "\x5c\x01\x67\x55\x5d\x02\x67\x00", Waits: "\x45\x08", Lost: 3600e9, LostBefore: 3500e9},
		}}},
		"alarm": {Space: "default", Value: &core.Alarm{
			Kind: leasehold.HeldLong, Resource: "r", ID: "id1", Holder: "ann", Token: 5, Session: "s1",
			Order: 9, SinceWall: goldenWall, Last: 3600e9, LastWall: goldenWall, Count: 2, Text: "too long", Limit: 10, Quiet: true,
		}},
		"definition": {Space: "default", Value: goldenDefinition},
		"claim":      {Space: "default", Value: &core.Claim{ID: "id1", Resource: "r", Holder: "ann", TTL: 10e9, Token: 5, Since: 3600e9, SinceWall: goldenWall, Revision: 6, Expires: 3610e9, Gap: 85, Long: 200, Overdue: true, Native: true}},
		"claim-terms": {Space: "default", Value: &core.Claim{
			ID: "id2", Resource: "r", Holder: "bob", Session: "s1", Since: 3600e9, SinceWall: goldenWall, Revision: 7, Slots: 2,
			Terms: &core.Terms{
				Reason: "because", Labels: goldenLabels, Party: "p1", Grace: 5e9, HoldLimit: 3600e9, Expected: 1800e9, BreakAt: 3601e9, BreakBy: "ops", BreakReason: "stuck",
				Units: []string{"gpu0", "gpu1"}, After: goldenEnding, Waited: 2e9, ChangedWall: goldenWall,
				Foreign: "guid-2", MayExpire: true, Door: "azure", Note: goldenNote, NotedWall: goldenWall, Linked: &core.LinkedRecord{Path: "locks/r", Stay: true, Made: true},
			},
		}},
		"claim-waits": {Space: "default", Value: &core.Claim{
			ID: "id3", Resource: "r", Holder: "bob", Since: 3600e9, SinceWall: goldenWall, Revision: 7, Expires: 3615e9, Slots: 1,
			Wait: &core.Wait{Until: 3660e9, Priority: -7, Order: 3, With: []string{"id3", "id4"}},
		}},
		"ended-claim":   {Space: "default", Value: &core.EndedClaim{ID: "id1", Resource: "r", Holder: "ann", Token: 5, How: leasehold.IDChanged, At: 3600e9, Next: "id2"}},
		"ended-session": {Space: "default", Value: &core.EndedSession{ID: "s1", How: leasehold.SessionExpired, At: 3600e9}},
		"event": {Space: "default", Value: &leasehold.Event{
			Namespace: "default", Revision: 6, N: 1, Kind: leasehold.Ended, How: leasehold.ByBreak, At: goldenMoment, Until: goldenPast, Resource: "r",
			ID: "id1", Holder: "ann", Token: 5, Session: "s1", By: "ops", Reason: "stuck", Foreign: "guid-1",
			Hold: &leasehold.Hold{ID: "id1", Holder: "ann", Token: 5, Since: goldenPast, Until: goldenMoment, Waited: 300},
		}},
	}
	changed := &leasehold.Record{Path: "config/a", Value: "\x00one\xff", Create: 3, Mod: 6, Version: 300, Session: "s1", Token: 5, Lease: "id1"}
	list["record"] = core.Piece{Space: "default", Value: changed}
	list["event-put"] = core.Piece{Space: "default", Value: &leasehold.Event{
		Namespace: "default", Revision: 6, Kind: leasehold.RecordPut, At: goldenMoment, Resource: "config/a", Token: 5, Session: "s1",
		Record: changed, Previous: &leasehold.Record{Path: "config/a", Value: "zero", Create: 3, Mod: 5, Version: 299},
	}}
	list["event-deleted"] = core.Piece{Space: "default", Value: &leasehold.Event{
		Namespace: "default", Revision: 7, N: 1, Kind: leasehold.RecordDeleted, How: leasehold.SessionExpired, At: goldenMoment, Resource: "config/a",
		Session: "s1", Previous: changed,
	}}
	list["event-alarmed"] = core.Piece{Space: "default", Value: &leasehold.Event{
		Namespace: "default", Revision: 7, N: 1, Kind: leasehold.Alarmed, Alarm: leasehold.LateRenewal, At: goldenMoment, Resource: "r",
		ID: "id1", Holder: "ann", Token: 5, Session: "s1", Reason: "late",
	}}
	list["event-changed"] = core.Piece{Space: "default", Value: &leasehold.Event{
		Namespace: "default", Revision: 6, Kind: leasehold.Changed, At: goldenMoment, Resource: "r", ID: "id2", Holder: "bob", Token: 6,
		Hold: &leasehold.Hold{ID: "id1", Holder: "ann", Token: 5, Since: goldenPast, Until: goldenMoment},
	}}
	list["record-large"] = core.Piece{Space: "default", Value: &leasehold.Record{Path: "config/a", Large: goldenLarge, Create: 3, Mod: 6, Version: 300, Session: "s1", Token: 5}}
	list["event-put-large"] = core.Piece{Space: "default", Value: &leasehold.Event{
		Namespace: "default", Revision: 6, Kind: leasehold.RecordPut, At: goldenMoment, Resource: "config/a", Token: 5, Session: "s1",
		Record: &leasehold.Record{Path: "config/a", Large: goldenLarge, Create: 3, Mod: 6, Version: 300, Token: 5}, Previous: changed,
	}}
	list["shelf"] = core.Piece{Space: "default", Value: &core.Shelf{Path: "config/a", Keep: 300, Written: goldenWall, Holder: "ann"}}
	list["shelf-deleted"] = core.Piece{Space: "default", Value: &core.Shelf{Path: "config/a", Keep: 20, Deleted: 3600e9}}
	list["version"] = core.Piece{Space: "default", Value: &leasehold.Version{
		Path: "config/a", Value: "\x00one\xff", Revision: 6, Create: 3, Version: 300, Written: goldenMoment, Holder: "ann", Session: "s1", Token: 5, Deleted: true,
	}}
	list["chore-session"] = core.Piece{Space: "default", Value: &core.Chore{Kind: core.CollectSession, Name: "s1", Order: 300, Left: &core.Left{
		TTL: 30e9, Gap: 7, How: leasehold.SessionExpired, At: 3600e9, Leases: 300, Resource: "r", Holder: "ann",
	}}}
	list["chore-queue"] = core.Piece{Space: "default", Value: &core.Chore{Kind: core.HandOver, Name: "r", Order: 1}}
	list["chore-definition"] = core.Piece{Space: "default", Value: &core.Chore{Kind: core.FollowDefinition, Name: "gpu/", Order: 2, Path: "gpu/7"}}
	list["version-large"] = core.Piece{Space: "default", Value: &leasehold.Version{Path: "config/a", Large: goldenLarge, Revision: 6, Create: 3, Version: 300}}
	list["restored"] = core.Piece{Value: &core.Restored{
		Base: 3 << 40, Wall: goldenWall, Quarantine: 30e9, Until: 3630e9, Space: "default", Path: "config/a",
	}}
	list["restored-over"] = core.Piece{Value: &core.Restored{Base: 1 << 40, Wall: goldenWall, Until: 3630e9, Over: true}}
	list["totals"] = core.Piece{Value: &core.Totals{Caps: goldenCaps, Set: true, Token: 300, Revision: 400, Swept: "default"}}
	list["totals-unset"] = core.Piece{Value: &core.Totals{}}
	list["namespace-changed"] = core.Piece{Space: "default", Value: &core.SpaceHead{
		Token: 5, Revision: 6, Arrivals: 7, LostRevision: 8, LostN: core.AllOf, Changed: 3600e9,
	}}
	list["policy"] = core.Piece{Value: &core.PolicyHead{Revision: 300, Declared: goldenFile}}
	list["token"] = core.Piece{Value: goldenPolicy.Tokens[0]}
	list["role"] = core.Piece{Value: goldenPolicy.Roles[0]}
	list["binding"] = core.Piece{Value: goldenPolicy.Bindings[0]}
	list["quota"] = core.Piece{Value: goldenPolicy.Quotas[0]}
	list["issuer"] = core.Piece{Value: goldenPolicy.Issuers[0]}
	list["certificate"] = core.Piece{Value: goldenPolicy.Certificates[0]}
	list["session-owned"] = core.Piece{Space: "default", Value: &core.Session{ID: "s1", TTL: 30e9, Expires: 3630e9, Owner: goldenOwner}}
	list["claim-owner"] = core.Piece{Space: "default", Value: &core.ClaimOwner{ID: "id1", Owner: goldenOwner}}
	list["ended-claim-owned"] = core.Piece{Space: "default", Value: &core.EndedClaim{ID: "id1", Resource: "r", Holder: "ann", Token: 5, How: leasehold.ByTTL, At: 3600e9, Owner: goldenOwner}}
	list["ended-claim-finished"] = core.Piece{Space: "default", Value: &core.EndedClaim{ID: "id1", Resource: "jobs/a", Holder: "ann", Token: 5, How: leasehold.Released, At: 3600e9, Said: 1 << 63, Owner: goldenOwner}}
	list["event-owned"] = core.Piece{Space: "default", Value: &leasehold.Event{
		Namespace: "default", Revision: 6, Kind: leasehold.SessionOpened, At: goldenMoment, Session: "s1", Owner: goldenOwner,
	}}
	list["ended-session-owned"] = core.Piece{Space: "default", Value: &core.EndedSession{ID: "s1", How: leasehold.SessionExpired, At: 3600e9, Owner: goldenOwner}}
	list["revocation"] = core.Piece{Value: &core.Revocation{Order: 300, By: "root", Space: "default", ID: "id1"}}
	list["withdrawal"] = core.Piece{Value: &core.Withdrawal{By: "root", At: 3, Space: "default", Resource: "a", Priority: 2, Order: 300}}
	list["loss"] = core.Piece{Value: &core.Loss{Order: 300, Loss: access.Loss{Principal: "ann", Group: "team-a", Namespace: "*", Prefix: "a/"}}}
	list["mirror"] = core.Piece{Space: "default", Value: &core.Mirror{Resource: "locks/a", Prefix: "locks/a/"}}
	list["pool-unit"] = core.Piece{Space: "default", Value: &pool.Unit{
		Pool: "gpu", Host: "a", Name: "GPU-1", Labels: goldenLabels, Unfit: "vanished", Drained: "repair", Removed: true, Holder: "ann", Freed: 3600e9,
	}}
	list["kind"] = core.Piece{Space: "default", Value: &core.Kind{
		Resource: "gpu", Name: "python train.py|trainer", Recent: usage.Recent("").Add(4*time.Hour, leasehold.Released, 2*time.Minute, 90),
	}}
	list["claim-select"] = core.Piece{Space: "default", Value: &core.Claim{
		ID: "id1", Resource: "gpu", Holder: "ann", Token: 5, Slots: 2, Terms: &core.Terms{Units: []string{"GPU-1", "GPU-2"}, Select: goldenSelect},
	}}
	list["task"] = core.Piece{Space: "default", Value: &leasehold.Task{
		Path: "jobs/resize-42", State: leasehold.TaskDoing, Priority: 2, Attempts: 1, MaxAttempts: 300, Lease: "id1", Holder: "ann", Token: 5, Result: "no disk",
		Changed: goldenMoment, Order: 300,
	}}
	list["claim-task"] = core.Piece{Space: "default", Value: &core.Claim{ID: "id1", Resource: "jobs/resize-42", Holder: "ann", Token: 5, Terms: &core.Terms{Task: true}}}
	list["calendar"] = core.Piece{Value: &core.Calendar{Date: goldenWall}}
	list["reservation"] = core.Piece{Space: "default", Value: &reservation.Reservation{
		ID: "r1@20261118T140000Z", Resource: "gpu", Holder: "ann", Reason: "demo", Slots: 2, Select: goldenSelect, From: goldenWall, Until: goldenWall + 3600e9, Series: "r1",
		Owner: goldenOwner, Units: []string{"GPU-1", "GPU-2"}, Told: true, Begun: true, ClaimBy: goldenWall + 900e9, Lease: "id1", Over: goldenWall + 1, Why: "cancelled",
	}}
	list["series"] = core.Piece{Space: "default", Value: &reservation.Series{
		ID: "r1", Resource: "gpu", Holder: "ann", Reason: "demo", Slots: 2, Select: goldenSelect, Rule: goldenRule, Expanded: goldenWall, Owner: goldenOwner,
	}}
	list["claim-reserved"] = core.Piece{Space: "default", Value: &core.Claim{
		ID: "id1", Resource: "gpu", Holder: "ann", Token: 5, Slots: 2, Terms: &core.Terms{Units: []string{"GPU-1", "GPU-2"}, Select: goldenSelect, Reservation: "r1"},
	}}
	list["definition-start"] = core.Piece{Space: "default", Value: &leasehold.Definition{Path: "gpu", Limits: goldenLimits, OnReservation: leasehold.EndAtStart, Revision: 300}}
	list["outcome-start"] = core.Piece{Space: "default", Value: &core.Outcome{
		Key: "kkey-1", Subject: "define gpu", At: 3600e9, Answer: core.Answer{Definition: &leasehold.Definition{Path: "gpu", OnReservation: leasehold.WarnAtStart}},
	}}
	list["definition-backfill"] = core.Piece{Space: "default", Value: &leasehold.Definition{Path: "gpu", Limits: goldenLimits, Backfill: true, Revision: 300}}
	list["outcome-backfill"] = core.Piece{Space: "default", Value: &core.Outcome{
		Key: "kkey-1", Subject: "define gpu", At: 3600e9, Answer: core.Answer{Definition: &leasehold.Definition{Path: "gpu", Backfill: true}},
	}}
	list["definition-limits"] = core.Piece{Space: "default", Value: &leasehold.Definition{Path: "gpu", Limits: goldenLimits, Revision: 300}}
	list["outcome-limits"] = core.Piece{Space: "default", Value: &core.Outcome{
		Key: "kkey-1", Subject: "define gpu", At: 3600e9, Answer: core.Answer{Definition: &leasehold.Definition{Path: "gpu", Limits: goldenLimits}},
	}}
	list["quiet-queue"] = core.Piece{Space: "default", Value: &core.QuietQueue{Pool: "gpu", Until: 3600e9}}
	list["unit-use"] = core.Piece{Space: "default", Value: &core.UnitUse{Pool: "gpu", Unit: "GPU-1", Use: pool.Use{
		At: 3600e9, Percent: pool.UnknownPercent, Memory: 40000, Strangers: []pool.Process{{PID: 300, User: "bob", Name: "python"}},
		Idle: 1800e9, Asked: 3000e9, Busy: time.Hour, Unused: 90 * time.Second,
	}}}
	list["definition-idle"] = core.Piece{Space: "default", Value: &leasehold.Definition{
		Path: "gpu", Limits: goldenLimits, Idle: 20 * time.Minute, IdleRelease: time.Hour, Revision: 300,
	}}
	list["outcome-idle"] = core.Piece{Space: "default", Value: &core.Outcome{
		Key: "kkey-1", Subject: "define gpu", At: 3600e9, Answer: core.Answer{Definition: &leasehold.Definition{Path: "gpu", Idle: 20 * time.Minute}},
	}}
	list["event-used"] = core.Piece{Space: "default", Value: &leasehold.Event{
		Namespace: "default", Revision: 6, Kind: leasehold.Ended, How: leasehold.Released, At: goldenMoment, Resource: "gpu", ID: "id1", Holder: "ann", Token: 5,
		Hold:  &leasehold.Hold{ID: "id1", Holder: "ann", Token: 5, Since: goldenMoment, Until: goldenMoment, Busy: time.Hour, Idle: time.Minute},
		Owner: goldenOwner,
	}}
	list["record-owner"] = core.Piece{Space: "default", Value: &core.RecordOwner{Path: "config/a", Owner: goldenOwner}}
	for name, a := range goldenAnswers {
		list["outcome-"+name] = core.Piece{Space: "default", Value: &core.Outcome{Key: "kkey-1", Subject: "acquire r", At: 3600e9, Answer: a}}
	}
	return list
}()
