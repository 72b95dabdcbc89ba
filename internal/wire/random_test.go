package wire

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A dice fills values at random. It finds the fields by reflection: one that is new in
// the core and forgotten in a layout comes back empty, and the round trip tells.
type dice struct {
	*rand.Rand
	lengths []int // of texts
}

func newDice(seed uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, 0)), []int{0, 1, 7, 36, 127, 128, 300}}
}

func (d dice) fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *leasehold.State:
		*p = leasehold.State(1 + d.IntN(int(leasehold.Expired)))
	case *leasehold.How:
		*p = leasehold.How(1 + d.IntN(int(leasehold.WaitOver)))
	case *leasehold.Kind:
		*p = leasehold.Kind(1 + d.IntN(int(kinds.Last)))
	case *leasehold.AlarmKind:
		*p = leasehold.AlarmKinds[d.IntN(int(leasehold.LateRenewal))] // that of a quarantine is never kept
	case *core.Usual:
		*p = core.Usual{Holds: string([]byte{d.step(), byte(leasehold.ByTTL), 100, 80}), Waits: string([]byte{d.step(), d.step()})}
		d.fill(reflect.ValueOf(&p.Lost).Elem())
		d.fill(reflect.ValueOf(&p.LostBefore).Elem())
	case *leasehold.Code:
		*p = leasehold.Codes[d.IntN(len(leasehold.Codes))]
	case *core.What:
		*p = core.What(1 + d.IntN(int(command.Whats.Last)))
	case *core.Relation:
		*p = core.Relation(1 + d.IntN(int(command.Relations.Last)))
	case *leasehold.Unclean:
		*p = leasehold.Unclean(d.IntN(1 + int(command.Uncleans.Last)))
	case *core.ChoreKind:
		*p = core.ChoreKind(1 + d.IntN(int(chores.Last)))
	case *core.TTLPick:
		*p = core.TTLPick(d.IntN(1 + int(command.Picks.Last)))
	case *core.Rest:
		d.fillKind(v)
		if p.After == nil {
			p.After = &core.Ending{How: leasehold.ByTTL}
		}
	case *core.Do:
		*p = core.Do(1 + d.IntN(int(command.Doings.Last)))
	case **core.RecordPage, **core.AccessAnswer: // never in a log or a snapshot
	case *leasehold.Large:
		p.Size = int64(d.bits() >> 1)
		for i := range p.SHA256 {
			p.SHA256[i] = d.step()
		}
	case *core.PutRecord:
		if d.fillKind(v); p.Large != nil {
			p.Value = ""
		}
	case *core.Op:
		if d.fillKind(v); p.Large != nil {
			p.Value = ""
		}
	case *leasehold.Task:
		d.fillKind(v)
		p.Namespace = "" // that of its piece
	case *leasehold.TaskState:
		*p = leasehold.TaskState(1 + d.IntN(int(taskStates.Last)))
	case *leasehold.Waiter:
		d.fillKind(v)
		p.ForecastError = 0 // that is not remembered
	case *leasehold.Error:
		d.fillKind(v)
		p.ForecastError = 0
	case *leasehold.AtStart:
		*p = leasehold.AtStart(d.IntN(1 + int(command.AtStarts.Last)))
	case **leasehold.Upcoming: // part of no format
	case *leasehold.LimitBy:
		*p = leasehold.LimitBy(d.IntN(1 + int(command.LimitsBy.Last)))
	case *pool.Unit:
		d.fillKind(v)
		p.Lease, p.Use = "", nil // they are told by the lease, and by a piece of their own
	case **core.Txn: // nested; rarely, or there would be no end
		if d.IntN(8) == 0 {
			*p = new(core.Txn)
			d.fill(reflect.ValueOf(*p).Elem())
			(*p).Namespace, (*p).Request = "", core.Request{}
		}
	case **core.TxnAnswer:
		if d.IntN(8) == 0 {
			*p = new(core.TxnAnswer)
			d.fill(reflect.ValueOf(*p).Elem())
		}
	case *[]*leasehold.Record: // what was read is never remembered
	case *record.Order:
		*p = record.Order(d.IntN(1 + int(command.Sortings.Last)))
	case *leasehold.Record:
		if d.fillKind(v); p.Large != nil {
			p.Value = ""
		}
	case *leasehold.Version:
		if d.fillKind(v); p.Large != nil {
			p.Value = ""
		}
		p.Current = false
	case *core.RecordOwner:
		*p = core.RecordOwner{Path: d.text(), Owner: new(access.Owner)}
		d.fill(reflect.ValueOf(p.Owner).Elem())
	case *core.ClaimOwner:
		*p = core.ClaimOwner{ID: d.text(), Owner: new(access.Owner)}
		d.fill(reflect.ValueOf(p.Owner).Elem())
	case *access.Owner:
		*p = access.Owner{Principal: "p" + d.text(), Group: d.text()}
	case *access.Token, *access.Role, *access.Binding, *access.Quota, *access.Issuer, *access.ClaimRule,
		*access.Certificate, *core.HostUnit, *core.UnitReport, *core.Item:
		d.fillKind(v)
		v.Field(0).SetString("n" + d.text()) // its name
	case *leasehold.Labels:
		*p = d.labels()
	case *time.Time:
		if d.IntN(4) > 0 {
			*p = time.Unix(0, int64(d.bits())).UTC()
		}
	default:
		d.fillKind(v)
	}
}

