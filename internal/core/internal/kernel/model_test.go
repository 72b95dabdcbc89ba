package kernel_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A model says what the core should do, in the dumbest way that works: everything is
// in plain lists, every question is a walk through them, and nothing is kept that can
// be worked out. It shares no code with the core, and this package could not reach it
// if it wanted to. What it predicts is text; compare with predicted in property_test.go.
type model struct {
	now       core.Time
	spaces    []*modelSpace
	claims    []*modelClaim // in the order in which they came, which is that of the queues
	sessions  []*modelSession
	resources []*modelResource
	records   []modelRecord  // sorted by path
	past      []modelPast    // the records at each revision
	former    []modelVersion // what records were, oldest first
	shelves   []modelShelf   // of the records that keep that
	endings   []modelEnding  // ids that ended
	outcomes  []modelOutcome // requests that were answered
	command   int            // counts the commands
	events    []string       // of the entry
	stirred   []modelPlace   // of which something may be free
	groups    int            // of waiters that want several resources, so far
	raised    uint64
	alarms    []*modelAlarm // in the order in which they happened last
	untold    []func()      // alarms of the command
	closing   *modelSession // that is ending

	base       uint64 // of tokens and revisions after a restore; 0: there was none
	quarantine time.Duration
	resumes    core.Time     // when the quarantine ends; 0: nobody has led yet
	resumed    bool          // and everybody had their turn
	asked      []*modelClaim // while it is looked whether they would wait for ever

	caps              leasehold.Caps // that were set
	forgottenToken    leasehold.Token
	forgottenRevision int

	modelAccess
}

type modelPlace struct {
	sp   *modelSpace
	path string
}

type modelSpace struct {
	name     string
	token    leasehold.Token
	revision int
	command  int // that made the revision
	n        int // events of that command so far
	changed  core.Time
	defined  []leasehold.Definition
}

type modelClaim struct {
	mayExpire                     bool
	sp                            *modelSpace
	id, resource, holder, session string
	ttl, grace, limit             time.Duration
	slots                         int // 0: all
	party, foreign, reason, note  string
	group                         int // of those that are granted together; 0: alone
	units                         []string
	after                         string // the lease of whose end it is warned

	priority int             // while it waits
	token    leasehold.Token // 0: it waits
	granted  core.Time
	alive    core.Time // its last sign of life
	until    core.Time // end of its wait
	breakAt  core.Time
	mine     bool // its own session gives it back right now

	came           core.Time // to wait
	gap            float64   // the largest part of the ttl without a renewal
	expected, long time.Duration
	overdue        bool
	owner          string
	face           *modelFace
}

type modelSession struct {
	sp     *modelSpace
	id     string
	ttl    time.Duration
	alive  core.Time
	number uint64 // the largest of a request
	gap    float64

	touched   []string // its leases that others ended or changed
	before    uint64   // how many such there may have been before a restore
	withdrawn []string // ids that were given back before they came
	owner     string
}

type modelResource struct {
	sp     *modelSpace
	path   string
	used   bool // ever
	agreed int  // slots, by who shares it; 0: nobody said
	rests  []modelRest
	last   *modelEnding
	units  []modelUnit // that somebody has or had
	holds  []modelHold
	waits  []modelWait
	lost   []core.Time // when holders went away
	mirror string      // below which all claims on it have records
}

// A modelRest keeps slots free after an unclean end.
type modelRest struct {
	slots  int // 0: all
	units  []string
	until  core.Time // 0: until somebody acknowledges it
	ending modelEnding
}

type modelUnit struct {
	name, holder string
	freed        core.Time // 0: nobody gave it back yet
}

type modelEnding struct {
	sp       *modelSpace
	id       string
	holder   string
	session  bool
	how      leasehold.How
	at       core.Time
	resource string
	token    leasehold.Token
	next     string // the id after a change
	foreign  string
	ttl      time.Duration
	owner    string
}

type modelOutcome struct {
	sp      *modelSpace
	request core.Request
	subject string
	at      core.Time
	answer  modelAnswer
	owner   string
}

// A modelAnswer is a text, and the thing that must be looked up again when the text is
// told once more.
type modelAnswer struct {
	text           string
	claim, session string
	again          func() modelAnswer // tells a transaction once more
}

// apply predicts the answers to the commands of an entry. The events are left in
// m.events.
func (m *model) apply(stamp core.Time, commands []core.Command) (answers []string) {
	m.now, m.events = stamp, nil
	for i, c := range commands {
		m.command++
		m.asks(i)
		answers = append(answers, m.answer(c).text)
		m.tellAlarms()
		m.keepPast()
	}
	m.forget(2*len(commands) + 2*len(m.events) + 16)
	m.forgetSpaces()
	return answers
}

// forget lets go of what is ten minutes old, a few at a time.
func (m *model) forget(most int) {
	old := func(at core.Time) bool { return at+core.Time(10*time.Minute) <= m.now }
	for range most {
		if len(m.endings) > 0 && old(m.endings[0].at) {
			m.endings = m.endings[1:]
		}
		i := slices.IndexFunc(m.outcomes, func(o modelOutcome) bool { return o.request.Session == "" })
		if i >= 0 && old(m.outcomes[i].at) {
			m.outcomes = slices.Delete(m.outcomes, i, i+1)
		}
		i = slices.IndexFunc(m.alarms, func(a *modelAlarm) bool { return a.kind.Past() })
		if i >= 0 && m.alarms[i].last+core.Time(time.Hour) <= m.now {
			m.alarms = slices.Delete(m.alarms, i, i+1)
		}
	}
}

// A modelRequest is what all commands have in common.
type modelRequest struct {
	namespace string
	request   core.Request
	subject   string
	decide    func(sp *modelSpace) modelAnswer // sp is nil if the namespace is new
}

func (m *model) answer(c core.Command) modelAnswer {
	switch c := c.(type) {
	case *core.Tick:
		m.tick()
		return modelAnswer{text: "done"}
	case *core.SetCaps:
		return m.setCaps(c)
	case *core.EndQuarantine:
		return m.endQuarantine(c)
	case *core.RaiseTokens:
		return m.raiseTokens(c)
	case *core.Lead:
		if m.base != 0 && !m.resumed && m.resumes == 0 {
			m.resumes = m.now + core.Time(m.quarantine)
		}
		return modelAnswer{text: "done"}
	case *core.Acquire:
		if c.TTL != 0 && c.Session != "" {
			return modelAnswer{text: "invalid"}
		}
	case *core.Change:
		if c.About != nil && c.About.Holder == "" {
			return modelAnswer{text: "invalid"}
		}
		if c.About == nil && c.Holder == "" && c.NewID == "" || c.Foreign != "" && c.NewID == "" {
			return modelAnswer{text: "invalid"}
		}
	case *core.Define:
		if c.Definition.LargestTTL != 0 && c.Definition.DefaultTTL > c.Definition.LargestTTL {
			return modelAnswer{text: "invalid"}
		}
	case *core.DeleteRecord:
		if c.Range && (c.IfRevision != 0 || c.Fence.Token != 0 && c.Fence.Lease == "") {
			return modelAnswer{text: "invalid"}
		}
	case *core.PutRecord:
		if m.wrongLink(c) {
			return modelAnswer{text: "invalid"}
		}
	case *core.Txn:
		if wrongTxn(c) {
			return modelAnswer{text: "invalid"}
		}
	}
	if m.usesAnothersID(c) {
		return modelAnswer{text: "refused"}
	}
	if text := m.aboutNothing(c); text != "" {
		return modelAnswer{text: text}
	}
	r := m.request(c)
	r.subject += modelDetails(c)
	if again, ok := m.again(c, r); ok {
		return again
	}
	answer := r.decide(m.space(r.namespace))
	m.remember(r, answer)
	return answer
}

