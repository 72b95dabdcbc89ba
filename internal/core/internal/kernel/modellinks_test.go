package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// This file is the part of the model that knows records which stand for leases.

// TestModelAgreesOnLinks asks the dumb model about logs in which most puts link, or touch what is linked.
func TestModelAgreesOnLinks(t *testing.T) {
	forEachLog(t, logs(testing.Short()), linkedLog, func(_ uint64, j journal) error { return againstModel(j) })
}

// TestReplicasAgreeOnLinks is TestReplicasAgree for logs in which transactions link, too, and nest each other, which the
// model does not know; and TestSmallBudgetsOfLinks is TestSmallBudgets.
func TestReplicasAgreeOnLinks(t *testing.T) {
	forEachLog(t, logs(testing.Short()), nestedLog, func(seed uint64, j journal) error { return againstReplicas(t, seed, j) })
}

func TestSmallBudgetsOfLinks(t *testing.T) {
	forEachLog(t, logs(testing.Short()), nestedLog, withSmallBudget)
}

// TestStoriesSayLinks is TestStoriesSayTheCommands for such logs.
func TestStoriesSayLinks(t *testing.T) {
	for _, e := range nestedLog(*seedFrom) {
		for _, c := range e.commands {
			again, err := parseCommand(writeCommand(c))
			if err != nil || !reflect.DeepEqual(again, c) {
				t.Fatalf("%s is read as %s: %v", writeCommand(c), writeCommand(again), err)
			}
		}
	}
}

// linkedLog is a log in which most puts are ones of linked records, and much else is aimed at them.
func linkedLog(seed uint64) journal {
	j := writeJournal(*length, seeded(seed))
	for i := range j {
		chance := rand.New(rand.NewPCG(seed, uint64(j[i].stamp)))
		for n, c := range j[i].commands {
			j[i].commands[n] = linkedCommand(chance, c)
		}
	}
	return j
}

// linkIDs are few, so that they meet; the later ones come when the first have ended.
func linkID(chance *rand.Rand) string { return fmt.Sprint("link", chance.IntN(40)) }

func linkedCommand(chance *rand.Rand, c core.Command) core.Command {
	if chance.IntN(3) == 0 {
		return c
	}
	switch c := c.(type) {
	case *core.PutRecord:
		return linkedPut(chance, *c)
	case *core.DeleteRecord:
		if chance.IntN(2) == 0 {
			aimed := *c
			aimed.Path, aimed.IfRevision = oneOfThese(chance, "scanner/"+linkID(chance), "printer/", "plotter/n"+fmt.Sprint(chance.IntN(60))), 0
			return &aimed
		}
	case *core.Release:
		if chance.IntN(3) == 0 {
			aimed := *c
			aimed.ID = linkID(chance)
			return &aimed
		}
	case *core.Break:
		if c.ID != "" && chance.IntN(3) == 0 {
			aimed := *c
			aimed.ID = linkID(chance)
			return &aimed
		}
	case *core.Change:
		if chance.IntN(3) == 0 {
			aimed := *c
			aimed.ID = linkID(chance)
			return &aimed
		}
	case *core.Renew:
		if chance.IntN(3) == 0 {
			return &core.Renew{Namespace: c.Namespace, ID: linkID(chance)}
		}
	}
	return c
}

// nestedLog is linkedLog with transactions that link records, and that nest some of what they do.
func nestedLog(seed uint64) journal {
	j := linkedLog(seed)
	for i := range j {
		chance := rand.New(rand.NewPCG(seed, ^uint64(j[i].stamp)))
		for n, c := range j[i].commands {
			if txn, ok := c.(*core.Txn); ok {
				changed := *txn
				changed.Then, changed.Else = nestedOps(chance, changed.Namespace, txn.Then), nestedOps(chance, changed.Namespace, txn.Else)
				j[i].commands[n] = &changed
			}
		}
	}
	return j
}

