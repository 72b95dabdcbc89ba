package kernel_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/record"
)

// This file is the language of the stories: how a line becomes a command, how a
// command becomes a line, and how answers and events are told. testdata/README.txt
// explains it to those who write stories.

// Stories and random logs count from 0s. For the core that is some moment like any
// other, on a calendar that has nothing to do with it.
const start = core.Time(time.Hour)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func stampOf(d time.Duration) core.Time { return start + core.Time(d) }
func wallOf(d time.Duration) int64      { return epoch.Add(d).UnixNano() }

// A phrase is a line of a story taken apart: words in a fixed order, then options
// and flags in any order.
type phrase struct {
	verb    string
	words   []string
	options map[string]string
	problem error // the first thing that was wrong with it
}

func newPhrase(line string) *phrase {
	p := &phrase{options: map[string]string{}}
	for i, field := range fields(line) {
		key, value, isOption := strings.Cut(field, "=")
		switch {
		case i == 0:
			p.verb = field
		case isOption:
			p.options[key] = value
		default:
			p.words = append(p.words, field)
		}
	}
	return p
}

// fields splits a line at its blanks, except within quotation marks, which vanish.
func fields(line string) (list []string) {
	field, quoted, begun := "", false, false
	for _, r := range line + " " {
		switch {
		case r == '"':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted && begun:
			list = append(list, field)
			field, begun = "", false
		case r == ' ' && !quoted:
		default:
			field, begun = field+string(r), true
		}
	}
	return list
}

func (p *phrase) wrong(format string, args ...any) {
	if p.problem == nil {
		p.problem = fmt.Errorf(format, args...)
	}
}

// word takes the next word.
func (p *phrase) word(what string) string {
	if len(p.words) == 0 {
		p.wrong("%s needs a %s", p.verb, what)
		return ""
	}
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

// flag takes a word that stands anywhere among those that are left.
func (p *phrase) flag(name string) bool {
	i := slices.Index(p.words, name)
	if i >= 0 {
		p.words = slices.Delete(p.words, i, i+1)
	}
	return i >= 0
}

// option takes an option, or what it is when nobody said it.
func (p *phrase) option(name, otherwise string) string {
	value, ok := p.options[name]
	if !ok {
		return otherwise
	}
	delete(p.options, name)
	return value
}

// note is nil if the line says nothing of one; "none" takes it away.
func (p *phrase) note() *string {
	text := p.option("note", "")
	if text == "" {
		return nil
	}
	text = strings.TrimPrefix(text, "none")
	return &text
}

func writeNote(note *string) string {
	if note != nil && *note == "" {
		return option("note", "none")
	}
	if note != nil {
		return option("note", *note)
	}
	return ""
}

func (p *phrase) duration(name string) time.Duration {
	text := p.option(name, "0s")
	d, err := time.ParseDuration(text)
	if err != nil {
		p.wrong("%s=%s is no duration", name, text)
	}
	return d
}

func (p *phrase) number(name string) uint64 {
	text := p.option(name, "0")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		p.wrong("%s=%s is no number", name, text)
	}
	return n
}

func (p *phrase) namespace() string { return p.option("ns", leasehold.DefaultNamespace) }

// labels takes every option of the form label.host=h1.
func (p *phrase) labels() (labels leasehold.Labels) {
	for _, name := range slices.Sorted(maps.Keys(p.options)) {
		if key, ok := strings.CutPrefix(name, "label."); ok {
			labels = append(labels, leasehold.Label{Key: key, Value: p.option(name, "")})
		}
	}
	return labels
}

// request takes key=K, or session-seq=S/7 for the seventh request of session S.
func (p *phrase) request() (r core.Request) {
	r.Key = p.option("key", "")
	if text := p.option("session-seq", ""); text != "" {
		session, number, _ := strings.Cut(text, "/")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			p.wrong("session-seq=%s is not of the form session/number", text)
		}
		r.Session, r.Sequence = session, n
	}
	return r
}

// end complains of what nobody took: a misspelt option must not pass for one that
// changed nothing.
func (p *phrase) end() error {
	for _, word := range p.words {
		p.wrong("%s does not understand %q", p.verb, word)
	}
	for name := range p.options {
		p.wrong("%s has no option %s", p.verb, name)
	}
	return p.problem
}

// parseCommand reads one command.
func parseCommand(line string) (core.Command, error) {
	if line == "txn" || strings.HasPrefix(line, "txn ") {
		return parseTxn(line)
	}
	p := newPhrase(line)
	c := p.command()
	return c, p.end()
}