func (m *model) request(c core.Command) modelRequest {
	switch c := c.(type) {
	case *core.OpenSession:
		return modelRequest{c.Namespace, c.Request, "open " + c.ID, func(*modelSpace) modelAnswer { return m.open(c) }}
	case *core.RenewSession:
		return modelRequest{c.Namespace, core.Request{}, "", func(sp *modelSpace) modelAnswer { return m.renewSession(sp, c.ID) }}
	case *core.CloseSession:
		return modelRequest{c.Namespace, c.Request, "close " + c.ID, func(sp *modelSpace) modelAnswer { return m.close(sp, c) }}
	case *core.Acquire:
		return modelRequest{c.Namespace, c.Request, "acquire " + c.Resource, func(sp *modelSpace) modelAnswer { return m.acquire(sp, c) }}
	case *core.Renew:
		return modelRequest{c.Namespace, core.Request{}, "", func(sp *modelSpace) modelAnswer { return m.renew(sp, c) }}
	case *core.Release:
		return modelRequest{c.Namespace, c.Request, "release " + c.ID, func(sp *modelSpace) modelAnswer { return m.release(sp, c) }}
	case *core.Change:
		return modelRequest{c.Namespace, c.Request, "change " + c.ID, func(sp *modelSpace) modelAnswer { return m.change(sp, c) }}
	case *core.Break:
		return modelRequest{c.Namespace, c.Request, "break " + c.ID + c.Resource, func(sp *modelSpace) modelAnswer { return m.breakLease(sp, c) }}
	case *core.PutRecord:
		return modelRequest{c.Namespace, c.Request, "put " + c.Path, func(sp *modelSpace) modelAnswer { return m.put(sp, c) }}
	case *core.DeleteRecord:
		return modelRequest{c.Namespace, c.Request, fmt.Sprint("delete ", c.Path, c.Range), func(sp *modelSpace) modelAnswer { return m.delete(sp, c) }}
	case *core.Move:
		return modelRequest{c.Namespace, c.Request, "move " + c.ID, func(sp *modelSpace) modelAnswer { return m.move(sp, c) }}
	case *core.Ask:
		return modelRequest{c.Namespace, c.Request, "ask " + c.Resource, func(sp *modelSpace) modelAnswer { return m.ask(sp, c) }}
	case *core.Define:
		return modelRequest{c.Namespace, c.Request, "define " + c.Definition.Path, func(*modelSpace) modelAnswer { return m.define(c) }}
	case *core.Undefine:
		return modelRequest{c.Namespace, c.Request, "undefine " + c.Path, func(sp *modelSpace) modelAnswer { return m.undefine(sp, c.Path) }}
	case *core.Acknowledge:
		return modelRequest{c.Namespace, c.Request, "acknowledge " + c.Resource, func(sp *modelSpace) modelAnswer { return m.acknowledge(sp, c) }}
	case *core.AcknowledgeAlarm:
		return modelRequest{c.Namespace, c.Request, "acknowledge alarm " + c.Resource, func(sp *modelSpace) modelAnswer { return m.acknowledgeAlarm(sp, c) }}
	case *core.Txn:
		subject := "txn"
		if all := slices.Concat(c.Then, c.Else); len(all) > 0 {
			subject += " " + all[0].Path
		}
		return modelRequest{c.Namespace, c.Request, subject, func(sp *modelSpace) modelAnswer { return m.txn(sp, c) }}
	}
	panic(fmt.Sprintf("the model does not know %T", c))
}

// again answers a request that was answered before, or may not be any more.
func (m *model) again(c core.Command, r modelRequest) (modelAnswer, bool) {
	if r.request == (core.Request{}) {
		return modelAnswer{}, false
	}
	sp := m.space(r.namespace)
	if r.request.Session != "" {
		session := m.live(sp, r.request.Session)
		closes, _ := c.(*core.CloseSession)
		switch {
		case session == nil && closes != nil && closes.ID == r.request.Session:
			return modelAnswer{}, false
		case session == nil:
			return m.noSession(sp, r.request.Session), true
		case session.number >= 1024 && r.request.Sequence <= session.number-1024:
			return modelAnswer{text: "refused"}, true
		}
	}
	for _, o := range m.outcomes {
		if o.sp != sp || o.request != r.request || r.request.Session == "" && o.owner != m.who {
			continue
		}
		if o.subject != r.subject {
			return modelAnswer{text: "invalid"}, true
		}
		return m.tellAgain(c, sp, o.answer), true
	}
	return modelAnswer{}, false
}

func (m *model) tellAgain(c core.Command, sp *modelSpace, a modelAnswer) modelAnswer {
	if a.again != nil {
		return a.again()
	}
	if a.session != "" {
		if session := m.live(sp, a.session); session != nil {
			return m.showSession(session)
		}
		return m.noSession(sp, a.session)
	}
	if a.claim == "" {
		return a
	}
	claim := m.touch(sp, a.claim)
	_, isBreak := c.(*core.Break)
	acquire, _ := c.(*core.Acquire)
	switch {
	case claim != nil && claim.token != 0 && acquire != nil && acquire.ID == a.claim && len(acquire.Also) > 0:
		return m.acquireAgain(sp, acquire)
	case claim != nil:
		return m.stillThere(claim)
	case isBreak:
		return m.brokenBefore(sp, a.claim)
	}
	return m.noClaim(sp, a.claim)
}

func (m *model) remember(r modelRequest, a modelAnswer) {
	sp := m.space(r.namespace)
	if sp == nil || r.request == (core.Request{}) {
		return
	}
	if r.request.Session != "" {
		session := m.session(sp, r.request.Session)
		if session == nil {
			return
		}
		session.number = max(session.number, r.request.Sequence)
		m.outcomes = slices.DeleteFunc(m.outcomes, func(o modelOutcome) bool {
			return o.sp == sp && o.request.Session == session.id && session.number >= 1024 && o.request.Sequence <= session.number-1024
		})
	}
	m.outcomes = append(m.outcomes, modelOutcome{sp, r.request, r.subject, m.now, a, m.who})
}

// The verbs.

func (m *model) acquire(sp *modelSpace, c *core.Acquire) modelAnswer {
	if sp == nil && c.Session != "" {
		return m.noSession(nil, c.Session)
	}
	if m.fullOfSpaces(c.Namespace) {
		return modelAnswer{text: "limited"}
	}
	sp = m.begin(c.Namespace)
	if claim := m.touch(sp, c.ID); claim != nil {
		return m.acquireAgain(sp, c)
	}
	claims, blocked, refusal := m.mayAcquire(sp, c)
	if refusal.text != "" {
		return refusal
	}
	if m.full(len(claims), blocked != "") || m.claimsBeyond(sp.name, len(claims), blocked != "") {
		return modelAnswer{text: "limited"}
	}
	if blocked != "" {
		if cycle := m.deadlock(claims); cycle != "" {
			return modelAnswer{text: "refused" + cycle}
		}
	}
	m.agree(sp, c)
	m.claims = append(m.claims, claims...)
	if blocked == "" {
		for _, claim := range claims {
			m.grant(claim)
		}
		m.mirrorClaims(claims)
		return m.showLeases(claims)
	}
	for _, claim := range claims {
		claim.until, claim.came = m.now+core.Time(c.Wait), m.now
		if m.event(sp, "queued %s", claim.id); len(claims) > 1 {
			claim.group = m.groups + 1
		}
	}
	m.groups++
	for _, claim := range claims {
		m.lengthened(sp, claim.resource)
	}
	m.mirrorClaims(claims)
	return m.showWaiter(claims[0])
}

// mayAcquire makes claims of what is asked for, and tells which resource cannot be had
// yet; or why nothing can.
func (m *model) mayAcquire(sp *modelSpace, c *core.Acquire) (claims []*modelClaim, blocked string, refusal modelAnswer) {
	for _, item := range itemsOf(c) {
		if m.touch(sp, item.ID) != nil {
			return nil, "", modelAnswer{text: "refused"}
		}
		if m.ended(sp, item.ID, false) != nil {
			return nil, "", m.noClaim(sp, item.ID)
		}
	}
	if session := m.live(sp, c.Session); session != nil {
		for _, item := range itemsOf(c) {
			if slices.Contains(session.withdrawn, item.ID) {
				return nil, "", modelAnswer{text: "lost"}
			}
		}
	}
	if c.Session != "" && m.live(sp, c.Session) == nil {
		return nil, "", m.noSession(sp, c.Session)
	}
	for _, item := range itemsOf(c) {
		m.settle(sp, item.Resource)
	}
	for _, item := range itemsOf(c) {
		claim := m.wanted(sp, c, item)
		if claim == nil {
			return nil, "", modelAnswer{text: "refused"}
		}
		claims = append(claims, claim)
		if blocked == "" && !m.canHave(sp, item, c.Priority) {
			blocked = item.Resource
		}
	}
	if m.disturbs(sp, c) {
		return nil, "", modelAnswer{text: "refused"}
	}
	if blocked != "" && c.Wait == 0 {
		return nil, "", m.held(sp, blocked, nil)
	}
	return claims, blocked, modelAnswer{}
}