func nestedOps(chance *rand.Rand, namespace string, list []core.Op) []core.Op {
	list = slices.Clone(list)
	for i := range list {
		o := &list[i]
		if o.Do == core.Put && o.Large == nil && o.From == 0 && chance.IntN(2) == 0 {
			put := linkedPut(chance, core.PutRecord{Namespace: namespace, Path: o.Path, Value: o.Value, Session: o.Session}).(*core.PutRecord)
			*o = core.Op{Do: core.Put, Path: put.Path, Value: put.Value, Session: put.Session, Keep: o.Keep, Link: put.Link, KeepLink: put.KeepLink}
		}
		if o.Do == core.Put && o.Link == nil && chance.IntN(6) == 0 {
			*o = core.Op{Do: core.Put, Path: o.Path, KeepValue: true, KeepSession: chance.IntN(2) == 0}
		}
		if o.Do == core.Get && o.Range && chance.IntN(2) == 0 {
			o.Select = core.Selection{By: oneOfThese(chance, core.ByPath, core.ByCreate, core.ByMod, core.ByValue), Descend: chance.IntN(2) == 0, MaxCreate: leasehold.Revision(chance.IntN(40))}
		}
	}
	if len(list) > 0 && chance.IntN(3) == 0 {
		at := chance.IntN(len(list))
		inner := &core.Txn{If: []core.Compare{{What: core.RecordLease, Is: core.NotEqual, Path: "a", Range: true, Text: linkID(chance)}}, Then: list[at:]}
		if chance.IntN(2) == 0 {
			inner.Then, inner.Else = nil, list[at:]
		}
		list = append(slices.Clone(list[:at]), core.Op{Do: core.Nested, Txn: inner})
	}
	return list
}

func oneOfThese[T any](chance *rand.Rand, list ...T) T { return list[chance.IntN(len(list))] }

func linkedPut(chance *rand.Rand, c core.PutRecord) core.Command {
	if chance.IntN(6) == 0 {
		c.KeepLink = true
		return &c
	}
	id := linkID(chance)
	l := &core.Link{
		Resource: oneOfThese(chance, "printer", "scanner", "plotter"), ID: id, Holder: oneOfThese(chance, "ann", "bob"),
		Grace: oneOfThese(chance, 0, 0, 2*time.Second), Foreign: oneOfThese(chance, "", "7"), MayExpire: chance.IntN(3) == 0,
	}
	switch chance.IntN(3) {
	case 0:
		l.Mirror, l.Wait = l.Resource+"/", chance.IntN(4) > 0
		c.Path, c.IfRevision = l.Mirror+id, 0
	case 1:
		l.Stay, l.Take = true, chance.IntN(2) == 0
	default:
		l.Wait = chance.IntN(2) == 0
	}
	if c.Session == "" {
		l.TTL = time.Duration(1+chance.IntN(12)) * time.Second
	}
	c.Link = l
	return &c
}

// A modelFace is the record by which a claim shows.
type modelFace struct {
	path       string
	stay, made bool
}

// faceOf is the claim that a record is the face of; nil if there is none.
func (m *model) faceOf(r *modelRecord) *modelClaim {
	if r == nil || r.lease == "" {
		return nil
	}
	return m.claim(r.sp, r.lease)
}

// endFace lets the record of a claim follow it.
func (m *model) endFace(c *modelClaim, id string, how leasehold.How) {
	if c.face == nil {
		return
	}
	r := m.record(c.sp, c.face.path)
	switch {
	case r == nil || r.lease != id:
	case !c.face.stay:
		m.drop(*r, how)
	default:
		free := *r
		m.records = slices.DeleteFunc(m.records, func(o modelRecord) bool { return o == *r })
		m.event(r.sp, "put %s=%s after %s=%s", r.path, r.value, r.path, r.value)
		free.lease, free.session, free.mod, free.version = "", "", r.sp.revision, r.version+1
		m.addRecord(free)
	}
}

// apart gives what a command does the next revision, if it has made one already by unlinking a record.
func (m *model) apart(sp *modelSpace, r *modelRecord) {
	if r != nil && sp.command == m.command && r.mod == sp.revision {
		sp.command = 0
	}
}

// giveUp ends the claim that a record was the face of.
func (m *model) giveUp(sp *modelSpace, id string) {
	claim := m.claim(sp, id)
	switch {
	case id == "" || claim == nil:
	case claim.face.made:
		m.breakClaim(claim, &core.Break{})
	case claim.token == 0:
		m.end(claim, leasehold.Withdrawn, m.now)
	default:
		m.end(claim, leasehold.Released, m.now)
	}
}

// isMirrored reports whether the claims on a resource show as records.
func (m *model) isMirrored(sp *modelSpace, path string) bool {
	return m.resource(sp, path).mirror != ""
}