func (p *phrase) command() core.Command {
	switch p.verb {
	case "acquire":
		return p.acquire()
	case "renew":
		return &core.Renew{ID: p.word("lease id"), Namespace: p.namespace(), Note: p.note()}
	case "release":
		return &core.Release{
			ID: p.word("lease id"), Namespace: p.namespace(), Session: p.option("session", ""), Withdraw: p.option("withdraw", "") == "yes", Request: p.request(),
		}
	case "change":
		return &core.Change{
			ID: p.word("lease id"), Namespace: p.namespace(),
			Holder: p.option("holder", ""), NewID: p.option("id", ""), Foreign: p.option("foreign", ""), Request: p.request(),
		}
	case "describe":
		return &core.Change{
			ID: p.word("lease id"), Namespace: p.namespace(), Request: p.request(),
			About: &core.About{Holder: p.option("holder", ""), Reason: p.option("reason", ""), Labels: p.labels()},
		}
	case "break":
		return p.breakLease()
	case "open":
		return &core.OpenSession{ID: p.word("session"), Namespace: p.namespace(), TTL: p.duration("ttl"), Labels: p.labels(), Request: p.request()}
	case "renew-session":
		return &core.RenewSession{ID: p.word("session"), Namespace: p.namespace()}
	case "close":
		return &core.CloseSession{ID: p.word("session"), Namespace: p.namespace(), Request: p.request()}
	case "abandon":
		return &core.CloseSession{ID: p.word("session"), Namespace: p.namespace(), Abandon: true, Request: p.request()}
	case "put":
		return &core.PutRecord{
			Path: p.word("path"), Value: p.word("value"), Namespace: p.namespace(), Session: p.option("session", ""),
			Large: p.large(), From: leasehold.Revision(p.number("from")), Keep: p.keep(),
			IfRevision: leasehold.Revision(p.number("if")), IfAbsent: p.flag("new"), Fence: p.fence(),
			By: p.option("by", ""), Reason: p.option("reason", ""), Request: p.request(), Link: p.link(), KeepLink: p.flag("keep-link"),
		}
	case "delete":
		return &core.DeleteRecord{
			Path: p.word("path"), Namespace: p.namespace(), IfRevision: leasehold.Revision(p.number("if")), Fence: p.fence(), Request: p.request(),
		}
	case "delete-range":
		return &core.DeleteRecord{
			Path: p.word("path"), Range: true, To: p.option("to", ""), Namespace: p.namespace(), Fence: p.fence(), Request: p.request(),
		}
	case "move":
		return &core.Move{
			ID: p.word("lease id"), Priority: p.priority(), By: p.option("by", ""), Reason: p.option("reason", ""), Namespace: p.namespace(), Request: p.request(),
		}
	case "ask":
		return &core.Ask{
			Resource: p.word("resource"), By: p.option("by", ""), Message: p.option("message", ""), Namespace: p.namespace(), Request: p.request(),
		}
	case "define":
		return p.define()
	case "undefine":
		return &core.Undefine{Path: p.word("path"), By: p.option("by", ""), Reason: p.option("reason", ""), Namespace: p.namespace(), Request: p.request()}
	case "set-units":
		return p.setUnits()
	case "task":
		return p.putTask()
	case "claim":
		c := p.acquire().(*core.Acquire)
		c.Task = true
		return c
	case "finish", "fail":
		return p.finishTask()
	case "drain":
		return &core.Drain{
			Resource: p.word("resource"), Units: p.list("units"), Why: p.option("why", ""), By: p.option("by", ""), Namespace: p.namespace(), Request: p.request(),
		}
	case "use":
		return p.reportUse()
	case "reserve":
		return p.reserve()
	case "extend":
		return p.extend()
	case "cancel":
		return &core.CancelReservation{ID: p.word("id"), By: p.option("by", ""), Reason: p.option("reason", ""), Namespace: p.namespace(), Request: p.request()}
	case "acknowledge-alarm":
		return &core.AcknowledgeAlarm{
			Kind: leasehold.AlarmKindOf(p.word("kind")), Resource: p.option("resource", ""), ID: p.option("id", ""), Session: p.option("session", ""),
			Order: p.number("order"), By: p.option("by", ""), Reason: p.option("reason", ""), Namespace: p.namespace(), Request: p.request(),
		}
	case "acknowledge":
		return &core.Acknowledge{
			Resource: p.word("resource"), Token: leasehold.Token(p.number("token")), By: p.option("by", ""), Reason: p.option("reason", ""),
			Namespace: p.namespace(), Request: p.request(),
		}
	case "tick":
		return &core.Tick{}
	case "caps":
		caps := leasehold.Caps{
			Leases: int(p.number("leases")), Sessions: int(p.number("sessions")),
			Waiters: int(p.number("waiters")), Namespaces: int(p.number("namespaces")),
		}
		return &core.SetCaps{Caps: caps, IfUnset: p.flag("if-unset"), By: p.option("by", ""), Reason: p.option("reason", "")}
	case "end-quarantine":
		return &core.EndQuarantine{Base: p.number("base"), By: p.option("by", ""), Reason: p.option("reason", "")}
	case "raise-tokens":
		return &core.RaiseTokens{Above: leasehold.Token(p.number("above")), By: p.option("by", ""), Reason: p.option("reason", ""), Namespace: p.namespace()}
	case "access":
		return p.access()
	case "lead":
		return &core.Lead{Node: p.number("node"), Boot: p.option("boot", ""), Offset: p.duration("offset")}
	}
	p.wrong("there is no command %q", p.verb)
	return nil
}

// large reads "plan/30": the large value that is called plan, of 30 bytes.
func (p *phrase) large() *leasehold.Large {
	text := p.option("large", "")
	if text == "" {
		return nil
	}
	name, size, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		p.wrong("large=%s is not of the form name/size", text)
	}
	large := &leasehold.Large{Size: n}
	copy(large.SHA256[:], name)
	return large
}

func writeLarge(large *leasehold.Large) string {
	if large == nil {
		return ""
	}
	return fmt.Sprintf("%s/%d", strings.TrimRight(string(large.SHA256[:]), "\x00"), large.Size)
}

// tellValue is a value, or the name of a large one.
func tellValue(value string, large *leasehold.Large) string {
	if large != nil {
		return "large:" + writeLarge(large) + value
	}
	return quote(value)
}

func (p *phrase) keep() int {
	n, err := strconv.Atoi(p.option("keep", "0"))
	if err != nil {
		p.wrong("keep= takes a number: %v", err)
	}
	return n
}

func (p *phrase) fence() core.Fence {
	return core.Fence{Lease: p.option("lease", ""), Token: leasehold.Token(p.number("token"))}
}