func itemsOf(c *core.Acquire) []core.Item {
	return append([]core.Item{{Resource: c.Resource, ID: c.ID, Slots: c.Slots, Capacity: c.Capacity}}, c.Also...)
}

// wanted is the claim that a request makes on one resource; nil if that contradicts
// what was defined, or what others said.
func (m *model) wanted(sp *modelSpace, c *core.Acquire, item core.Item) *modelClaim {
	d := m.definition(sp, item.Resource)
	claim := &modelClaim{
		sp: sp, id: item.ID, resource: item.Resource, holder: c.Holder, session: c.Session, slots: item.Slots, party: c.Party,
		ttl: c.TTL, grace: c.Grace, limit: c.HoldLimit, alive: m.now, priority: c.Priority, reason: c.Reason, owner: m.who,
	}
	claim.foreign, claim.mayExpire = c.Foreign, c.MayExpire
	if c.Pick != core.TTLAsSaid && d.DefaultTTL != 0 {
		claim.ttl = d.DefaultTTL
	}
	if c.Pick == core.TTLAuto {
		claim.ttl = m.auto(m.resource(sp, item.Resource), d, claim.ttl)
	}
	claim.expected = d.Expected
	lasts := claim.ttl
	if c.Session != "" {
		lasts = m.session(sp, c.Session).ttl
	}
	if tooLong := d.LargestTTL != 0 && (lasts == 0 || lasts > d.LargestTTL); tooLong && c.Pick != core.TTLAsSaid {
		claim.ttl = d.LargestTTL
	} else if tooLong {
		return nil
	}
	if d.HoldLimit != 0 && (claim.limit == 0 || claim.limit > d.HoldLimit) {
		claim.limit = d.HoldLimit
	}
	known := m.capacity(sp, item.Resource)
	contradicts := known != 0 && (item.Slots > known || item.Capacity != 0 && item.Capacity != known)
	if item.Slots != 0 && (contradicts || known == 0 && item.Capacity == 0 && item.Slots > 1) {
		return nil
	}
	return claim
}

// canHave reports whether somebody who does not wait yet can have a resource at once.
func (m *model) canHave(sp *modelSpace, item core.Item, priority int) bool {
	if m.quarantined() {
		return false
	}
	if queue := m.queue(sp, item.Resource); len(queue) > 0 && queue[0].priority >= priority {
		return false
	}
	return m.fits(sp, item.Resource, item.Slots, item.Capacity)
}

// agree notes that resources are wanted, and what the first who share them say of their slots.
func (m *model) agree(sp *modelSpace, c *core.Acquire) {
	for _, item := range itemsOf(c) {
		r := m.resource(sp, item.Resource)
		if r.used = true; item.Slots != 0 && r.agreed == 0 {
			r.agreed = cmp.Or(m.capacity(sp, item.Resource), item.Capacity, leasehold.MaxCapacity)
		}
	}
}

func (m *model) acquireAgain(sp *modelSpace, c *core.Acquire) modelAnswer {
	for _, item := range itemsOf(c) {
		again := m.touch(sp, item.ID)
		switch {
		case again == nil:
			return m.noClaim(sp, item.ID)
		case again.resource != item.Resource || again.holder != c.Holder:
			return modelAnswer{text: "refused"}
		}
	}
	var claims []*modelClaim
	for _, item := range itemsOf(c) {
		claim := m.claim(sp, item.ID)
		if claim == nil {
			return m.noClaim(sp, item.ID)
		}
		if claims = append(claims, claim); (claim.token == 0) != (claims[0].token == 0) {
			return modelAnswer{text: "refused"}
		}
	}
	switch {
	case claims[0].token != 0:
		return m.showLeases(claims)
	case c.Wait == 0:
		return m.held(sp, claims[0].resource, claims[0])
	}
	return m.stillThere(claims[0])
}

// stillThere takes a sign of life of a waiter; a lease is merely shown.
func (m *model) stillThere(claim *modelClaim) modelAnswer {
	if claim.token != 0 {
		return m.showLease(claim)
	}
	for _, c := range m.together(claim) {
		c.alive = m.now
	}
	return m.showWaiter(claim)
}

func (m *model) renew(sp *modelSpace, c *core.Renew) modelAnswer {
	claim := m.touch(sp, c.ID)
	if claim == nil {
		return m.noClaim(sp, c.ID)
	}
	if c.Note != nil && claim.token != 0 {
		claim.note = *c.Note
	}
	if session := m.session(sp, claim.session); session != nil && claim.token != 0 {
		m.renewedSession(session)
		session.alive = m.now
	}
	m.renewed(claim)
	claim.alive = m.now
	return m.stillThere(claim)
}

func (m *model) release(sp *modelSpace, c *core.Release) modelAnswer {
	if claim := m.touch(sp, c.ID); claim != nil {
		how := leasehold.Released
		if claim.token == 0 {
			how = leasehold.Withdrawn
		}
		claim.mine = claim.session == c.Session
		m.end(claim, how, m.now)
		return modelAnswer{text: "done"}
	}
	if e := m.ended(sp, c.ID, false); e != nil && (e.how == leasehold.Released || e.how == leasehold.Withdrawn) {
		return modelAnswer{text: "done"}
	} else if e != nil || !c.Withdraw {
		return m.noClaim(sp, c.ID)
	}
	if c.Session == "" {
		if m.fullOfSpaces(c.Namespace) {
			return m.noClaim(nil, c.ID)
		}
		sp = m.begin(c.Namespace)
		m.endings = append(m.endings, modelEnding{sp: sp, id: c.ID, how: leasehold.Withdrawn, at: m.now, owner: m.who})
	} else if session := m.live(sp, c.Session); session != nil && !slices.Contains(session.withdrawn, c.ID) {
		session.withdrawn = append(session.withdrawn, c.ID)
	}
	return modelAnswer{text: "done"}
}

// intervene tells the session of a lease that others did something to it.
func (m *model) intervene(c *modelClaim) {
	if session := m.session(c.sp, c.session); session != nil && c.session != "" && !c.mine {
		session.touched = append(session.touched, c.id)
	}
}

// modelDetails is a command without what may differ when it is sent once more.
func modelDetails(c core.Command) string {
	switch c := c.(type) {
	case *core.OpenSession:
		return fmt.Sprint(c.TTL)
	case *core.Acquire:
		same := *c
		same.ID, same.Wait, same.Reason, same.Labels, same.Party, same.Request = "", 0, "", nil, "", core.Request{}
		same.Also = slices.Clone(c.Also)
		for i := range same.Also {
			same.Also[i].ID = ""
		}
		return renderAny(same)
	case *core.Release:
		return fmt.Sprint(c.Session, " ", c.Withdraw)
	case *core.CloseSession:
		return fmt.Sprint(c.Abandon)
	case *core.Change:
		about := ""
		if c.About != nil {
			about = c.About.Holder
		}
		return fmt.Sprintf("%q %q %q %q", c.Holder, c.NewID, c.Foreign, about)
	case *core.Break:
		return fmt.Sprint(c.Token, c.Period, c.Remains, c.All, c.Waiting)
	case *core.PutRecord:
		same := *c
		same.Request, same.By, same.Reason = core.Request{}, "", ""
		return renderAny(same)
	case *core.DeleteRecord:
		same := *c
		same.Request = core.Request{}
		return renderAny(same)
	case *core.Move:
		return fmt.Sprint(c.Priority)
	case *core.Ask:
		return c.Message
	case *core.Define:
		return renderAny(c.Definition) + fmt.Sprint(c.Fields, c.KeepSlots, c.IfRevision)
	case *core.Acknowledge:
		return fmt.Sprint(c.Token)
	case *core.AcknowledgeAlarm:
		return fmt.Sprint(c.Kind, c.ID, c.Order)
	case *core.Txn:
		text := renderAny(c.If)
		for i, o := range slices.Concat(c.Then, c.Else) {
			if o.Acquire != nil {
				text += modelDetails(o.Acquire)
			}
			o.Acquire = nil
			text += fmt.Sprint(i < len(c.Then)) + renderAny(o)
		}
		return text
	}
	return ""
}