func (d dice) fillKind(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(d.bits()))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(d.bits() >> (64 - v.Type().Bits()))
	case reflect.String:
		v.SetString(d.text())
	case reflect.Pointer:
		if d.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			d.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				d.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range d.IntN(4) {
			if item := v.Type().Elem(); item.Kind() == reflect.Pointer {
				v.Set(reflect.Append(v, reflect.New(item.Elem())))
				d.fill(v.Index(i).Elem())
				continue
			}
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			d.fill(v.Index(i))
		}
	default:
		panic("no dice for " + v.Type().String())
	}
}

func (d dice) step() byte { return byte(d.Uint32()) }

// bits returns a number of any length, long ones no more often than short ones.
func (d dice) bits() uint64 { return d.Uint64() >> d.IntN(64) }

func (d dice) text() string {
	b := make([]byte, d.lengths[d.IntN(len(d.lengths))])
	for i := range b {
		b[i] = byte(d.Uint32())
	}
	return string(b)
}

func (d dice) labels() leasehold.Labels {
	var keys []string
	for range d.IntN(4) {
		keys = append(keys, "k"+d.text())
	}
	slices.Sort(keys)
	var labels leasehold.Labels
	for _, key := range slices.Compact(keys) {
		labels = append(labels, leasehold.Label{Key: key, Value: d.text()})
	}
	return labels
}

// piece returns a piece of a snapshot, be it one that a state has or not.
func (d dice) piece() core.Piece {
	row := pieceKinds[1+d.IntN(kindsOfRecords-1)]
	want := row.fresh()
	d.fill(reflect.ValueOf(want).Elem())
	want = plain(want)
	space := ""
	if !row.wide {
		space = "s" + d.text()
	}
	if e, ok := want.(*leasehold.Event); ok {
		e.Namespace, e.Own = space, false
		if e.Kind != leasehold.Changed && e.Hold != nil {
			e.Hold.ID, e.Hold.Holder, e.Hold.Token = e.ID, e.Holder, e.Token
		}
	}
	if h, ok := want.(*core.Head); ok {
		h.Level = 0 // it stands before all records
	}
	return core.Piece{Space: space, Value: want}
}

// command returns any command, be it one that the core accepts or not.
func (d dice) command() core.Command {
	verbs := command.Verbs()
	c := verbs[d.IntN(len(verbs))].New()
	d.fill(reflect.ValueOf(c).Elem())
	return c
}

func (d dice) origin() (o leasehold.Origin) {
	if d.IntN(2) == 0 {
		d.fill(reflect.ValueOf(&o).Elem())
	}
	return o
}

func (d dice) asker() *access.Asker {
	switch d.IntN(4) {
	case 0:
		return &access.System
	case 1:
		a := &access.Asker{Principal: "p" + d.text(), Token: d.text()}
		for range d.IntN(3) {
			a.Groups = append(a.Groups, "g"+d.text())
		}
		return a
	}
	return nil
}

func (d dice) entry(commands int) *Entry {
	e := &Entry{}
	e.Term, e.Stamp, e.Wall = d.bits(), core.Time(d.bits()), int64(d.bits())
	for range commands {
		e.Commands = append(e.Commands, d.command())
	}
	d.say(e)
	return e
}

// say writes beside commands who asked for them, and from where.
func (d dice) say(e *Entry) {
	for i := range e.Commands {
		if o := d.origin(); o != (leasehold.Origin{}) {
			e.setOrigin(i, o)
		}
		if a := d.asker(); a != nil {
			e.setAsker(i, a)
		}
	}
}