// parseTxn reads a transaction: its parts stand between semicolons.
func parseTxn(line string) (core.Command, error) {
	parts := strings.Split(line, " ; ")
	p := newPhrase(parts[0])
	c := &core.Txn{Namespace: p.namespace(), Request: p.request()}
	if err := p.end(); err != nil {
		return nil, err
	}
	return c, parseParts(c, parts[1:], c.Namespace, " | ")
}

// parseParts reads the parts of a transaction, or of one that is nested: its own stand between what separates those.
func parseParts(c *core.Txn, parts []string, namespace, between string) error {
	for _, part := range parts {
		branch, rest, _ := strings.Cut(part, " ")
		if inner, nested := strings.CutPrefix(rest, "nested "); nested {
			o := core.Op{Do: core.Nested, Txn: &core.Txn{}}
			if err := parseParts(o.Txn, strings.Split(inner, between), namespace, " |"+strings.TrimSpace(between)+" "); err != nil {
				return err
			}
			if branch == "then" {
				c.Then = append(c.Then, o)
			} else {
				c.Else = append(c.Else, o)
			}
			continue
		}
		p := newPhrase(rest)
		switch branch {
		case "if":
			c.If = append(c.If, p.compare())
		case "then":
			c.Then = append(c.Then, p.op(namespace))
		case "else":
			c.Else = append(c.Else, p.op(namespace))
		default:
			p.wrong("a transaction has no part %q", branch)
		}
		if err := p.end(); err != nil {
			return err
		}
	}
	return nil
}

// link reads "link=RESOURCE:HOLDER:ID", and what goes with it.
func (p *phrase) link() *core.Link {
	text := p.option("link", "")
	if text == "" {
		return nil
	}
	parts := strings.Split(text+"::", ":")
	l := &core.Link{
		Resource: parts[0], Holder: parts[1], ID: cmp.Or(parts[2], parts[1]), TTL: p.duration("ttl"), Grace: p.duration("grace"),
		Wait: p.flag("wait"), Stay: p.flag("stay"), Take: p.flag("take"), Mirror: p.option("mirror", ""),
		Foreign: p.option("foreign", ""), MayExpire: p.flag("may-expire"),
	}
	return l
}

func writeLink(l *core.Link, keep bool) string {
	if l == nil {
		return flagged("keep-link", keep)
	}
	return sentence(option("link", l.Resource+":"+l.Holder+":"+l.ID), option("ttl", l.TTL), option("grace", l.Grace), flagged("wait", l.Wait),
		flagged("stay", l.Stay), flagged("take", l.Take), option("mirror", l.Mirror), option("foreign", l.Foreign), flagged("may-expire", l.MayExpire))
}

var (
	whats     = []string{"", "create", "mod", "version", "value", "session", "lease", "token", "floor", "record-lease"}
	orders    = []string{"", "create", "mod", "version", "value"}
	relations = []string{"", "is", "not", "below", "above"}
	doings    = []string{"", "put", "delete", "get"}
)

// compare reads "mod config is 3".
func (p *phrase) compare() (c core.Compare) {
	c.What, c.Path = core.What(max(0, slices.Index(whats, p.verb))), p.word("path")
	c.Is = core.Relation(max(0, slices.Index(relations, p.word("relation"))))
	operand := p.word("operand")
	switch c.What {
	case core.RecordValue, core.RecordSession, core.LeaseID, core.RecordLease:
		c.Text = operand
	default:
		n, err := strconv.ParseUint(operand, 10, 64)
		if err != nil {
			p.wrong("%s is no number", operand)
		}
		c.Number = n
	}
	c.To, c.Range = p.option("to", ""), p.flag("range")
	return c
}

func (p *phrase) op(namespace string) (o core.Op) {
	switch p.verb {
	case "acquire":
		a := p.acquire().(*core.Acquire)
		a.Namespace = namespace
		return core.Op{Do: core.AcquireLease, Acquire: a}
	case "release":
		return core.Op{Do: core.ReleaseLease, ID: p.word("lease id")}
	}
	verb, isRange := strings.CutSuffix(p.verb, "-range")
	o.Do, o.Path, o.Range = core.Do(max(0, slices.Index(doings, verb))), p.word("path"), isRange
	if o.Do == core.Put {
		o.Value = p.word("value")
	}
	o.Large, o.From, o.Keep = p.large(), leasehold.Revision(p.number("from")), p.keep()
	o.To, o.Session, o.Most = p.option("to", ""), p.option("session", ""), int(p.number("most"))
	o.KeysOnly, o.Count = p.flag("keys"), p.flag("count")
	if o.Do == core.Put {
		o.Link, o.KeepLink = p.link(), p.flag("keep-link")
		o.KeepValue, o.KeepSession = p.flag("keep-value"), p.flag("keep-session")
	}
	o.Before = p.flag("before")
	o.Select.By = record.Order(max(0, slices.Index(orders, p.option("order", ""))))
	o.Select.Descend = p.flag("descend")
	o.Select.MinCreate, o.Select.MaxCreate = leasehold.Revision(p.number("min-create")), leasehold.Revision(p.number("max-create"))
	o.Select.MinMod, o.Select.MaxMod = leasehold.Revision(p.number("min-mod")), leasehold.Revision(p.number("max-mod"))
	return o
}