func (m *model) change(sp *modelSpace, c *core.Change) modelAnswer {
	claim := m.touch(sp, c.ID)
	if claim == nil {
		return m.changeAgain(sp, c)
	}
	if claim.token == 0 {
		return modelAnswer{text: "refused"}
	}
	if c.About != nil {
		return m.describe(claim, c.About)
	}
	holder, id := cmp.Or(c.Holder, claim.holder), cmp.Or(c.NewID, claim.id)
	if holder == claim.holder && id == claim.id {
		return m.showLease(claim)
	}
	if m.isMirrored(sp, claim.resource) {
		return modelAnswer{text: "refused"}
	}
	if holder != claim.holder && m.quarantined() {
		return modelAnswer{text: "refused"}
	}
	if id != claim.id && (m.claim(sp, id) != nil || m.ended(sp, id, false) != nil) {
		return modelAnswer{text: "refused"}
	}
	if id != claim.id {
		m.endings = append(m.endings, modelEnding{
			sp: sp, id: claim.id, how: leasehold.IDChanged, at: m.now, resource: claim.resource, token: claim.token, next: id, owner: claim.owner,
		})
	}
	if holder != claim.holder {
		sp.token++
		claim.token, claim.note = sp.token, ""
	}
	if a := m.alarm(sp, leasehold.HeldLong, claim.id); a != nil {
		a.thing = id
	}
	if id != claim.id {
		claim.foreign = c.Foreign
	}
	m.intervene(claim)
	was := claim.id
	claim.holder, claim.id = holder, id
	for i, unit := range m.resource(sp, claim.resource).units {
		if slices.Contains(claim.units, unit.name) {
			m.resource(sp, claim.resource).units[i].holder = holder
		}
	}
	m.event(sp, "changed %s token %d", claim.id, claim.token)
	m.endFace(claim, was, leasehold.IDChanged)
	claim.face = nil
	return m.showLease(claim)
}

// describe notes what a holder says about itself; nothing else of the lease changes.
func (m *model) describe(claim *modelClaim, about *core.About) modelAnswer {
	if claim.holder == about.Holder && claim.reason == about.Reason {
		return m.showLease(claim)
	}
	claim.holder, claim.reason = about.Holder, about.Reason
	for i, unit := range m.resource(claim.sp, claim.resource).units {
		if slices.Contains(claim.units, unit.name) {
			m.resource(claim.sp, claim.resource).units[i].holder = about.Holder
		}
	}
	m.event(claim.sp, "changed %s token %d", claim.id, claim.token)
	return m.showLease(claim)
}

func (m *model) changeAgain(sp *modelSpace, c *core.Change) modelAnswer {
	e := m.ended(sp, c.ID, false)
	if e == nil || e.how != leasehold.IDChanged || c.NewID == "" || e.next != c.NewID {
		return m.noClaim(sp, c.ID)
	}
	if claim := m.touch(sp, c.NewID); claim != nil {
		return m.showLease(claim)
	}
	return m.noClaim(sp, c.NewID)
}

func (m *model) breakLease(sp *modelSpace, c *core.Break) modelAnswer {
	if c.ID == "" {
		return m.breakResource(sp, c)
	}
	claim := m.touch(sp, c.ID)
	if claim == nil {
		return m.brokenBefore(sp, c.ID)
	}
	if c.Waiting && claim.token != 0 {
		return modelAnswer{text: "lost"}
	}
	if c.Token != 0 && c.Token != claim.token {
		return modelAnswer{text: "lost"}
	}
	return m.breakClaim(claim, c)
}

func (m *model) move(sp *modelSpace, c *core.Move) modelAnswer {
	claim := m.touch(sp, c.ID)
	switch {
	case claim == nil:
		return m.noClaim(sp, c.ID)
	case claim.token != 0:
		return modelAnswer{text: "refused"}
	case claim.priority == c.Priority:
		return m.showWaiter(claim)
	case m.isMirrored(sp, claim.resource):
		return modelAnswer{text: "refused"}
	}
	together := m.together(claim)
	for _, one := range together {
		one.priority = c.Priority
		m.claims = append(slices.DeleteFunc(m.claims, func(other *modelClaim) bool { return other == one }), one)
		m.event(sp, "moved %s", one.id)
	}
	for _, one := range together {
		m.stir(sp, one.resource)
	}
	return m.show(claim)
}

func (m *model) ask(sp *modelSpace, c *core.Ask) modelAnswer {
	if sp == nil {
		return modelAnswer{text: "not-found"}
	}
	m.settle(sp, c.Resource)
	holders := m.holders(sp, c.Resource)
	if len(holders) == 0 {
		return modelAnswer{text: "not-found"}
	}
	for _, holder := range holders {
		m.event(sp, "asked %s token %d", holder.id, holder.token)
	}
	return m.showLeases(holders)
}

func (m *model) breakResource(sp *modelSpace, c *core.Break) modelAnswer {
	if sp == nil {
		return modelAnswer{text: "not-found"}
	}
	m.settle(sp, c.Resource)
	holders, r := m.holders(sp, c.Resource), m.resource(sp, c.Resource)
	meant := slices.DeleteFunc(slices.Clone(holders), func(h *modelClaim) bool {
		return h.token != c.Token && (h.slots == 0 || h.token > c.Token)
	})
	if len(meant) > 1 && !c.All {
		return modelAnswer{text: "refused"}
	}
	if len(meant) > 0 {
		return m.breakSeveral(meant, c)
	}
	switch {
	case r.last != nil && r.last.token == c.Token && r.last.how == leasehold.ByBreak && m.ended(sp, r.last.id, false) != nil:
		return m.brokenBefore(sp, r.last.id)
	case len(holders) > 0:
		return modelAnswer{text: "lost"}
	}
	return modelAnswer{text: "not-found"}
}

// breakSeveral breaks the oldest first, and answers with the newest first.
func (m *model) breakSeveral(meant []*modelClaim, c *core.Break) modelAnswer {
	var newest modelAnswer
	var others, ids []string
	for i, one := range meant {
		newest = m.breakClaim(one, c)
		if ids = append(ids, one.id); i < len(meant)-1 {
			others = append(others, newest.text)
		}
	}
	if len(others) == 0 {
		return newest
	}
	sp, texts := meant[0].sp, append([]string{newest.text}, others...)
	ids = append(ids[len(ids)-1:], ids[:len(ids)-1]...)
	newest.text = strings.Join(texts, "; ")
	newest.again = func() modelAnswer {
		var now []string
		for i, id := range ids {
			claim, text := m.touchUnlessBroken(sp, id, texts[i]), texts[i]
			switch {
			case strings.HasPrefix(text, "broken"):
			case claim != nil:
				text = m.showLease(claim).text
			default:
				text = m.brokenBefore(sp, id).text
			}
			if text != "lost" && text != "not-found" {
				now = append(now, text)
			}
		}
		if len(now) == 0 {
			return m.noClaim(sp, ids[0])
		}
		return modelAnswer{text: strings.Join(now, "; ")}
	}
	return newest
}

// touchUnlessBroken is touch for a lease whose break did not end it at once.
func (m *model) touchUnlessBroken(sp *modelSpace, id, text string) *modelClaim {
	if strings.HasPrefix(text, "broken") {
		return nil
	}
	return m.touch(sp, id)
}

func (m *model) define(c *core.Define) modelAnswer {
	if c.IfRevision != 0 && m.space(c.Namespace) == nil {
		return modelAnswer{text: "refused"}
	}
	if m.fullOfSpaces(c.Namespace) {
		return modelAnswer{text: "limited"}
	}
	sp, d := m.begin(c.Namespace), c.Definition
	var revision leasehold.Revision
	for _, old := range sp.defined {
		if old.Path == d.Path {
			revision = old.Revision
		}
	}
	if c.Fields != 0 {
		d = m.mergeDefinition(sp, c)
	}
	for _, old := range sp.defined {
		same := old
		if same.Revision = 0; old.Path == d.Path && reflect.DeepEqual(same, d) {
			return m.showDefinition(old)
		}
	}
	switch {
	case d.LargestTTL != 0 && d.DefaultTTL > d.LargestTTL:
		return modelAnswer{text: "invalid"}
	case c.IfRevision != 0 && c.IfRevision != revision, c.KeepSlots && m.takesSlots(sp, d):
		return modelAnswer{text: "refused"}
	}
	sp.defined = slices.DeleteFunc(sp.defined, func(old leasehold.Definition) bool { return old.Path == d.Path })
	m.event(sp, "defined %s", d.Path)
	d.Revision = leasehold.Revision(sp.revision)
	sp.defined = append(sp.defined, d)
	m.stirUnder(sp, d.Path)
	return m.showDefinition(d)
}