// disturbs reports whether an acquire would disturb the order of a mirrored resource.
func (m *model) disturbs(sp *modelSpace, c *core.Acquire) bool {
	return slices.ContainsFunc(itemsOf(c), func(item core.Item) bool {
		return m.isMirrored(sp, item.Resource) &&
			(item.Slots != 0 || c.Priority != 0 || len(c.Also) > 0 && c.Wait != 0 || c.Grace != 0)
	})
}

// mirrorClaims makes the records of claims on mirrored resources.
func (m *model) mirrorClaims(claims []*modelClaim) {
	for _, c := range claims {
		if c.face == nil && m.isMirrored(c.sp, c.resource) {
			m.makeFace(c)
		}
	}
}

func (m *model) makeFace(c *modelClaim) {
	path := m.resource(c.sp, c.resource).mirror + c.id
	c.face = &modelFace{path: path, made: true}
	m.write(c.sp, modelWrite{path: path, value: quote(c.holder), session: c.session, holder: c.holder, lease: c.id}, c.token)
}

// mayMirror reports whether a link fits a resource.
func (m *model) mayMirror(sp *modelSpace, l *core.Link) bool {
	r := m.resource(sp, l.Resource)
	if r.mirror != "" || l.Mirror == "" {
		return r.mirror == l.Mirror
	}
	m.settle(sp, l.Resource)
	for _, c := range slices.Concat(m.holders(sp, l.Resource), m.queue(sp, l.Resource)) {
		if c.slots != 0 || c.face != nil || c.grace != 0 || c.token == 0 && (c.priority != 0 || len(m.together(c)) > 1) {
			return false
		}
	}
	return m.capacity(sp, l.Resource) == 0
}

// mayRest reports whether a mirrored resource is given to the next not at once.
func (m *model) mayRest(sp *modelSpace, l *core.Link) bool {
	d := m.definition(sp, l.Resource)
	slots, all := m.resting(sp, l.Resource)
	return l.Mirror != "" && (m.quarantined() || l.Grace != 0 || d.Grace != 0 || d.Unclean == leasehold.AwaitAcknowledgement ||
		slots != 0 || all)
}

// link is what a put with a link does to its claim: the record that is written with it, or what is answered instead.
func (m *model) link(sp *modelSpace, c *core.PutRecord, old *modelRecord) (do func() *modelClaim, refusal modelAnswer) {
	l, claim := c.Link, m.faceOf(old)
	a := l.Acquire(c.Namespace, c.Session)
	if claim != nil && claim.id == l.ID {
		return m.linkAgain(sp, a, claim)
	}
	if !m.mayMirror(sp, l) || m.mayRest(sp, l) {
		return nil, modelAnswer{text: "refused"}
	}
	takes := claim != nil && l.Take
	if takes {
		a.Wait = time.Hour // whoever waits is passed over
	}
	claims, blocked, refusal := m.mayAcquire(sp, a)
	switch {
	case refusal.text != "":
		return nil, refusal
	case takes && (claim.token == 0 || claim.resource != l.Resource || m.quarantined()):
		return nil, modelAnswer{text: "refused"}
	case takes:
		return func() *modelClaim { return m.takeFrom(claim, claims[0], c) }, refusal
	case m.full(1, blocked != ""):
		return nil, modelAnswer{text: "limited"}
	}
	if blocked != "" {
		if cycle := m.deadlock(claims); cycle != "" {
			return nil, modelAnswer{text: "refused" + cycle}
		}
	}
	if claim != nil || old != nil && l.Mirror != "" {
		return nil, modelAnswer{text: "refused"}
	}
	return func() *modelClaim {
		sp := m.begin(c.Namespace)
		claims[0].sp = sp
		m.beginMirror(sp, l)
		m.agree(sp, a)
		claims[0].face = &modelFace{path: c.Path, stay: l.Stay}
		m.claims = append(m.claims, claims...)
		if blocked == "" {
			m.grant(claims[0])
			return claims[0]
		}
		claims[0].came = m.now
		m.event(sp, "queued %s", claims[0].id)
		m.groups++
		m.lengthened(sp, l.Resource)
		return claims[0]
	}, refusal
}

// linkAgain is link for a record that is the face of the very claim.
func (m *model) linkAgain(sp *modelSpace, a *core.Acquire, claim *modelClaim) (func() *modelClaim, modelAnswer) {
	largest := m.definition(sp, claim.resource).LargestTTL
	switch {
	case claim.face.made || claim.resource != a.Resource || claim.holder != a.Holder || claim.session != a.Session:
		return nil, modelAnswer{text: "refused"}
	case a.TTL != 0 && claim.ttl != 0 && largest != 0 && a.TTL > largest:
		return nil, modelAnswer{text: "refused"}
	}
	return func() *modelClaim {
		m.renewed(claim)
		if claim.alive = m.now; claim.token != 0 && claim.ttl != 0 && a.TTL != 0 {
			claim.ttl = a.TTL
		}
		return claim
	}, modelAnswer{}
}