func (p *phrase) acquire() core.Command {
	c := &core.Acquire{Resource: p.word("resource"), Holder: p.word("holder")}
	c.ID = p.option("id", c.Holder)
	c.Namespace, c.Session, c.Reason = p.namespace(), p.option("session", ""), p.option("reason", "")
	c.TTL, c.Wait, c.Grace, c.HoldLimit = p.duration("ttl"), p.duration("wait"), p.duration("grace"), p.duration("limit")
	c.Priority, c.Labels, c.Request = p.priority(), p.labels(), p.request()
	c.Slots, c.Capacity = p.slots(p.option("slots", "0"))
	c.Party, c.Foreign = p.option("party", ""), p.option("foreign", "")
	c.MayExpire = p.flag("may-expire")
	c.Select, c.Reservation = p.selection(), p.option("reservation", "")
	if p.flag("ttl-by-default") {
		c.Pick = core.TTLByDefault
	}
	if p.flag("ttl-auto") {
		c.Pick = core.TTLAuto
	}
	if also := p.option("also", ""); also != "" {
		for i, text := range strings.Split(also, ",") {
			c.Also = append(c.Also, p.item(text, fmt.Sprint(c.ID, "-", i+2)))
		}
	}
	return c
}

// slots reads "2" (of as many as there are) or "2/3" (of three).
func (p *phrase) slots(text string) (slots, capacity int) {
	some, all, said := strings.Cut(text, "/")
	slots, err := strconv.Atoi(some)
	if err == nil && said {
		capacity, err = strconv.Atoi(all)
	}
	if err != nil {
		p.wrong("%s is not of the form slots or slots/capacity", text)
	}
	return slots, capacity
}

// item reads "scanner", "scanner:2/3" or "scanner:2/3:id".
func (p *phrase) item(text, id string) core.Item {
	parts := strings.Split(text, ":")
	item := core.Item{Resource: parts[0], ID: id}
	if len(parts) > 1 && parts[1] != "" {
		item.Slots, item.Capacity = p.slots(parts[1])
	}
	if len(parts) > 2 {
		item.ID = parts[2]
	}
	return item
}

// definitionFields are in the order of their bits.
var definitionFields = []string{"slots", "default-ttl", "largest-ttl", "limit", "grace", "expected", "unclean", "limits", "idle", "idle-release", "on-reservation", "backfill"}

func (p *phrase) define() core.Command {
	c := &core.Define{By: p.option("by", ""), Reason: p.option("reason", ""), Namespace: p.namespace(), Request: p.request()}
	d := &c.Definition
	d.Path, d.Capacity = p.word("path"), int(p.number("capacity"))
	if units := p.option("units", ""); units != "" {
		d.Units = strings.Split(units, ",")
	}
	d.DefaultTTL, d.LargestTTL = p.duration("default-ttl"), p.duration("largest-ttl")
	d.HoldLimit, d.Grace, d.Expected = p.duration("limit"), p.duration("grace"), p.duration("expected")
	unclean, known := leasehold.UncleanOf(p.option("unclean", "allow"))
	if d.Unclean = unclean; !known {
		p.wrong("unclean= is allow, warn or acknowledge")
	}
	if d.OnReservation, known = leasehold.AtStartOf(p.option("on-reservation", "wait")); !known {
		p.wrong("on-reservation= is wait, warn or end")
	}
	for name := range strings.SplitSeq(p.option("fields", ""), ",") {
		if i := slices.Index(definitionFields, name); i >= 0 {
			c.Fields |= 1 << i
		} else if name != "" {
			p.wrong("fields= names some of %v", definitionFields)
		}
	}
	for _, text := range p.list("limits") {
		limit, err := pool.ParseLimit(text)
		if err != nil {
			p.wrong("%v", err)
		}
		d.Limits = append(d.Limits, limit)
	}
	d.Idle, d.IdleRelease = p.duration("idle"), p.duration("idle-release")
	d.Backfill = p.flag("backfill")
	c.KeepSlots, c.IfRevision = p.flag("keep-slots"), leasehold.Revision(p.number("if-revision"))
	return c
}

func (p *phrase) priority() int {
	n, err := strconv.Atoi(p.option("priority", "0"))
	if err != nil {
		p.wrong("priority= takes a number: %v", err)
	}
	return n
}

func (p *phrase) breakLease() core.Command {
	c := &core.Break{Namespace: p.namespace(), By: p.option("by", ""), Reason: p.option("reason", ""), Request: p.request()}
	subject := p.word("lease id, or resource with its token,")
	c.Token = leasehold.Token(p.number("token"))
	if id := p.flag("id"); id || c.Token == 0 {
		c.ID = subject
	} else {
		c.Resource = subject
	}
	c.Period = p.duration("period")
	now := p.flag("now")
	c.All, c.Waiting = p.flag("all"), p.flag("waiting")
	c.Remains = p.flag("remains") || c.Period == 0 && !now
	return c
}