// mergeDefinition takes the named fields from the command, and the others from what is there.
func (m *model) mergeDefinition(sp *modelSpace, c *core.Define) leasehold.Definition {
	merged := leasehold.Definition{Path: c.Definition.Path}
	for _, old := range sp.defined {
		if old.Path == c.Definition.Path {
			merged = old
		}
	}
	merged.Revision = 0
	from, to := reflect.ValueOf(c.Definition), reflect.ValueOf(&merged).Elem()
	for field, names := range map[core.DefinitionFields][]string{
		core.FieldSlots: {"Capacity", "Units"}, core.FieldDefaultTTL: {"DefaultTTL"}, core.FieldLargestTTL: {"LargestTTL"},
		core.FieldHoldLimit: {"HoldLimit"}, core.FieldGrace: {"Grace"}, core.FieldExpected: {"Expected"}, core.FieldUnclean: {"Unclean"},
	} {
		for _, name := range names {
			if c.Fields&field != 0 {
				to.FieldByName(name).Set(from.FieldByName(name))
			}
		}
	}
	return merged
}

// takesSlots reports whether a definition drops a unit, or leaves fewer slots than are taken, or
// fewer than there were while somebody waits or nobody can tell.
func (m *model) takesSlots(sp *modelSpace, d leasehold.Definition) bool {
	old := m.definition(sp, d.Path)
	m.settle(sp, d.Path)
	if slices.ContainsFunc(old.Units, func(unit string) bool { return !slices.Contains(d.Units, unit) }) {
		return true
	}
	agreed := 0
	if m.known(sp, d.Path) {
		agreed = m.resource(sp, d.Path).agreed
	}
	had, has := cmp.Or(len(old.Units), old.Capacity, agreed), cmp.Or(len(d.Units), d.Capacity, agreed)
	if has == 0 || has >= had {
		return false
	}
	taken := 0
	for _, c := range m.holders(sp, d.Path) {
		taken += c.slots
	}
	return strings.HasSuffix(d.Path, "/") || taken > has || len(m.queue(sp, d.Path)) > 0
}

func (m *model) showDefinition(d leasehold.Definition) modelAnswer {
	return modelAnswer{text: fmt.Sprintf("definition %+v", d)}
}

func (m *model) undefine(sp *modelSpace, path string) modelAnswer {
	if sp == nil || !slices.ContainsFunc(sp.defined, func(d leasehold.Definition) bool { return d.Path == path }) {
		return modelAnswer{text: "not-found"}
	}
	sp.defined = slices.DeleteFunc(sp.defined, func(d leasehold.Definition) bool { return d.Path == path })
	m.event(sp, "undefined %s", path)
	m.stirUnder(sp, path)
	return modelAnswer{text: "done"}
}

// stirUnder lets those have what they wait for who can after a change of definition.
func (m *model) stirUnder(sp *modelSpace, defined string) {
	var paths []string
	for _, c := range m.claims {
		if c.sp == sp && c.token == 0 && !slices.Contains(paths, c.resource) && covers(defined, c.resource) {
			paths = append(paths, c.resource)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		m.stir(sp, path)
	}
}

// covers reports whether what is defined for a path holds for a resource, unless
// something longer does.
func covers(defined, resource string) bool {
	return defined == resource || defined == "/" || strings.HasSuffix(defined, "/") && strings.HasPrefix(resource, defined)
}

// definition is what applies to a resource: the longest that covers it, as a whole.
func (m *model) definition(sp *modelSpace, resource string) (longest leasehold.Definition) {
	for _, d := range sp.defined {
		if covers(d.Path, resource) && len(d.Path) > len(longest.Path) {
			longest = d
		}
	}
	return longest
}

func (m *model) acknowledge(sp *modelSpace, c *core.Acknowledge) modelAnswer {
	if sp == nil || !m.known(sp, c.Resource) {
		return modelAnswer{text: "not-found"}
	}
	m.settle(sp, c.Resource)
	r := m.resource(sp, c.Resource)
	m.wake(r)
	for _, rest := range r.rests {
		if rest.ending.token <= c.Token {
			m.event(sp, "acknowledged %s", rest.ending.id)
		}
	}
	r.rests = slices.DeleteFunc(slices.Clone(r.rests), func(rest modelRest) bool { return rest.ending.token <= c.Token })
	for _, kind := range []leasehold.AlarmKind{leasehold.UncleanEnd, leasehold.Flapping, leasehold.LateRenewal} {
		if a := m.alarm(sp, kind, c.Resource); a != nil && a.token <= c.Token {
			m.clear(sp, kind, c.Resource)
		}
	}
	m.stir(sp, c.Resource)
	return modelAnswer{text: "done"}
}

// known reports whether anybody ever had or wanted a resource.
func (m *model) known(sp *modelSpace, path string) bool {
	return m.resource(sp, path).used
}

// wake forgets the rests of a resource that are over.
func (m *model) wake(r *modelResource) {
	r.rests = slices.DeleteFunc(slices.Clone(r.rests), func(rest modelRest) bool { return rest.until != 0 && rest.until <= m.now })
}

func (m *model) breakClaim(claim *modelClaim, c *core.Break) modelAnswer {
	if claim.token == 0 {
		m.end(claim, leasehold.ByBreak, m.now)
		return m.brokenBefore(claim.sp, claim.id)
	}
	at := m.now + core.Time(c.Period)
	if end := m.deadline(claim); c.Remains && end != 0 {
		at = end
	}
	if claim.breakAt == 0 || at < claim.breakAt {
		claim.breakAt = at
		if at > m.now {
			m.intervene(claim)
			m.event(claim.sp, "breaking %s token %d", claim.id, claim.token)
		}
	}
	if at > m.now {
		return m.showLease(claim)
	}
	m.end(claim, leasehold.ByBreak, m.now)
	return m.brokenBefore(claim.sp, claim.id)
}

func (m *model) brokenBefore(sp *modelSpace, id string) modelAnswer {
	if e := m.ended(sp, id, false); e != nil && e.how == leasehold.ByBreak {
		return modelAnswer{text: fmt.Sprintf("broken %s token %d", id, e.token)}
	}
	return m.noClaim(sp, id)
}

func (m *model) open(c *core.OpenSession) modelAnswer {
	if m.fullOfSpaces(c.Namespace) {
		return modelAnswer{text: "limited"}
	}
	sp := m.begin(c.Namespace)
	if session := m.live(sp, c.ID); session != nil {
		if session.ttl != c.TTL {
			return modelAnswer{text: "refused"}
		}
		return m.showSession(session)
	}
	if m.ended(sp, c.ID, true) != nil {
		return m.noSession(sp, c.ID)
	}
	if m.fullOfSessions() || m.beyond(sp.name, modelTally{sessions: 1}) {
		return modelAnswer{text: "limited"}
	}
	session := &modelSession{sp: sp, id: c.ID, ttl: c.TTL, alive: m.now, owner: m.who}
	m.sessions = append(m.sessions, session)
	m.event(sp, "session opened %s", c.ID)
	return m.showSession(session)
}

func (m *model) renewSession(sp *modelSpace, id string) modelAnswer {
	session := m.live(sp, id)
	if session == nil {
		return m.noSession(sp, id)
	}
	m.renewedSession(session)
	session.alive = m.now
	return m.showSession(session)
}

func (m *model) close(sp *modelSpace, c *core.CloseSession) modelAnswer {
	how := leasehold.SessionClosed
	if c.Abandon {
		how = leasehold.Abandoned
	}
	if session := m.live(sp, c.ID); session != nil {
		m.endSession(session, how)
		return modelAnswer{text: "done"}
	}
	if e := m.ended(sp, c.ID, true); e != nil && e.how == how {
		return modelAnswer{text: "done"}
	}
	return m.noSession(sp, c.ID)
}

// What time does.

// tick lets everything end that is over, in the order of the moments.
func (m *model) tick() {
	m.revoke()
	for {
		d, ok := m.due()
		if !ok || d.at > m.now {
			return
		}
		switch d.kind {
		case 1:
			claim := m.claim(d.sp, d.key)
			if _, _, over := m.over(claim); over {
				m.settleClaim(claim)
			} else {
				m.overdue(claim)
			}
		case 2:
			m.endSession(m.session(d.sp, d.key), leasehold.SessionExpired)
		case 3:
			m.wake(m.resource(d.sp, d.key))
			m.stir(d.sp, d.key)
		case 4:
			m.resume()
		case 5:
			m.unshelve(d.sp, d.key)
		}
	}
}

// A modelDue is when something is due: a claim by itself (1), a session (2), a
// resource that rests and is waited for (3), the end of the quarantine (4), or what is left
// of a deleted record (5).
type modelDue struct {
	at   core.Time
	kind int
	sp   *modelSpace
	key  string
}

// due is what is due first.
func (m *model) due() (modelDue, bool) {
	if m.revoked != "" {
		return modelDue{at: m.now}, true
	}
	var all []modelDue
	for _, c := range m.claims {
		if at, _ := c.ownEnd(); at != 0 {
			all = append(all, modelDue{at, 1, c.sp, c.id})
		}
		if at := c.alarmAt(); at != 0 {
			all = append(all, modelDue{at, 1, c.sp, c.id})
		}
	}
	for _, s := range m.sessions {
		all = append(all, modelDue{s.end(), 2, s.sp, s.id})
	}
	for _, r := range m.resources {
		for _, rest := range r.rests {
			if rest.until != 0 && len(m.queue(r.sp, r.path)) > 0 {
				all = append(all, modelDue{rest.until, 3, r.sp, r.path})
			}
		}
	}
	for _, shelf := range m.shelves {
		if shelf.deleted != 0 {
			all = append(all, modelDue{shelf.deleted + core.Time(30*24*time.Hour), 5, shelf.sp, shelf.path})
		}
	}
	if m.base != 0 && m.resumes != 0 && !m.resumed {
		all = append(all, modelDue{m.resumes, 4, &modelSpace{}, ""})
	}
	if len(all) == 0 {
		return modelDue{}, false
	}
	return slices.MinFunc(all, func(a, b modelDue) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), strings.Compare(a.sp.name, b.sp.name), strings.Compare(a.key, b.key))
	}), true
}