// takeFrom hands a lease to another, with a new id and token.
func (m *model) takeFrom(claim, to *modelClaim, c *core.PutRecord) *modelClaim {
	sp := claim.sp
	m.endings = append(m.endings, modelEnding{
		sp: sp, id: claim.id, how: leasehold.IDChanged, at: m.now, resource: claim.resource, token: claim.token, next: to.id, owner: claim.owner,
	})
	sp.token++
	if a := m.alarm(sp, leasehold.HeldLong, claim.id); a != nil {
		a.thing = to.id
	}
	m.intervene(claim)
	to.token, to.granted, to.alive, to.breakAt = sp.token, claim.granted, m.now, claim.breakAt
	to.long, to.overdue, to.units, to.face = claim.long, claim.overdue, claim.units, &modelFace{path: c.Path, stay: c.Link.Stay}
	for i, unit := range m.resource(sp, claim.resource).units {
		if slices.Contains(claim.units, unit.name) {
			m.resource(sp, claim.resource).units[i].holder = to.holder
		}
	}
	m.claims[slices.Index(m.claims, claim)] = to
	m.event(sp, "changed %s token %d", to.id, to.token)
	return to
}

// beginMirror lets everybody who has or wants a resource show as a record, each at a revision of its own.
func (m *model) beginMirror(sp *modelSpace, l *core.Link) {
	r := m.resource(sp, l.Resource)
	if l.Mirror == "" || r.mirror != "" {
		return
	}
	r.mirror = l.Mirror
	for _, c := range slices.Concat(m.holders(sp, l.Resource), m.queue(sp, l.Resource)) {
		sp.command = 0
		m.makeFace(c)
		sp.command = 0
	}
}

// putLinked is put for a put that links, or that is on a linked record.
func (m *model) putLinked(sp *modelSpace, c *core.PutRecord, old *modelRecord, w modelWrite, token leasehold.Token) modelAnswer {
	var do func() *modelClaim
	gives := ""
	switch claim := m.faceOf(old); {
	case c.Link != nil:
		known := sp != nil
		sp = m.begin(c.Namespace)
		var refusal modelAnswer
		do, refusal = m.link(sp, c, old)
		if !known {
			m.unbegin(sp)
		}
		if refusal.text != "" {
			return refusal
		}
		w.lease, w.loose = c.Link.ID, c.Link.Stay
		if claim != nil && claim.id == c.Link.ID {
			w.loose = claim.face.stay
		}
	case claim == nil:
	case c.KeepLink:
		w.lease, w.session, w.loose = old.lease, old.session, claim.face.stay
	case m.isMirrored(sp, claim.resource):
		return modelAnswer{text: "refused"}
	default:
		gives = claim.id
	}
	switch {
	case w.session != "" && !w.loose && m.live(m.space(c.Namespace), w.session) == nil:
		return m.noSession(m.space(c.Namespace), w.session)
	case m.fullOfSpaces(c.Namespace), m.writesBeyond(c.Namespace, []modelWrite{w}):
		return modelAnswer{text: "limited"}
	}
	sp = m.begin(c.Namespace)
	m.apart(sp, old)
	var claim *modelClaim
	if do != nil {
		if claim = do(); claim.token != 0 {
			token, w.holder = max(token, claim.token), claim.holder
		}
	}
	text := m.write(sp, w, token).text(true)
	m.giveUp(sp, gives)
	if claim == nil {
		return modelAnswer{text: text}
	}
	id := claim.id
	again := func() modelAnswer {
		now := m.claim(sp, id)
		return modelAnswer{text: text + "; " + m.show(now).text}
	}
	answer := again()
	answer.again = func() modelAnswer {
		if m.touch(sp, id) == nil {
			return m.noClaim(sp, id)
		}
		return again()
	}
	return answer
}

// wrongLink reports whether no state could make sense of a put.
func (m *model) wrongLink(c *core.PutRecord) bool {
	l := c.Link
	return l != nil && (l.TTL != 0 && c.Session != "" || l.Wait && l.TTL == 0 && c.Session == "")
}