// writeCommand is the line that parseCommand would read the command from. A random
// log that fails is told by it.
func writeCommand(c core.Command) string {
	switch c := c.(type) {
	case *core.Acquire:
		verb := "acquire"
		if c.Task {
			verb = "claim"
		}
		return sentence(verb, quote(c.Resource), quote(c.Holder), option("id", c.ID), option("ttl", c.TTL), option("wait", c.Wait),
			option("grace", c.Grace), option("limit", c.HoldLimit), option("priority", c.Priority), option("session", c.Session), option("reason", c.Reason),
			writeSlots(c.Slots, c.Capacity), writeSelect(c.Select), option("reservation", c.Reservation), writeAlso(c.Also), option("party", c.Party), option("foreign", c.Foreign), flagged("may-expire", c.MayExpire), flagged("ttl-by-default", c.Pick == core.TTLByDefault), flagged("ttl-auto", c.Pick == core.TTLAuto),
			writeLabels(c.Labels), common(c.Namespace, c.Request))
	case *core.Define:
		return writeDefine(c)
	case *core.Undefine:
		return sentence("undefine", quote(c.Path), option("by", c.By), option("reason", c.Reason), common(c.Namespace, c.Request))
	case *core.SetUnits:
		return writeUnits(c)
	case *core.PutTask:
		return sentence("task", quote(c.Path), quote(c.Value), option("priority", c.Priority), option("attempts", c.Attempts), option("by", c.By), common(c.Namespace, c.Request))
	case *core.FinishTask:
		return writeFinish(c)
	case *core.Drain:
		return sentence("drain", quote(c.Resource), option("units", strings.Join(c.Units, ",")), option("why", c.Why), option("by", c.By), common(c.Namespace, c.Request))
	case *core.ReportUse:
		return writeUse(c)
	case *core.Reserve:
		return writeReserve(c)
	case *core.CancelReservation:
		return sentence("cancel", quote(c.ID), option("by", c.By), option("reason", c.Reason), common(c.Namespace, c.Request))
	case *core.Acknowledge:
		return sentence("acknowledge", quote(c.Resource), option("token", c.Token), option("by", c.By), option("reason", c.Reason), common(c.Namespace, c.Request))
	case *core.AcknowledgeAlarm:
		return sentence("acknowledge-alarm", c.Kind.String(), option("resource", c.Resource), option("id", c.ID), option("session", c.Session),
			option("order", c.Order), option("by", c.By), option("reason", c.Reason), common(c.Namespace, c.Request))
	case *core.Renew:
		return sentence("renew", quote(c.ID), writeNote(c.Note), common(c.Namespace, core.Request{}))
	case *core.Release:
		withdraw := ""
		if c.Withdraw {
			withdraw = "yes"
		}
		return sentence("release", quote(c.ID), option("session", c.Session), option("withdraw", withdraw), common(c.Namespace, c.Request))
	case *core.Change:
		if a := c.About; a != nil {
			return sentence("describe", quote(c.ID), option("holder", a.Holder), option("reason", a.Reason), writeLabels(a.Labels), common(c.Namespace, c.Request))
		}
		return sentence("change", quote(c.ID), option("holder", c.Holder), option("id", c.NewID), option("foreign", c.Foreign), common(c.Namespace, c.Request))
	case *core.Break:
		return writeBreak(c)
	case *core.OpenSession:
		return sentence("open", quote(c.ID), option("ttl", c.TTL), writeLabels(c.Labels), common(c.Namespace, c.Request))
	case *core.RenewSession:
		return sentence("renew-session", quote(c.ID), common(c.Namespace, core.Request{}))
	case *core.CloseSession:
		verb := "close"
		if c.Abandon {
			verb = "abandon"
		}
		return sentence(verb, quote(c.ID), common(c.Namespace, c.Request))
	case *core.PutRecord:
		return sentence("put", quote(c.Path), quote(c.Value), flagged("new", c.IfAbsent), option("if", c.IfRevision), option("session", c.Session),
			option("large", writeLarge(c.Large)), option("from", c.From), option("keep", c.Keep),
			writeFence(c.Fence), option("by", c.By), option("reason", c.Reason), writeLink(c.Link, c.KeepLink), common(c.Namespace, c.Request))
	case *core.DeleteRecord:
		verb := "delete"
		if c.Range {
			verb = "delete-range"
		}
		return sentence(verb, quote(c.Path), option("to", c.To), option("if", c.IfRevision), writeFence(c.Fence), common(c.Namespace, c.Request))
	case *core.Txn:
		return writeTxn(c)
	case *core.Move:
		return sentence("move", quote(c.ID), option("priority", c.Priority), option("by", c.By), option("reason", c.Reason), common(c.Namespace, c.Request))
	case *core.Ask:
		return sentence("ask", quote(c.Resource), option("by", c.By), option("message", c.Message), common(c.Namespace, c.Request))
	case *core.Tick:
		return "tick"
	case *core.SetCaps:
		return sentence("caps", option("leases", c.Caps.Leases), option("sessions", c.Caps.Sessions), option("waiters", c.Caps.Waiters),
			option("namespaces", c.Caps.Namespaces), flagged("if-unset", c.IfUnset), option("by", c.By), option("reason", c.Reason))
	case *core.EndQuarantine:
		return sentence("end-quarantine", option("base", c.Base), option("by", c.By), option("reason", c.Reason))
	case *core.RaiseTokens:
		return sentence("raise-tokens", option("above", c.Above), option("by", c.By), option("reason", c.Reason), common(c.Namespace, core.Request{}))
	case *core.ChangeAccess:
		return writeAccess(c)
	case *core.Lead:
		return sentence("lead", option("node", c.Node), option("boot", c.Boot), option("offset", c.Offset))
	}
	return fmt.Sprintf("%T", c)
}

func writeSlots(slots, capacity int) string {
	switch {
	case capacity != 0:
		return fmt.Sprintf("slots=%d/%d", slots, capacity)
	case slots != 0:
		return fmt.Sprintf("slots=%d", slots)
	}
	return ""
}

func writeAlso(items []core.Item) string {
	var list []string
	for _, i := range items {
		list = append(list, i.Resource+":"+strings.TrimPrefix(writeSlots(i.Slots, i.Capacity), "slots=")+":"+i.ID)
	}
	return option("also", strings.Join(list, ","))
}

func writeDefine(c *core.Define) string {
	d := c.Definition
	unclean := ""
	if d.Unclean != leasehold.AllowNext {
		unclean = option("unclean", d.Unclean)
	}
	if d.OnReservation != 0 {
		unclean += " " + option("on-reservation", d.OnReservation)
	}
	if d.Backfill {
		unclean += " backfill"
	}
	return sentence("define", quote(d.Path), option("capacity", d.Capacity), option("units", strings.Join(d.Units, ",")),
		option("default-ttl", d.DefaultTTL), option("largest-ttl", d.LargestTTL), option("limit", d.HoldLimit), option("grace", d.Grace),
		option("expected", d.Expected), unclean, writeLimits(d.Limits), option("idle", d.Idle), option("idle-release", d.IdleRelease), option("by", c.By), option("reason", c.Reason), writeFields(c.Fields),
		flagged("keep-slots", c.KeepSlots), option("if-revision", c.IfRevision), common(c.Namespace, c.Request))
}