func (s *modelSession) end() core.Time { return s.alive + core.Time(s.ttl) }

// ownEnd is when and how a claim ends, its session aside. Of several reasons at one
// moment the last of the list is named.
func (c *modelClaim) ownEnd() (at core.Time, how leasehold.How) {
	consider := func(is bool, t core.Time, h leasehold.How) {
		if is && (at == 0 || t <= at) {
			at, how = t, h
		}
	}
	waits := c.token == 0
	consider(waits && c.session == "", c.alive+core.Time(15*time.Second), leasehold.Withdrawn)
	consider(waits && c.until != 0, c.until, leasehold.WaitOver)
	consider(!waits && c.ttl != 0, c.alive+core.Time(c.ttl), leasehold.ByTTL)
	consider(!waits && c.limit != 0, c.granted+core.Time(c.limit), leasehold.ByHoldLimit)
	consider(!waits && c.breakAt != 0, c.breakAt, leasehold.ByBreak)
	return at, how
}

// deadline is when a claim ends if nothing is done, its session included.
func (m *model) deadline(c *modelClaim) core.Time {
	at, _ := c.ownEnd()
	if session := m.session(c.sp, c.session); session != nil && (at == 0 || session.end() < at) {
		return session.end()
	}
	return at
}

// over tells when and how a claim ended, if it did.
func (m *model) over(c *modelClaim) (core.Time, leasehold.How, bool) {
	at := m.deadline(c)
	own, how := c.ownEnd()
	if at != own {
		how = leasehold.SessionExpired
	}
	over := at != 0 && at <= m.now
	if m.withdrawn(c) && (!over || m.revokedAt < at) {
		return m.revokedAt, leasehold.ByBreak, true
	}
	return at, how, over
}

func (m *model) settleClaim(c *modelClaim) {
	at, how, over := m.over(c)
	switch {
	case !over:
	case how == leasehold.SessionExpired:
		m.endSession(m.session(c.sp, c.session), how)
	default:
		m.end(c, how, at)
	}
}

// settle ends the leases on a resource that are over, and lets the next have it.
func (m *model) settle(sp *modelSpace, path string) {
	for _, holder := range m.holders(sp, path) {
		if m.claim(sp, holder.id) == holder {
			m.settleClaim(holder)
		}
	}
	m.stir(sp, path)
}

// touch is the claim of an id, after everything that bears on it has ended.
func (m *model) touch(sp *modelSpace, id string) *modelClaim {
	if claim := m.claim(sp, id); claim != nil && claim.token == 0 {
		for _, c := range m.together(claim) {
			m.settle(sp, c.resource)
		}
	}
	if claim := m.claim(sp, id); claim != nil {
		m.settleClaim(claim)
	}
	return m.claim(sp, id)
}

// live is a session that is not over.
func (m *model) live(sp *modelSpace, id string) *modelSession {
	session := m.session(sp, id)
	if session != nil && session.end() <= m.now {
		m.endSession(session, leasehold.SessionExpired)
		return nil
	}
	return session
}

func (m *model) endSession(s *modelSession, how leasehold.How) {
	at := m.now
	if how == leasehold.SessionExpired {
		at = s.end()
	}
	m.sessions = slices.DeleteFunc(m.sessions, func(other *modelSession) bool { return other == s })
	m.endings = append(m.endings, modelEnding{sp: s.sp, id: s.id, session: true, how: how, at: m.now, owner: s.owner})
	m.outcomes = slices.DeleteFunc(m.outcomes, func(o modelOutcome) bool { return o.sp == s.sp && o.request.Session == s.id })
	m.event(s.sp, "session ended %s %v", s.id, how)

	var ids []string
	for _, c := range m.claims {
		if c.sp == s.sp && c.session == s.id {
			ids = append(ids, c.id)
		}
	}
	slices.Sort(ids)
	m.closing = s
	var lost []string // the resources of its leases
	for _, id := range ids {
		c := m.claim(s.sp, id)
		if c == nil {
			continue // it stood in a queue that moved
		}
		if own, by := c.ownEnd(); own != 0 && own <= at {
			m.end(c, by, own)
		} else {
			if c.token != 0 {
				lost = append(lost, c.resource)
			}
			m.end(c, how, at)
		}
	}
	if len(lost) > 0 && how != leasehold.SessionClosed {
		m.raise(s.sp, leasehold.UncleanEnd, s.id).on = lost[0]
	}
	for _, r := range slices.Clone(m.records) {
		if r.sp == s.sp && r.session == s.id {
			m.drop(r, how)
		}
	}
}

// end ends a lease, and lets the next have the resource; or takes a waiter away, with
// all that it wanted at the same time.
func (m *model) end(c *modelClaim, how leasehold.How, at core.Time) {
	together := m.together(c)
	for _, c := range together {
		m.claims = slices.DeleteFunc(m.claims, func(other *modelClaim) bool { return other == c })
		ending := modelEnding{sp: c.sp, id: c.id, holder: c.holder, how: how, at: m.now, resource: c.resource, token: c.token, owner: c.owner}
		ending.foreign, ending.ttl = c.foreign, c.ttl
		m.endings = append(m.endings, ending)
		r := m.resource(c.sp, c.resource)
		if c.token == 0 {
			m.event(c.sp, "left %s %v", c.id, how)
			m.endFace(c, c.id, how)
			m.shortened(c.sp, c.resource)
		} else {
			m.intervene(c)
			m.event(c.sp, "ended %s token %d %v", c.id, c.token, how)
			m.endFace(c, c.id, how)
			m.learn(c, how, at)
			m.giveBack(r, c)
			r.last = &ending
			m.wake(r)
			r.rests = append(r.rests, m.restAfter(c, ending, at)...)
		}
		if len(m.holders(c.sp, c.resource)) == 0 && len(m.queue(c.sp, c.resource)) == 0 {
			r.agreed, r.mirror = 0, ""
		}
	}
	for _, c := range together {
		m.stir(c.sp, c.resource)
	}
}

// together is a waiter and all that are granted with it, as they were asked for.
func (m *model) together(c *modelClaim) (list []*modelClaim) {
	for _, other := range m.claims {
		if other == c || c.token == 0 && other.token == 0 && c.group != 0 && other.group == c.group {
			list = append(list, other)
		}
	}
	return list
}