// plain returns a copy of a record's value with what a snapshot keeps of it.
func plain(value any) any {
	from := reflect.ValueOf(value).Elem()
	to := reflect.New(from.Type())
	for i := range from.NumField() {
		if from.Type().Field(i).IsExported() {
			to.Elem().Field(i).Set(from.Field(i))
		}
	}
	if s, ok := to.Interface().(*core.Session); ok {
		s.Claims = 0
	}
	return to.Interface()
}

// A world is a state that things happen to at random, in few enough places that they
// meet.
type world struct {
	dice
	*core.State
	at core.Time
}

func newWorld(seed uint64) *world { return &world{newDice(seed), core.New(), 1} }

// batch returns the next few commands and when they happen.
func (w *world) batch() (core.Time, []core.Command) {
	w.at += core.Time(w.Int64N(int64(4 * time.Second)))
	commands := make([]core.Command, 1+w.IntN(8))
	for i := range commands {
		commands[i] = w.event()
	}
	return w.at, commands
}

func (w *world) name(prefix string, n int) string { return fmt.Sprintf("%s%d", prefix, w.IntN(n)) }

func (w *world) some(d time.Duration) time.Duration {
	return time.Duration(w.IntN(2)) * (time.Second + time.Duration(w.Int64N(int64(d))))
}

func (w *world) request() core.Request {
	switch w.IntN(3) {
	case 0:
		return core.Request{Key: w.name("key", 1000)}
	case 1:
		return core.Request{Session: w.name("s", 3), Sequence: 1 + w.Uint64N(2000)}
	}
	return core.Request{}
}

func (w *world) event() core.Command {
	ns := w.name("space", 3)
	switch w.IntN(21) {
	case 20:
		return &core.RaiseTokens{Namespace: ns, Above: leasehold.Token(1 + w.IntN(1000)), By: "ops", Reason: "seen"}
	case 19:
		return &core.AcknowledgeAlarm{Namespace: ns, Kind: leasehold.UncleanEnd, Resource: w.name("r", 9), Order: uint64(1 + w.IntN(100)), By: "ops", Request: w.request()}
	case 18:
		return &core.Acknowledge{Namespace: ns, Resource: w.name("r", 9), Token: leasehold.Token(1 + w.IntN(100)), By: "ops", Request: w.request()}
	case 17:
		return &core.Undefine{Namespace: ns, Path: w.name("r", 9), By: "ops", Request: w.request()}
	case 16:
		define := &core.Define{Namespace: ns, Definition: w.definition(), By: "ops", Request: w.request()}
		if w.IntN(3) == 0 {
			define.Fields, define.KeepSlots = core.FieldSlots|core.FieldGrace, w.IntN(2) == 0
			define.Definition = define.Over(nil)
		}
		return define
	case 15:
		return &core.Move{Namespace: ns, ID: w.name("id", 200), Priority: w.IntN(5) - 2, By: "ops", Request: w.request()}
	case 14:
		return &core.Ask{Namespace: ns, Resource: w.name("r", 9), By: "ops", Message: "please", Request: w.request()}
	case 11:
		put := &core.PutRecord{Namespace: ns, Path: w.name("p", 9), Value: w.text(), Session: w.name("s", 6), Request: w.request()}
		if w.IntN(2) == 0 {
			put.Value, put.Large, put.Session = "", &leasehold.Large{SHA256: leasehold.Digest{byte(w.IntN(5))}, Size: 1}, ""
		}
		put.Keep = w.IntN(5) - 1
		if w.IntN(4) == 0 {
			put.By, put.Reason = "ops", w.text()
		}
		if put.Large == nil && w.IntN(2) == 0 {
			w.link(put)
		}
		return put
	case 12:
		return &core.DeleteRecord{Namespace: ns, Path: w.name("p", 9), Range: w.IntN(2) == 0, Request: w.request()}
	case 13:
		if w.IntN(2) == 0 {
			return w.nested(ns)
		}
		return &core.Txn{
			Namespace: ns, If: []core.Compare{{What: core.RecordVersion, Is: core.Less, Path: w.name("p", 9), Number: w.Uint64N(4)}},
			Then: []core.Op{{Do: core.Put, Path: w.name("p", 9), Value: w.text(), Keep: w.IntN(3)}}, Else: []core.Op{{Do: core.Delete, Path: w.name("p", 9)}},
			Request: w.request(),
		}
	case 0:
		return &core.OpenSession{Namespace: ns, ID: w.name("s", 6), TTL: 20 * time.Second, Labels: w.labels(), Request: w.request()}
	case 1:
		return &core.CloseSession{Namespace: ns, ID: w.name("s", 6), Request: w.request()}
	case 2:
		return &core.Release{Namespace: ns, ID: w.name("id", 200), Request: w.request()}
	case 3:
		return &core.Change{Namespace: ns, ID: w.name("id", 200), NewID: w.name("id", 200), Holder: w.name("holder", 3), Request: w.request()}
	case 4:
		if w.IntN(3) == 0 {
			return &core.Break{Namespace: ns, Resource: w.name("r", 9), Token: leasehold.Token(1 + w.IntN(300)), All: w.IntN(2) == 0, By: "ops", Request: w.request()}
		}
		return &core.Break{Namespace: ns, ID: w.name("id", 200), Period: w.some(20 * time.Second), Waiting: w.IntN(4) == 0, By: "ops", Reason: strings.Repeat("x", w.IntN(300)), Request: w.request()}
	case 5:
		if note := w.text(); len(note)%2 == 1 && len(note) <= leasehold.MaxNote {
			return &core.Renew{Namespace: ns, ID: w.name("id", 200), Note: &note}
		}
		return &core.Tick{}
	case 6:
		return &core.Lead{Node: w.bits(), Boot: w.text(), Offset: time.Duration(w.bits())}
	}
	a := &core.Acquire{
		Namespace: ns, Resource: w.name("r", 9), ID: w.name("id", 200), Holder: w.name("holder", 3), Labels: w.labels(),
		Wait: w.some(time.Minute), Grace: w.some(20 * time.Second), HoldLimit: w.some(time.Minute), Request: w.request(),
	}
	if w.IntN(2) == 0 {
		a.TTL = 10 * time.Second
	} else {
		a.Session = w.name("s", 6)
	}
	if w.IntN(2) == 0 {
		a.Slots, a.Capacity = 1+w.IntN(2), 3
	}
	if w.IntN(4) == 0 {
		a.Also = []core.Item{{Resource: w.name("r", 9), ID: w.name("id", 200), Slots: w.IntN(2)}}
	}
	if w.IntN(4) == 0 {
		a.Foreign = w.name("guid", 9)
	}
	a.MayExpire = w.IntN(4) == 0
	return a
}

