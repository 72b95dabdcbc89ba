package audit

import (
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
)

// The projection from the log to the journal. The lines of an entry, and their numbers, follow
// from the entry alone, so that a replay after a crash recognizes what the journal has already;
// only refusals that were said before are left out by memory.

// An Entry is an entry of the log that was applied, with what it came to.
type Entry struct {
	Index    uint64
	Wall     int64 // Unix nanoseconds
	Size     int   // bytes, about
	Commands []core.Command
	From     core.From // whose the commands are
	Result   core.Result
}

// changes reports whether there is an operation in an entry. Renewals and most ticks have none, and
// they are most of the log.
func (e *Entry) changes() bool {
	return slices.ContainsFunc(e.Result.Events, func(event *leasehold.Event) bool { return event.Alarm == 0 }) ||
		slices.ContainsFunc(e.Commands, mayBeOperation)
}

// refuses reports whether there is a refusal in an entry that is kept.
func (e *Entry) refuses() bool {
	for i := range e.Result.Answers {
		if e.Result.Answers[i].Err != nil && refusalsCount(e.Commands[i]) {
			return true
		}
	}
	return false
}

// mayBeOperation reports whether a command can be an operation although it makes no event, since it is
// about no resource, or none but that of an alarm.
func mayBeOperation(c core.Command) bool {
	if change, ok := c.(*core.ChangeAccess); ok {
		return len(change.Used) == 0
	}
	_, alarm := c.(*core.AcknowledgeAlarm)
	return alarm || command.VerbOf(c).Class == command.Governs
}

func (e *Entry) isOperation(i int) bool {
	_, alarm := e.Commands[i].(*core.AcknowledgeAlarm)
	return mayBeOperation(e.Commands[i]) && (!alarm || len(e.Result.Of(i)) > 0) // else it was cleared before
}

// refusalsCount reports whether the refusal of a command is kept. Renewals are signs of life,
// not operations: that one came too late shows in the end of its lease.
func refusalsCount(c core.Command) bool { return !command.IsRoutine(c) }

// A projector turns entries into lines: those of operations and holds, or those of refusals. The two
// journals have one each, and both number the lines of an entry alike.
type projector struct {
	refusals bool
	seed     maphash.Seed
	// asked is whom a holder was told about when it last asked for a resource and was refused.
	asked      map[uint64]leasehold.Token
	operations operations // of the entry at hand
}

// maxAsked bounds what is remembered of refused requests.
const maxAsked = 1 << 16

func newProjector() *projector {
	return &projector{seed: maphash.MakeSeed(), asked: map[uint64]leasehold.Token{}}
}

// lines calls emit with the lines of an entry, in order; each is valid until the next. Their
// numbers depend on the entry alone: a line that is left out, because the other journal has it
// or because it was said before, takes a number too.
func (p *projector) lines(e *Entry, emit func(*Line)) {
	d := &p.operations
	operation := emit
	if p.refusals {
		operation = func(*Line) {}
	}
	*d = operations{entry: e, at: time.Unix(0, e.Wall).UTC(), emit: operation, ids: d.ids}
	for i, c := range e.Commands {
		d.begin(i, c)
		for _, event := range e.Result.Of(i) {
			d.event(event)
		}
		refusal := e.Result.Answers[i].Err
		if refusal == nil && e.isOperation(i) {
			d.line = d.asked
			d.line.Outcome = OK
			d.line.Actor, d.line.Address, d.line.Door = d.asker.Actor, d.asker.Address, d.asker.Door
			d.write(Operation)
		}
		if refusal == nil || !refusalsCount(c) {
			continue
		}
		if !p.refusals || p.saidBefore(c, refusal) {
			d.n++
			continue
		}
		d.line = d.asked
		d.line.Outcome, d.line.Reason = refusal.Code.String(), why(refusal, d.asked.Reason)
		d.line.Actor, d.line.Address, d.line.Door = d.asker.Actor, d.asker.Address, d.asker.Door
		d.emit = emit
		d.write(Operation)
		d.emit = operation
	}
}

// why returns the reason for a refusal, and the one that the request gave for itself.
func why(refusal *leasehold.Error, given string) string {
	if given == "" {
		return brief(refusal.Message)
	}
	return brief(refusal.Message) + " (its own reason: " + given + ")"
}