// restAfter is how a resource rests after a lease; nothing if it does not.
func (m *model) restAfter(c *modelClaim, ending modelEnding, at core.Time) []modelRest {
	switch ending.how {
	case leasehold.ByTTL, leasehold.ByHoldLimit, leasehold.ByBreak, leasehold.SessionExpired, leasehold.Abandoned:
	default:
		return nil
	}
	d := m.definition(c.sp, c.resource)
	rest := modelRest{slots: c.slots, units: c.units, ending: ending}
	if d.Unclean == leasehold.AwaitAcknowledgement {
		return []modelRest{rest}
	}
	if rest.until = at + core.Time(max(c.grace, d.Grace)); rest.until <= m.now {
		return nil
	}
	return []modelRest{rest}
}

// giveBack notes who had units last, and forgets those that are not defined any more
// and that nobody has.
func (m *model) giveBack(r *modelResource, c *modelClaim) {
	for i, unit := range r.units {
		if slices.Contains(c.units, unit.name) {
			r.units[i].freed = m.now
		}
	}
	m.forgetUnits(r)
}

func (m *model) forgetUnits(r *modelResource) {
	d := m.definition(r.sp, r.path)
	r.units = slices.DeleteFunc(r.units, func(u modelUnit) bool {
		return !slices.Contains(d.Units, u.name) && m.unitOf(r, u.name) == nil
	})
}

// unitOf is the lease that has a unit.
func (m *model) unitOf(r *modelResource, name string) *modelClaim {
	for _, c := range m.holders(r.sp, r.path) {
		if slices.Contains(c.units, name) {
			return c
		}
	}
	return nil
}

// takeUnits gives a lease as many units as it has slots: those that its holder had
// last, then those that nobody had, then the longest free ones.
func (m *model) takeUnits(r *modelResource, c *modelClaim) {
	d := m.definition(c.sp, c.resource)
	if len(d.Units) == 0 {
		return
	}
	m.forgetUnits(r)
	memory := func(name string) modelUnit {
		for _, u := range r.units {
			if u.name == name {
				return u
			}
		}
		return modelUnit{name: name}
	}
	var free []string
	for _, name := range d.Units {
		rests := slices.ContainsFunc(r.rests, func(rest modelRest) bool { return slices.Contains(rest.units, name) })
		if m.unitOf(r, name) == nil && !rests {
			free = append(free, name)
		}
	}
	rank := func(name string) core.Time {
		if u := memory(name); u.freed == 0 || u.holder != c.holder {
			return u.freed + 1
		}
		return 0 // its own
	}
	for c.slots == 0 && len(free) > 0 || len(c.units) < c.slots {
		best := slices.MinFunc(free, func(a, b string) int {
			return cmp.Or(cmp.Compare(min(1, rank(a)), min(1, rank(b))), cmp.Compare(memory(a).freed, memory(b).freed))
		})
		free = slices.DeleteFunc(free, func(name string) bool { return name == best })
		c.units = append(c.units, best)
		r.units = append(slices.DeleteFunc(r.units, func(u modelUnit) bool { return u.name == best }),
			modelUnit{best, c.holder, memory(best).freed})
	}
	slices.SortFunc(c.units, func(a, b string) int { return slices.Index(d.Units, a) - slices.Index(d.Units, b) })
}

// stir lets those who wait for a resource have what is free of it; what becomes free
// by that comes after it.
func (m *model) stir(sp *modelSpace, path string) {
	m.stirred = append(m.stirred, modelPlace{sp, path})
	if len(m.stirred) > 1 {
		return
	}
	for i := 0; i < len(m.stirred); i++ {
		m.handOver(m.stirred[i].sp, m.stirred[i].path)
	}
	m.stirred = nil
}

// handOver grants the free slots of a resource to the first live waiters, in order. A waiter
// that cannot have all its slots blocks those behind it.
func (m *model) handOver(sp *modelSpace, path string) {
	for !m.quarantined() {
		queue := m.queue(sp, path)
		exclusive := slices.ContainsFunc(m.holders(sp, path), func(c *modelClaim) bool { return c.slots == 0 })
		if _, all := m.resting(sp, path); len(queue) == 0 || exclusive || all {
			return
		}
		_, how, over := m.over(queue[0])
		if !over && queue[0].session != "" && m.session(sp, queue[0].session) == nil {
			how, over = m.ended(sp, queue[0].session, true).how, true
		}
		if over {
			m.end(queue[0], how, m.now)
			continue
		}
		together := m.together(queue[0])
		if slices.ContainsFunc(together, func(c *modelClaim) bool {
			capacity := m.capacity(sp, c.resource)
			return capacity != 0 && c.slots > capacity
		}) {
			m.end(queue[0], leasehold.NoSlots, m.now)
			continue
		}
		for _, c := range together {
			if m.queue(sp, c.resource)[0] != c || !m.fits(sp, c.resource, c.slots, 0) {
				return
			}
		}
		for _, c := range together {
			m.grant(c)
		}
		for _, c := range together {
			m.stir(sp, c.resource)
		}
	}
}

func (m *model) grant(c *modelClaim) {
	c.sp.token++
	c.granted, c.alive = m.now, m.now
	r := m.resource(c.sp, c.resource)
	if c.came != 0 {
		r.waits = append(r.waits, modelWait{time.Duration(m.now - c.came), len(m.queue(c.sp, c.resource))})
	}
	c.long, c.gap = m.long(r), 0
	m.wake(r)
	m.takeUnits(r, c)
	c.token = c.sp.token
	if r.last != nil && m.stateAfter(r.last.how) != leasehold.Available && m.definition(c.sp, c.resource).Unclean == leasehold.WarnNext {
		c.after = r.last.id
	}
	m.event(c.sp, "acquired %s token %d", c.id, c.token)
	m.shortened(c.sp, c.resource)
}

// What there is.

func (m *model) space(name string) *modelSpace {
	for _, sp := range m.spaces {
		if sp.name == name {
			return sp
		}
	}
	return nil
}

func (m *model) begin(name string) *modelSpace {
	if m.space(name) == nil {
		m.spaces = append(m.spaces, &modelSpace{
			name: name, token: max(leasehold.Token(m.base), m.forgottenToken), revision: max(int(m.base), m.forgottenRevision),
		})
	}
	return m.space(name)
}

func (m *model) claim(sp *modelSpace, id string) *modelClaim {
	for _, c := range m.claims {
		if c.sp == sp && c.id == id {
			return c
		}
	}
	return nil
}

func (m *model) session(sp *modelSpace, id string) *modelSession {
	for _, s := range m.sessions {
		if s.sp == sp && s.id == id {
			return s
		}
	}
	return nil
}

func (m *model) resource(sp *modelSpace, path string) *modelResource {
	for _, r := range m.resources {
		if r.sp == sp && r.path == path {
			return r
		}
	}
	r := &modelResource{sp: sp, path: path}
	m.resources = append(m.resources, r)
	return r
}

func (m *model) ended(sp *modelSpace, id string, session bool) *modelEnding {
	for _, e := range m.endings {
		if e.sp == sp && e.id == id && e.session == session {
			return &e
		}
	}
	return nil
}

// holder is the one that has had a resource longest.
func (m *model) holder(sp *modelSpace, path string) *modelClaim {
	if holders := m.holders(sp, path); len(holders) > 0 {
		return holders[0]
	}
	return nil
}

// holders are the leases on a resource in the order of their tokens.
func (m *model) holders(sp *modelSpace, path string) (list []*modelClaim) {
	for _, c := range m.claims {
		if c.sp == sp && c.resource == path && c.token != 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *modelClaim) int { return cmp.Compare(a.token, b.token) })
	return list
}

func (m *model) queue(sp *modelSpace, path string) (queue []*modelClaim) {
	for _, c := range m.claims {
		if c.sp == sp && c.resource == path && c.token == 0 {
			queue = append(queue, c)
		}
	}
	slices.SortStableFunc(queue, func(a, b *modelClaim) int { return b.priority - a.priority })
	return queue
}

// capacity is how many slots a resource has; 0 if nobody said.
func (m *model) capacity(sp *modelSpace, path string) int {
	d := m.definition(sp, path)
	return cmp.Or(len(d.Units), d.Capacity, m.resource(sp, path).agreed)
}

// resting is how many slots of a resource rest, and whether all do.
func (m *model) resting(sp *modelSpace, path string) (slots int, all bool) {
	for _, rest := range m.resource(sp, path).rests {
		if rest.until == 0 || rest.until > m.now {
			slots, all = slots+rest.slots, all || rest.slots == 0
		}
	}
	return slots, all
}