func writeFields(fields core.DefinitionFields) string {
	var names []string
	for i, name := range definitionFields {
		if fields&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return option("fields", strings.Join(names, ","))
}

func writeFence(f core.Fence) string {
	return option("lease", f.Lease) + " " + option("token", f.Token)
}

func flagged(name string, is bool) string {
	if !is {
		return ""
	}
	return name
}

func writeTxn(c *core.Txn) string {
	return strings.Join(append([]string{sentence("txn", common(c.Namespace, c.Request))}, writeParts(c, " | ")...), " ; ")
}

func writeParts(c *core.Txn, between string) (parts []string) {
	for _, i := range c.If {
		operand := strconv.FormatUint(i.Number, 10)
		if i.What == core.RecordValue || i.What == core.RecordSession || i.What == core.LeaseID || i.What == core.RecordLease {
			operand = i.Text
		}
		parts = append(parts, sentence("if", whats[i.What], quote(i.Path), relations[i.Is], quote(operand), flagged("range", i.Range), option("to", i.To)))
	}
	for branch, list := range [][]core.Op{c.Then, c.Else} {
		for _, o := range list {
			parts = append(parts, []string{"then ", "else "}[branch]+writeOp(o, between))
		}
	}
	return parts
}

func writeOp(o core.Op, between string) string {
	switch o.Do {
	case core.Nested:
		return "nested " + strings.Join(writeParts(o.Txn, " |"+strings.TrimSpace(between)+" "), between)
	case core.AcquireLease:
		return writeCommand(o.Acquire)
	case core.ReleaseLease:
		return sentence("release", quote(o.ID))
	}
	verb, value := doings[o.Do], ""
	if o.Range {
		verb += "-range"
	}
	if o.Do == core.Put {
		value = quote(o.Value)
	}
	return sentence(verb, quote(o.Path), value, flagged("keys", o.KeysOnly), flagged("count", o.Count),
		option("large", writeLarge(o.Large)), option("from", o.From), option("keep", o.Keep),
		option("to", o.To), option("session", o.Session), option("most", o.Most), writeLink(o.Link, o.KeepLink),
		flagged("keep-value", o.KeepValue), flagged("keep-session", o.KeepSession), flagged("before", o.Before),
		option("order", orders[o.Select.By]), flagged("descend", o.Select.Descend), option("min-create", o.Select.MinCreate),
		option("max-create", o.Select.MaxCreate), option("min-mod", o.Select.MinMod), option("max-mod", o.Select.MaxMod))
}

func writeBreak(c *core.Break) string {
	how := option("period", c.Period)
	switch {
	case c.Remains:
		how += " remains"
	case c.Period == 0:
		how = "now"
	}
	return sentence("break", quote(c.ID+c.Resource), option("token", c.Token), flagged("id", c.ID != "" && c.Token != 0), flagged("all", c.All), flagged("waiting", c.Waiting), how, option("by", c.By), option("reason", c.Reason),
		common(c.Namespace, c.Request))
}

func sentence(parts ...string) string {
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// option writes one option, and nothing if it is what it would be anyway.
func option[T comparable](name string, value T) string {
	var zero T
	if value == zero {
		return ""
	}
	return quote(fmt.Sprintf("%s=%v", name, value))
}

func quote(s string) string {
	if s == "" || strings.Contains(s, " ") {
		return `"` + s + `"`
	}
	return s
}

func writeLabels(labels leasehold.Labels) string {
	var parts []string
	for _, l := range labels {
		parts = append(parts, quote("label."+l.Key+"="+l.Value))
	}
	return strings.Join(parts, " ")
}

func common(namespace string, r core.Request) string {
	text := option("key", r.Key)
	if namespace != leasehold.DefaultNamespace {
		text = "ns=" + quote(namespace) + " " + text
	}
	if r.Session != "" || r.Sequence != 0 {
		text += fmt.Sprintf(" session-seq=%s/%d", r.Session, r.Sequence)
	}
	return text
}

// tellAnswer says what one command came to. now is the stamp, counted from 0s.
func tellAnswer(a core.Answer, now time.Duration) string {
	if a.Record != nil && (a.Lease != nil || a.Waiter != nil) {
		record, claim := a, a
		record.Lease, record.Waiter, claim.Record = nil, nil, nil
		return tellAnswer(record, now) + "; " + tellAnswer(claim, now)
	}
	switch {
	case a.Err != nil:
		return tellError(a.Err)
	case a.Lease != nil:
		text := tellLease(a.Lease, now)
		for _, l := range a.Also {
			text += "; " + tellLease(&l, now)
		}
		return text
	case a.Waiter != nil:
		return tellWaiter(a.Waiter)
	case a.Access != nil:
		return fmt.Sprintf("access is at revision %d", a.Access.Revision)
	case a.Definition != nil:
		return tellDefinition(a.Definition)
	case a.Session != nil:
		return tellSession(a.Session, now)
	}
	switch {
	case a.Record != nil:
		return tellRecord(a.Record) + strange(a.Record.Value != "", "value %s", a.Record.Value)
	case a.Txn != nil:
		return tellTxn(a.Txn, now)
	}
	return "done"
}

// tellRecord leaves out the value, which is seldom there.
func tellRecord(r *leasehold.Record) string {
	text := strings.TrimSpace(fmt.Sprintf("%s made at %d, changed at %d, version %d", r.Path, r.Create, r.Mod, r.Version))
	if r.Token != 0 {
		text += fmt.Sprintf(", token %d", r.Token)
	}
	return text + when("large", writeLarge(r.Large)) + when("session", r.Session) + when("lease", r.Lease)
}

// tellVersion leaves out what is as always.
func tellVersion(v leasehold.Version) string {
	text := fmt.Sprintf("%d: %s, version %d", v.Revision, tellValue(v.Value, v.Large), v.Version)
	if !v.Written.IsZero() {
		text += ", written at " + clock(v.Written)
	}
	text += when("by", v.Holder)
	if v.Token != 0 {
		text += fmt.Sprintf(", token %d", v.Token)
	}
	text += when("session", v.Session)
	if v.Current {
		text += ", current"
	}
	if v.Deleted {
		text += ", deleted"
	}
	return text
}

func tellTxn(t *core.TxnAnswer, now time.Duration) string {
	text := "then"
	if !t.Succeeded {
		text = "else"
	}
	return text + fmt.Sprintf(", revision %d", t.Revision) + tellResults(t, now)
}

func tellResults(t *core.TxnAnswer, now time.Duration) (text string) {
	for _, r := range t.Results {
		switch {
		case r.Txn != nil:
			text += "; (" + map[bool]string{true: "then", false: "else"}[r.Txn.Succeeded] + tellResults(r.Txn, now) + ")"
		case r.Record != nil:
			text += "; " + tellRecord(r.Record)
			if r.Lease != nil || r.Waiter != nil {
				text += "; " + tellAnswer(core.Answer{Lease: r.Lease, Waiter: r.Waiter}, now)
			}
		case r.Page != nil:
			text += "; " + tellPage(*r.Page)
		case r.Lease != nil:
			text += "; " + tellAnswer(core.Answer{Lease: r.Lease, Also: r.Also}, now)
		default:
			text += fmt.Sprintf("; %d deleted", r.Deleted)
		}
		for _, before := range r.Before {
			text += fmt.Sprintf(", was %s %s (%d)", before.Path, tellValue(before.Value, before.Large), before.Mod)
		}
	}
	return text
}

func tellPage(p core.RecordPage) string {
	text := "found"
	for _, r := range p.Records {
		text += fmt.Sprintf(" %s %s (%d)", r.Path, tellValue(r.Value, r.Large), r.Mod)
		if r.Lease != "" {
			text += fmt.Sprintf(" of %s, made at %d", r.Lease, r.Create)
		}
	}
	if len(p.Records) == 0 {
		text = "found nothing"
	}
	if p.More {
		text += " and more"
	}
	if p.Count != 0 {
		text += fmt.Sprintf(", %d in all", p.Count)
	}
	return text + fmt.Sprintf(" at %d", p.Revision)
}

func tellError(e *leasehold.Error) string {
	text := e.Code.String() + ": " + e.Message
	if e.Position != 0 {
		text += fmt.Sprintf(" (place %d)", e.Position)
	}
	return text
}

func tellLease(l *leasehold.Lease, now time.Duration) string {
	text := fmt.Sprintf("%s holds %s%s until %s", l.Holder, l.Resource, as(l.ID, l.Holder), tellEnd(l.Expires))
	if l.State != leasehold.Leased && l.State != leasehold.Breaking {
		text = fmt.Sprintf("%s's lease on %s%s is %v", l.Holder, l.Resource, as(l.ID, l.Holder), l.State)
	}
	text += fmt.Sprintf(", token %d", l.Token) + tellSlots(l.Slots)
	if l.Floor != l.Token {
		text += fmt.Sprintf(", floor %d", l.Floor)
	}
	if len(l.Units) > 0 {
		text += ", units " + strings.Join(l.Units, " ")
	}
	if l.After != nil {
		text += fmt.Sprintf(", after %s's lease with token %d (%v)", l.After.Holder, l.After.Token, l.After.How)
	}
	if l.State == leasehold.Breaking {
		text += ", breaking"
	}
	text += when("foreign id", l.Foreign) + when("note", l.Note) + when("session", l.Session) + when("reason", l.Reason) + tellLabels(l.Labels)
	if !l.AvailableAt.IsZero() {
		text += ", rests until " + clock(l.AvailableAt)
	}
	return text + remainder(l.Expires, l.Remaining, now) + strange(l.Floor > l.Token, "floor %d", l.Floor)
}

func tellSlots(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 slot"
	}
	return fmt.Sprintf(", %d slots", n)
}

func tellDefinition(d *leasehold.Definition) string {
	return strings.TrimPrefix(writeDefine(&core.Define{Definition: *d, Namespace: leasehold.DefaultNamespace}), "define ") + fmt.Sprintf(", revision %d", d.Revision)
}

// remainder speaks up only when what is left and the moment of the end contradict
// each other, which they never may.
func remainder(expires time.Time, remaining, now time.Duration) string {
	if expires.IsZero() {
		return strange(remaining != 0, "remaining %v", remaining)
	}
	return strange(remaining != max(0, expires.Sub(epoch)-now), "remaining %v", remaining)
}

func strange(is bool, format string, args ...any) string {
	if !is {
		return ""
	}
	return " (BUT " + fmt.Sprintf(format, args...) + ")"
}

func tellWaiter(w *leasehold.Waiter) string {
	return fmt.Sprintf("%s waits for %s%s until %s, place %d", w.Holder, w.Resource, as(w.ID, w.Holder), tellEnd(w.Until), w.Position) +
		tellSlots(w.Slots) + tellPriority(w.Priority) + tellForecast(w.Forecast) + when("foreign id", w.Foreign) + when("session", w.Session) + when("reason", w.Reason) + tellLabels(w.Labels)
}

func tellForecast(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return ", usually in about " + short(d)
}

func tellUsual(u *leasehold.Usual) string {
	text := "usually"
	if u.Holds > 0 {
		text += fmt.Sprintf(" held for %s, at most %s (%d leases, %d ended uncleanly)", short(u.HoldP50), short(u.HoldP95), u.Holds, u.Unclean)
	}
	if u.Waits > 0 {
		text += fmt.Sprintf(" waited for %s, at most %s (%d waits, %d in the queue)", short(u.WaitP50), short(u.WaitP95), u.Waits, u.Queue)
	}
	return text
}

func tellPriority(p int) string {
	if p == 0 {
		return ""
	}
	return fmt.Sprintf(", priority %d", p)
}

func tellSession(s *leasehold.Session, now time.Duration) string {
	touched := ""
	if s.Interventions != 0 {
		touched = fmt.Sprintf(", others touched %d: %s", s.Interventions, strings.Join(s.Intervened, " "))
	}
	return fmt.Sprintf("session %s lasts until %s, has %d%s", s.ID, tellEnd(s.Expires), s.Claims, touched) +
		tellLabels(s.Labels) + remainder(s.Expires, s.Remaining, now)
}

func tellEvent(e *leasehold.Event) string {
	text := fmt.Sprintf("%d.%d %v", e.Revision, e.N, e.Kind)
	switch {
	case e.Record != nil || e.Previous != nil:
		text += " " + e.Resource
		if e.Record != nil {
			text += " " + tellValue(e.Record.Value, e.Record.Large) + fmt.Sprintf(", version %d", e.Record.Version) + when("lease", e.Record.Lease)
		}
		if e.Previous != nil {
			text += ", was " + tellValue(e.Previous.Value, e.Previous.Large)
		}
	case e.Alarm != 0:
		text += fmt.Sprintf(" %v: %s", e.Alarm, e.Reason)
		if e.Namespace != leasehold.DefaultNamespace {
			text += ", in " + e.Namespace
		}
		return text
	case e.Kind == leasehold.Defined || e.Kind == leasehold.Undefined:
		text += " " + e.Resource
	case e.Resource != "":
		text += fmt.Sprintf(" %s %s%s", e.Resource, e.Holder, as(e.ID, e.Holder))
	default:
		text += " " + e.Session
	}
	if e.How != 0 {
		text += fmt.Sprintf(" (%v)", e.How)
	}
	if e.Token != 0 {
		text += fmt.Sprintf(", token %d", e.Token)
	}
	if !e.Until.IsZero() {
		text += ", until " + clock(e.Until)
	}
	if e.Hold != nil && (e.Hold.Busy != 0 || e.Hold.Idle != 0) {
		text += fmt.Sprintf(", busy %v, idle %v", e.Hold.Busy, e.Hold.Idle)
	}
	if e.Resource != "" {
		text += when("session", e.Session)
	}
	text += when("by", e.By) + when("reason", e.Reason)
	if e.Namespace != leasehold.DefaultNamespace {
		text += ", in " + e.Namespace
	}
	return text
}

func tellStatus(s leasehold.Status, now time.Duration) (lines []string) {
	line := fmt.Sprintf("%s is %v", s.Resource, s.State)
	if !s.AvailableAt.IsZero() {
		line += ", rests until " + clock(s.AvailableAt)
	}
	if s.Waiting > 0 {
		line += fmt.Sprintf(", %d waiting", s.Waiting)
	}
	if s.Capacity > 1 || s.Holding > 1 || len(s.Units) > 0 {
		line += fmt.Sprintf(", %d of %d slots taken", s.Used, s.Capacity)
	}
	if u := s.Unacknowledged; u != nil {
		line += fmt.Sprintf(", the end of %s's lease with token %d is not acknowledged", u.Holder, u.Token)
	}
	lines = append(lines, line)
	for _, unit := range s.Units {
		lines = append(lines, "  "+tellUnit(unit))
	}
	for _, lease := range s.Holders {
		lines = append(lines, "  "+tellLease(&lease, now))
	}
	for _, waiter := range s.Queue {
		lines = append(lines, "  "+tellWaiter(&waiter))
	}
	for _, lease := range s.Overlapping {
		lines = append(lines, "  overlaps: "+tellLease(&lease, now))
	}
	if s.Usual != nil {
		lines = append(lines, "  "+tellUsual(s.Usual))
	}
	if l := s.Last; l != nil {
		lines = append(lines, fmt.Sprintf("  last held by %s%s, token %d, ended at %s (%v)", l.Holder, as(l.ID, l.Holder), l.Token, clock(l.At), l.How)+
			when("by", l.By)+when("reason", l.Reason)+when("foreign id", l.Foreign))
	}
	return lines
}

func tellUnit(u leasehold.Unit) string {
	switch {
	case u.Lease != "":
		return fmt.Sprintf("%s has %s%s", u.Holder, u.Name, as(u.Lease, u.Holder))
	case u.Rests:
		return fmt.Sprintf("%s rests, %s had it last", u.Name, u.Holder)
	case u.Holder != "":
		return fmt.Sprintf("%s is free, %s had it last", u.Name, u.Holder)
	}
	return u.Name + " is free"
}

// as names the id where it is not simply the holder's name.
func as(id, holder string) string {
	if id == holder {
		return ""
	}
	return " as " + id
}

func when(what, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf(", %s %s", what, quote(value))
}

func tellLabels(labels leasehold.Labels) (text string) {
	for _, l := range labels {
		text += when(l.Key, l.Value)
	}
	return text
}

func tellEnd(t time.Time) string {
	if t.IsZero() {
		return "released"
	}
	return clock(t)
}

// clock writes a calendar time as stories count it.
func clock(t time.Time) string { return short(t.Sub(epoch)) }

// short is how people write a duration: 10m, not 10m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