// brief bounds a text that a line keeps.
func brief(text string) string {
	const most = 1 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// saidBefore reports whether an acquire found in its way what it had found there before. A
// holder that polls for a resource would otherwise fill the journal with its polling, and push
// out what others did.
func (p *projector) saidBefore(c core.Command, refusal *leasehold.Error) bool {
	resource, holder, ok := command.Wants(c)
	if !ok || refusal.Code != leasehold.Held {
		return false
	}
	token := leasehold.Token(0)
	if refusal.Lease != nil {
		token = refusal.Lease.Token
	}
	return p.askedBefore(token, command.NamespaceOf(c), resource, holder)
}

// refusedBefore is saidBefore for a refusal by a door.
func (p *projector) refusedBefore(l *Line, inTheWay leasehold.Token) bool {
	return p.askedBefore(inTheWay, l.Namespace, l.Resource, l.Holder, l.Actor, l.Verb)
}

// askedBefore reports whether the same was refused because of the same lease, and
// remembers it.
func (p *projector) askedBefore(token leasehold.Token, asked ...string) bool {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, text := range asked {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0)
	}
	key := h.Sum64()
	if before, ok := p.asked[key]; ok && before == token {
		return true
	}
	// Forgetting all of it at once costs a few lines that were said before, and needs no order.
	if len(p.asked) >= maxAsked {
		clear(p.asked)
	}
	p.asked[key] = token
	return false
}

// operations makes the lines of one entry, command by command. The events say what happened; who
// caused it has to be worked out, since one command may also end, and thereby grant, what
// others had.
type operations struct {
	entry *Entry
	at    time.Time
	n     uint32
	emit  func(*Line)
	line  Line // the one at hand

	asked Line     // what the command asks for
	ids   []string // of the leases that it names
	ended []string // of those that it ends through their records
	own   bool     // somebody asked: it is no tick
	asker cause
	// leaver is whose request the command takes out of the queue, and with it all that
	// was asked for at the same time.
	leaver string
	// last is what set off the end that was told last, and so the grant that follows it.
	last cause
}

// A cause is who did something, or time.
type cause struct {
	leasehold.Origin
	time bool
}

var byTime = cause{leasehold.Origin{Actor: Time}, true}

// begin turns to the next command. Who was proven to ask goes before the origin that a door noted, and
// that before what the command calls itself.
func (d *operations) begin(i int, c core.Command) {
	d.asked, d.asker, d.last = describe(c), cause{}, byTime
	if from := &d.entry.From; from.Origins != nil {
		d.asker.Origin = from.Origins[i]
	}
	if from := &d.entry.From; from.Askers != nil && from.Askers[i] != nil {
		d.asker.Actor = from.Askers[i].Principal
	}
	if d.asker.Actor == "" {
		d.asker.Actor = d.asked.Actor
	}
	_, tick := c.(*core.Tick)
	d.own, d.ids, d.ended, d.leaver = !tick, command.AppendLeases(d.ids[:0], c), d.ended[:0], ""
	for _, e := range d.entry.Result.Of(i) {
		switch {
		case e.Kind == leasehold.Left && d.names(e.ID):
			d.leaver = e.Holder
		case e.Previous != nil && e.Previous.Lease != "" && e.How == 0 && (e.Record == nil || e.Record.Lease == ""):
			d.ended = append(d.ended, e.Previous.Lease)
		}
	}
}

func (d *operations) names(id string) bool { return slices.Contains(d.ids, id) }

// write numbers the current line and passes it on.
func (d *operations) write(kind Kind) {
	d.line.Kind, d.line.Index, d.line.N, d.line.At = kind, d.entry.Index, d.n, d.at
	d.n++
	d.emit(&d.line)
}

// event writes the line of one event, and of the hold that ended with it. An alarm is nobody's
// operation: what it is about has its own line.
func (d *operations) event(e *leasehold.Event) {
	if e.Alarm != 0 || d.renews(e) {
		return
	}
	by := d.cause(e)
	d.line = Line{
		Namespace: e.Namespace, Resource: e.Resource, ID: e.ID, Foreign: e.Foreign, Holder: e.Holder, Token: e.Token,
		Session: e.Session,
		How:     e.How, By: e.By, Reason: e.Reason,
		Verb: d.verb(e, by.time), Outcome: OK, Actor: by.Actor, Address: by.Address, Door: by.Door,
	}
	if e.Kind == leasehold.Queued {
		d.line.Outcome = Queued
	}
	if d.line.Verb == "acquire" && d.line.Actor == "" {
		d.line.Actor = e.Holder // a transaction calls itself nothing, but what it acquires for does
	}
	if !by.time || e.Kind == leasehold.Ended {
		d.last = by
	}
	d.write(Operation)
	if e.Hold != nil {
		d.hold(e)
	}
}