// link makes a put one of a linked record: below a mirror prefix or not.
func (w *world) link(put *core.PutRecord) {
	if w.IntN(4) == 0 {
		put.KeepLink = true
		return
	}
	l := &core.Link{Resource: w.name("r", 9), ID: w.name("id", 200), Holder: w.name("holder", 3), Labels: w.labels(), Wait: w.IntN(2) == 0, Grace: w.some(20 * time.Second)}
	switch w.IntN(3) {
	case 0:
		l.Mirror = l.Resource + "/"
		put.Path = l.Mirror + l.ID
	case 1:
		l.Stay, l.Take = w.IntN(2) == 0, w.IntN(2) == 0
	}
	if w.IntN(2) == 0 {
		put.Session, l.TTL = "", 10*time.Second
	}
	put.Link = l
}

func (w *world) nested(ns string) *core.Txn {
	return &core.Txn{
		Namespace: ns, If: []core.Compare{{What: core.RecordLease, Is: core.NotEqual, Path: "p", Range: true, To: "p5", Text: "id1"}},
		Then: []core.Op{{Do: core.Nested, Txn: &core.Txn{
			If:   []core.Compare{{What: core.RecordCreate, Is: core.Equal, Path: w.name("p", 9)}},
			Then: []core.Op{{Do: core.Delete, Path: w.name("p", 9)}},
			Else: []core.Op{{Do: core.Put, Path: w.name("p", 9), KeepValue: true, KeepSession: true}},
		}}},
		Else:    []core.Op{{Do: core.Put, Path: w.name("q", 9), Session: w.name("s", 6), Link: &core.Link{Resource: w.name("r", 9), ID: w.name("id", 200), Holder: "h", Wait: true}}},
		Request: w.request(),
	}
}

func (w *world) definition() leasehold.Definition {
	d := leasehold.Definition{Path: w.name("r", 9), Grace: w.some(20 * time.Second), Unclean: leasehold.Unclean(w.IntN(3))}
	if w.IntN(2) == 0 {
		d.Units = []string{"u0", "u1", "u2"}
	}
	return d
}

func (w *world) step(t *testing.T) (core.Time, []core.Command, core.Result) {
	t.Helper()
	at, commands := w.batch()
	result, err := w.Apply(at, int64(at)+1e18, commands)
	if err != nil {
		t.Fatal(err)
	}
	return at, commands, result
}