// fits reports whether so many slots of a resource are free. said is its capacity by who
// asks, if nobody else knows.
func (m *model) fits(sp *modelSpace, path string, slots, said int) bool {
	taken, all := m.resting(sp, path)
	for _, c := range m.holders(sp, path) {
		taken, all = taken+c.slots, all || c.slots == 0
	}
	if slots == 0 || all {
		return taken == 0 && !all
	}
	return taken+slots <= cmp.Or(m.capacity(sp, path), said, leasehold.MaxCapacity)
}

// How it is told.

func (m *model) event(sp *modelSpace, format string, args ...any) {
	if sp.command != m.command {
		sp.command, sp.n, sp.changed = m.command, 0, m.now
		sp.revision++
	}
	m.events = append(m.events, fmt.Sprintf("%s %d.%d ", sp.name, sp.revision, sp.n)+fmt.Sprintf(format, args...))
	sp.n++
}

func (m *model) noClaim(sp *modelSpace, id string) modelAnswer {
	if m.ended(sp, id, false) != nil {
		return modelAnswer{text: "lost"}
	}
	return modelAnswer{text: "not-found"}
}

func (m *model) noSession(sp *modelSpace, id string) modelAnswer {
	if m.ended(sp, id, true) != nil {
		return modelAnswer{text: "lost"}
	}
	return modelAnswer{text: "not-found"}
}

// left is what remains until a moment; a lease that never ends has nothing left.
func (m *model) left(at core.Time) time.Duration { return time.Duration(max(0, at-m.now)) }

func (m *model) showLease(c *modelClaim) modelAnswer {
	state := leasehold.Leased
	if c.breakAt != 0 {
		state = leasehold.Breaking
	}
	floor := c.token
	for _, other := range m.holders(c.sp, c.resource) {
		if _, _, over := m.over(other); !over {
			floor = min(floor, other.token)
		}
	}
	return modelAnswer{claim: c.id, text: fmt.Sprintf("%v %s %s token %d floor %d slots %d units %v after %q left %v touched %d foreign %q note %q",
		state, c.id, c.holder, c.token, floor, c.slots, c.units, c.after, m.left(m.deadline(c)), m.touchedOf(c), c.foreign, c.note)}
}

func (m *model) touchedOf(c *modelClaim) uint64 {
	if session := m.session(c.sp, c.session); session != nil && c.session != "" {
		return session.before + uint64(len(session.touched))
	}
	return 0
}

// showLeases shows the first of several leases, and the others beside it.
func (m *model) showLeases(claims []*modelClaim) modelAnswer {
	answer := m.showLease(claims[0])
	for _, c := range claims[1:] {
		answer.text += "; " + m.showLease(c).text
	}
	return answer
}

func (m *model) show(c *modelClaim) modelAnswer {
	if c.token == 0 {
		return m.showWaiter(c)
	}
	return m.showLease(c)
}

func (m *model) showWaiter(c *modelClaim) modelAnswer {
	return modelAnswer{claim: c.id, text: fmt.Sprintf("waits %s %s slots %d place %d forecast %v", c.id, c.holder, c.slots, m.place(c), m.waiterForecast(c))}
}

// place is where a waiter stands: of several queues, where it is furthest back.
func (m *model) place(waiter *modelClaim) (place int) {
	for _, c := range m.together(waiter) {
		place = max(place, 1+slices.Index(m.queue(c.sp, c.resource), c))
	}
	return place
}

func (m *model) showSession(s *modelSession) modelAnswer {
	claims := 0
	for _, c := range m.claims {
		if c.sp == s.sp && c.session == s.id {
			claims++
		}
	}
	for _, r := range m.records {
		if claim := m.faceOf(&r); r.sp == s.sp && r.session == s.id && (claim == nil || !claim.face.stay) {
			claims++
		}
	}
	return modelAnswer{session: s.id, text: fmt.Sprintf("session %s left %v has %d touched %d %q", s.id, m.left(s.end()), claims, s.before+uint64(len(s.touched)), s.touched)}
}

// held tells who is in the way, and the place of the one who asks.
func (m *model) held(sp *modelSpace, path string, asks *modelClaim) modelAnswer {
	by, longest := "free", modelRest{until: -1}
	for _, rest := range m.resource(sp, path).rests {
		if longest.until != 0 && (rest.until == 0 || rest.until > max(m.now, longest.until)) {
			longest = rest
			by = "rest after " + rest.ending.id
		}
	}
	if holder := m.holder(sp, path); holder != nil {
		by = m.showLease(holder).text
	}
	place, ahead := 0, len(m.queue(sp, path))
	if asks != nil {
		place = m.place(asks)
		ahead = place - 1
	}
	return modelAnswer{text: fmt.Sprintf("held (%s) waiting %d place %d forecast %v", by, len(m.queue(sp, path)), place, m.forecast(sp, path, ahead))}
}

// status is what is to be seen of a resource, collected or not.
func (m *model) status(sp *modelSpace, path string) string {
	r := m.resource(sp, path)
	capacity := max(1, m.capacity(sp, path))
	state, last, holding, used, held := leasehold.Available, r.last, 0, 0, ""
	var rests []modelRest
	for _, rest := range r.rests {
		if rest.until == 0 || rest.until > m.now {
			rests = append(rests, rest)
		}
	}
	var newest *modelClaim
	for _, c := range m.holders(sp, path) {
		if at, how, over := m.over(c); over {
			last = &modelEnding{id: c.id, how: how, token: c.token}
			last.foreign, last.ttl = c.foreign, c.ttl
			rests = append(rests, m.restAfter(c, *last, at)...)
			continue
		}
		newest = c
		holding, used, held = holding+1, used+c.slots, held+m.showLease(c).text+";"
		if c.slots == 0 {
			used = capacity
		}
	}
	ended := ""
	if last != nil {
		ended = fmt.Sprintf(" last %s token %d %v foreign %q ttl %v", last.id, last.token, last.how, last.foreign, last.ttl)
		state = m.stateAfter(last.how)
	}
	if newest != nil {
		state = leasehold.Leased
		if newest.breakAt != 0 {
			state = leasehold.Breaking
		}
	}
	queue := ""
	for _, c := range m.queue(sp, path) {
		queue += fmt.Sprintf(" %s %q", c.id, c.foreign)
	}
	next, unacknowledged := m.sayRests(rests, holding, capacity)
	if holding == 0 && m.quarantined() && m.resumes != 0 {
		next = max(next, m.left(m.resumes))
	}
	return fmt.Sprintf("%s/%s %v %d of %d by %d [%s] units%s rests %v%s queue%s%s usual %s",
		sp.name, path, state, used, capacity, holding, held, m.showUnits(r, rests), next, unacknowledged, queue, ended, r.usual())
}

// sayRests is when something is free again, if nothing is; and what nobody has
// acknowledged.
func (m *model) sayRests(rests []modelRest, holding, capacity int) (time.Duration, string) {
	slots, all, next, unacknowledged := 0, false, core.Time(0), ""
	for _, rest := range rests {
		slots, all = slots+rest.slots, all || rest.slots == 0
		if rest.until == 0 {
			unacknowledged = " unacknowledged " + rest.ending.id
		} else if next == 0 || rest.until < next {
			next = rest.until
		}
	}
	if !all && (holding > 0 || slots < capacity) {
		next = 0
	}
	return m.left(next), unacknowledged
}

func (m *model) showUnits(r *modelResource, rests []modelRest) (text string) {
	names := slices.Clone(m.definition(r.sp, r.path).Units)
	for _, c := range m.holders(r.sp, r.path) {
		for _, name := range c.units {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		holder, lease := "", ""
		for _, u := range r.units {
			if u.name == name {
				holder = u.holder
			}
		}
		if c := m.unitOf(r, name); c != nil {
			lease = c.id
		}
		rest := false
		for _, r := range rests {
			rest = rest || lease == "" && slices.Contains(r.units, name)
		}
		text += fmt.Sprintf(" %s:%s:%s:%v", name, lease, holder, rest)
	}
	return text
}

func (m *model) stateAfter(how leasehold.How) leasehold.State {
	switch how {
	case leasehold.ByBreak:
		return leasehold.Broken
	case leasehold.ByTTL, leasehold.ByHoldLimit, leasehold.SessionExpired, leasehold.Abandoned:
		return leasehold.Expired
	}
	return leasehold.Available
}