// renews reports whether an event is a sign of life: a holder whose lease has a TTL of its own puts its record again.
func (d *operations) renews(e *leasehold.Event) bool {
	return e.Kind == leasehold.RecordPut && e.Previous != nil && e.Record.Lease != "" &&
		e.Record.Lease == e.Previous.Lease && e.Session == "" && d.names(e.Record.Lease)
}

func (d *operations) hold(e *leasehold.Event) {
	how := e.How
	if e.Kind == leasehold.Changed {
		how = leasehold.IDChanged
	}
	d.line = Line{
		Namespace: e.Namespace, Resource: e.Resource, ID: e.Hold.ID, Holder: e.Hold.Holder, Token: e.Hold.Token,
		Session: e.Session, How: how, By: e.By, Reason: e.Reason,
		Since: e.Hold.Since, Until: e.Hold.Until, Waited: e.Hold.Waited, Busy: e.Hold.Busy, Idle: e.Hold.Idle,
		Share: d.entry.Result.Shares.Of(e.Namespace, e.Hold.Token),
	}
	if e.Kind == leasehold.Ended {
		d.line.Foreign = e.Foreign // of a change, it is the next holder's
	}
	d.write(Hold)
}

// cause returns who caused an event: the sender of the command, or time, where the command only
// met something that was over before. Without the difference the journal would blame the one who
// came next for every lease that expired.
func (d *operations) cause(e *leasehold.Event) cause {
	if !d.own {
		return byTime
	}
	switch e.Kind {
	case leasehold.Acquired:
		// A grant that the command did not ask for goes to a waiter, and is due to what ended
		// before it.
		if !d.names(e.ID) {
			return d.last
		}
	case leasehold.Ended, leasehold.Left, leasehold.SessionEnded, leasehold.RecordDeleted, leasehold.RecordPut:
		if d.endedByTime(e) {
			return byTime
		}
	}
	if d.byCalendar(e) {
		return byTime
	}
	return d.asker
}

// endedByTime reports whether something ended by itself, and the command only met it. The record of a lease ends as
// the lease does.
func (d *operations) endedByTime(e *leasehold.Event) bool {
	id := e.ID
	if e.Previous != nil {
		id = e.Previous.Lease
	}
	switch e.How {
	case leasehold.ByTTL, leasehold.ByHoldLimit, leasehold.SessionExpired, leasehold.WaitOver:
		return true
	case leasehold.Withdrawn: // else it is a waiter that gave no sign of life
		return !d.names(id) && !slices.Contains(d.ended, id) && (e.Previous != nil || e.Holder != d.leaver)
	case leasehold.ByBreak: // else the moment came that an operator had set
		return d.asked.Verb != "break" && !slices.Contains(d.ended, id)
	}
	return false
}

// verb names an event as its request is called, if there was one.
func (d *operations) verb(e *leasehold.Event, timely bool) string {
	switch e.Kind {
	case leasehold.Queued:
		return "acquire"
	case leasehold.Acquired:
		if !d.own || !d.names(e.ID) {
			return Grant
		}
		return "acquire"
	case leasehold.Changed:
		return "change"
	case leasehold.BreakSet:
		return "break"
	case leasehold.Ended, leasehold.Left:
		switch {
		case e.How == leasehold.ByBreak:
			return "break"
		case timely:
			return Expire
		}
		return "release"
	case leasehold.SessionOpened:
		return "open-session"
	case leasehold.SessionEnded:
		if timely {
			return Expire
		}
		return "close-session"
	case leasehold.RecordPut:
		if timely {
			return Expire // it stood for a lease
		}
		return "put-record"
	case leasehold.RecordDeleted:
		if timely {
			return Expire
		}
		return "delete-record"
	case leasehold.Asked:
		return "ask"
	case leasehold.Moved:
		return "move"
	case leasehold.Defined:
		if d.asked.Verb == "set-units" || d.asked.Verb == "drain" {
			return d.asked.Verb // units are a part of what is defined
		}
		return "define"
	case leasehold.Undefined:
		return "undefine"
	case leasehold.Acknowledged:
		return "acknowledge"
	}
	return d.reservationVerb(e)
}
