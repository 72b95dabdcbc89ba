package core_test

import (
	"cmp"
	"fmt"
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
	endings   []modelEnding  // ids that ended
	outcomes  []modelOutcome // requests that were answered
	command   int            // counts the commands
	events    []string       // of the entry
}

type modelSpace struct {
	name     string
	token    leasehold.Token
	revision int
	command  int // that made the revision
	n        int // events of that command so far
}

type modelClaim struct {
	sp                            *modelSpace
	id, resource, holder, session string
	ttl, grace, limit             time.Duration

	priority int             // while it waits
	token    leasehold.Token // 0: it waits
	granted  core.Time
	alive    core.Time // its last sign of life
	until    core.Time // end of its wait
	breakAt  core.Time
}

type modelSession struct {
	sp     *modelSpace
	id     string
	ttl    time.Duration
	alive  core.Time
	number uint64 // the largest of a request
}

type modelResource struct {
	sp    *modelSpace
	path  string
	rests core.Time
	last  *modelEnding
}

type modelEnding struct {
	sp       *modelSpace
	id       string
	session  bool
	how      leasehold.How
	at       core.Time
	resource string
	token    leasehold.Token
	next     string // the id after a change
}

type modelOutcome struct {
	sp      *modelSpace
	request core.Request
	subject string
	at      core.Time
	answer  modelAnswer
}

// A modelAnswer is a text, and the thing that must be looked up again when the text is
// told once more.
type modelAnswer struct {
	text           string
	claim, session string
}

// apply predicts the answers to the commands of an entry. The events are left in
// m.events.
func (m *model) apply(stamp core.Time, commands []core.Command) (answers []string) {
	m.now, m.events = stamp, nil
	for _, c := range commands {
		m.command++
		answers = append(answers, m.answer(c).text)
		m.keepPast()
	}
	m.forget(2*len(commands) + 2*len(m.events) + 16)
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
	case *core.Acquire:
		if c.TTL != 0 && c.Session != "" {
			return modelAnswer{text: "invalid"}
		}
	case *core.Change:
		if c.Holder == "" && c.NewID == "" {
			return modelAnswer{text: "invalid"}
		}
	case *core.DeleteRecord:
		if c.Range && (c.IfRevision != 0 || c.Fence.Token != 0 && c.Fence.Lease == "") {
			return modelAnswer{text: "invalid"}
		}
	case *core.Txn:
		if wrongTxn(c) {
			return modelAnswer{text: "invalid"}
		}
	}
	r := m.request(c)
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
		return modelRequest{c.Namespace, c.Request, "close " + c.ID, func(sp *modelSpace) modelAnswer { return m.close(sp, c.ID) }}
	case *core.Acquire:
		return modelRequest{c.Namespace, c.Request, "acquire " + c.Resource, func(sp *modelSpace) modelAnswer { return m.acquire(sp, c) }}
	case *core.Renew:
		return modelRequest{c.Namespace, core.Request{}, "", func(sp *modelSpace) modelAnswer { return m.renew(sp, c.ID) }}
	case *core.Release:
		return modelRequest{c.Namespace, c.Request, "release " + c.ID, func(sp *modelSpace) modelAnswer { return m.release(sp, c.ID) }}
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
		if o.sp != sp || o.request != r.request {
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
	switch {
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
	m.outcomes = append(m.outcomes, modelOutcome{sp, r.request, r.subject, m.now, a})
}

// The verbs.

func (m *model) acquire(sp *modelSpace, c *core.Acquire) modelAnswer {
	if sp == nil && c.Session != "" {
		return m.noSession(nil, c.Session)
	}
	sp = m.begin(c.Namespace)
	if claim := m.touch(sp, c.ID); claim != nil {
		return m.acquireAgain(claim, c)
	}
	if m.ended(sp, c.ID, false) != nil {
		return m.noClaim(sp, c.ID)
	}
	if c.Session != "" && m.live(sp, c.Session) == nil {
		return m.noSession(sp, c.Session)
	}
	m.settle(sp, c.Resource)
	claim := &modelClaim{
		sp: sp, id: c.ID, resource: c.Resource, holder: c.Holder, session: c.Session,
		ttl: c.TTL, grace: c.Grace, limit: c.HoldLimit, alive: m.now, priority: c.Priority,
	}
	switch {
	case m.free(sp, c.Resource) && len(m.queue(sp, c.Resource)) == 0:
		m.claims = append(m.claims, claim)
		m.grant(claim)
		return m.showLease(claim)
	case c.Wait == 0:
		return m.held(sp, c.Resource, nil)
	}
	claim.until = m.now + core.Time(c.Wait)
	m.claims = append(m.claims, claim)
	m.event(sp, "queued %s", c.ID)
	return m.showWaiter(claim)
}

func (m *model) acquireAgain(claim *modelClaim, c *core.Acquire) modelAnswer {
	switch {
	case claim.resource != c.Resource || claim.holder != c.Holder:
		return modelAnswer{text: "refused"}
	case claim.token == 0 && c.Wait == 0:
		return m.held(claim.sp, claim.resource, claim)
	case claim.token != 0:
		return m.showLease(claim)
	}
	return m.stillThere(claim)
}

// stillThere takes a sign of life of a waiter; a lease is merely shown.
func (m *model) stillThere(claim *modelClaim) modelAnswer {
	if claim.token != 0 {
		return m.showLease(claim)
	}
	claim.alive = m.now
	return m.showWaiter(claim)
}

func (m *model) renew(sp *modelSpace, id string) modelAnswer {
	claim := m.touch(sp, id)
	if claim == nil {
		return m.noClaim(sp, id)
	}
	if session := m.session(sp, claim.session); session != nil && claim.token != 0 {
		session.alive = m.now
	}
	claim.alive = m.now
	return m.stillThere(claim)
}

func (m *model) release(sp *modelSpace, id string) modelAnswer {
	if claim := m.touch(sp, id); claim != nil {
		how := leasehold.Released
		if claim.token == 0 {
			how = leasehold.Withdrawn
		}
		m.end(claim, how, m.now)
		return modelAnswer{text: "done"}
	}
	if e := m.ended(sp, id, false); e != nil && (e.how == leasehold.Released || e.how == leasehold.Withdrawn) {
		return modelAnswer{text: "done"}
	}
	return m.noClaim(sp, id)
}

func (m *model) change(sp *modelSpace, c *core.Change) modelAnswer {
	claim := m.touch(sp, c.ID)
	if claim == nil {
		return m.changeAgain(sp, c)
	}
	if claim.token == 0 {
		return modelAnswer{text: "refused"}
	}
	holder, id := cmp.Or(c.Holder, claim.holder), cmp.Or(c.NewID, claim.id)
	if holder == claim.holder && id == claim.id {
		return m.showLease(claim)
	}
	if id != claim.id && (m.claim(sp, id) != nil || m.ended(sp, id, false) != nil) {
		return modelAnswer{text: "refused"}
	}
	if id != claim.id {
		m.endings = append(m.endings, modelEnding{
			sp: sp, id: claim.id, how: leasehold.IDChanged, at: m.now, resource: claim.resource, token: claim.token, next: id,
		})
	}
	if holder != claim.holder {
		sp.token++
		claim.token = sp.token
	}
	claim.holder, claim.id = holder, id
	m.event(sp, "changed %s token %d", claim.id, claim.token)
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
	}
	claim.priority = c.Priority
	m.claims = append(slices.DeleteFunc(m.claims, func(other *modelClaim) bool { return other == claim }), claim)
	m.event(sp, "moved %s", claim.id)
	return m.showWaiter(claim)
}

func (m *model) ask(sp *modelSpace, c *core.Ask) modelAnswer {
	if sp == nil {
		return modelAnswer{text: "not-found"}
	}
	m.settle(sp, c.Resource)
	holder := m.holder(sp, c.Resource)
	if holder == nil {
		return modelAnswer{text: "not-found"}
	}
	m.event(sp, "asked %s token %d", holder.id, holder.token)
	return m.showLease(holder)
}

func (m *model) breakResource(sp *modelSpace, c *core.Break) modelAnswer {
	if sp == nil {
		return modelAnswer{text: "not-found"}
	}
	m.settle(sp, c.Resource)
	holder, r := m.holder(sp, c.Resource), m.resource(sp, c.Resource)
	switch {
	case holder != nil && holder.token == c.Token:
		return m.breakClaim(holder, c)
	case r.last != nil && r.last.token == c.Token && r.last.how == leasehold.ByBreak && m.ended(sp, r.last.id, false) != nil:
		return m.brokenBefore(sp, r.last.id)
	case holder != nil:
		return modelAnswer{text: "lost"}
	}
	return modelAnswer{text: "not-found"}
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
	session := &modelSession{sp: sp, id: c.ID, ttl: c.TTL, alive: m.now}
	m.sessions = append(m.sessions, session)
	m.event(sp, "session opened %s", c.ID)
	return m.showSession(session)
}

func (m *model) renewSession(sp *modelSpace, id string) modelAnswer {
	session := m.live(sp, id)
	if session == nil {
		return m.noSession(sp, id)
	}
	session.alive = m.now
	return m.showSession(session)
}

func (m *model) close(sp *modelSpace, id string) modelAnswer {
	if session := m.live(sp, id); session != nil {
		m.endSession(session, leasehold.SessionClosed)
		return modelAnswer{text: "done"}
	}
	if e := m.ended(sp, id, true); e != nil && e.how == leasehold.SessionClosed {
		return modelAnswer{text: "done"}
	}
	return m.noSession(sp, id)
}

// What time does.

// tick lets everything end that is over, in the order of the moments.
func (m *model) tick() {
	for {
		d, ok := m.due()
		if !ok || d.at > m.now {
			return
		}
		switch d.kind {
		case 1:
			m.settleClaim(m.claim(d.sp, d.key))
		case 2:
			m.endSession(m.session(d.sp, d.key), leasehold.SessionExpired)
		case 3:
			m.resource(d.sp, d.key).rests = 0
			m.handOver(d.sp, d.key)
		}
	}
}

// A modelDue is when something is due: a claim by itself (1), a session (2), or a
// resource that rests and is waited for (3).
type modelDue struct {
	at   core.Time
	kind int
	sp   *modelSpace
	key  string
}

// due is what is due first.
func (m *model) due() (modelDue, bool) {
	var all []modelDue
	for _, c := range m.claims {
		if at, _ := c.ownEnd(); at != 0 {
			all = append(all, modelDue{at, 1, c.sp, c.id})
		}
	}
	for _, s := range m.sessions {
		all = append(all, modelDue{s.end(), 2, s.sp, s.id})
	}
	for _, r := range m.resources {
		if r.rests != 0 && m.holder(r.sp, r.path) == nil && len(m.queue(r.sp, r.path)) > 0 {
			all = append(all, modelDue{r.rests, 3, r.sp, r.path})
		}
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
	consider(waits, c.until, leasehold.WaitOver)
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
	return at, how, at != 0 && at <= m.now
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

// settle ends the lease on a resource if it is over, and lets the next have it.
func (m *model) settle(sp *modelSpace, path string) {
	if holder := m.holder(sp, path); holder != nil {
		m.settleClaim(holder)
	}
	m.handOver(sp, path)
}

// touch is the claim of an id, after everything that bears on it has ended.
func (m *model) touch(sp *modelSpace, id string) *modelClaim {
	if claim := m.claim(sp, id); claim != nil && claim.token == 0 {
		m.settle(sp, claim.resource)
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
	m.endings = append(m.endings, modelEnding{sp: s.sp, id: s.id, session: true, how: how, at: m.now})
	m.outcomes = slices.DeleteFunc(m.outcomes, func(o modelOutcome) bool { return o.sp == s.sp && o.request.Session == s.id })
	m.event(s.sp, "session ended %s %v", s.id, how)

	var ids []string
	for _, c := range m.claims {
		if c.sp == s.sp && c.session == s.id {
			ids = append(ids, c.id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		c := m.claim(s.sp, id)
		if c == nil {
			continue // it stood in a queue that moved
		}
		if own, by := c.ownEnd(); own != 0 && own <= at {
			m.end(c, by, own)
		} else {
			m.end(c, how, at)
		}
	}
	for _, r := range slices.Clone(m.records) {
		if r.sp == s.sp && r.session == s.id {
			m.drop(r, how)
		}
	}
}

// end ends a lease, and lets the next have the resource; or takes a waiter away.
func (m *model) end(c *modelClaim, how leasehold.How, at core.Time) {
	m.claims = slices.DeleteFunc(m.claims, func(other *modelClaim) bool { return other == c })
	ending := modelEnding{sp: c.sp, id: c.id, how: how, at: m.now, resource: c.resource, token: c.token}
	m.endings = append(m.endings, ending)
	if c.token == 0 {
		m.event(c.sp, "left %s %v", c.id, how)
		return
	}
	m.event(c.sp, "ended %s token %d %v", c.id, c.token, how)
	r := m.resource(c.sp, c.resource)
	r.last, r.rests = &ending, m.restAfter(c, how, at)
	m.handOver(c.sp, c.resource)
}

// restAfter is until when a resource rests after a lease, 0 if that is past or never.
func (m *model) restAfter(c *modelClaim, how leasehold.How, at core.Time) core.Time {
	switch how {
	case leasehold.ByTTL, leasehold.ByHoldLimit, leasehold.ByBreak, leasehold.SessionExpired:
		if until := at + core.Time(c.grace); until > m.now {
			return until
		}
	}
	return 0
}

// handOver gives a free resource to the first waiter that is still there.
func (m *model) handOver(sp *modelSpace, path string) {
	for m.free(sp, path) && len(m.queue(sp, path)) > 0 {
		waiter := m.queue(sp, path)[0]
		_, how, over := m.over(waiter)
		if !over && waiter.session != "" && m.session(sp, waiter.session) == nil {
			how, over = m.ended(sp, waiter.session, true).how, true
		}
		if over {
			m.end(waiter, how, m.now)
		} else {
			m.grant(waiter)
		}
	}
}

func (m *model) grant(c *modelClaim) {
	c.sp.token++
	c.token, c.granted, c.alive = c.sp.token, m.now, m.now
	m.resource(c.sp, c.resource).rests = 0
	m.event(c.sp, "acquired %s token %d", c.id, c.token)
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
		m.spaces = append(m.spaces, &modelSpace{name: name})
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

func (m *model) holder(sp *modelSpace, path string) *modelClaim {
	for _, c := range m.claims {
		if c.sp == sp && c.resource == path && c.token != 0 {
			return c
		}
	}
	return nil
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

// free tells whether nobody has a resource and no rest runs.
func (m *model) free(sp *modelSpace, path string) bool {
	return m.holder(sp, path) == nil && m.resource(sp, path).rests <= m.now
}

// How it is told.

func (m *model) event(sp *modelSpace, format string, args ...any) {
	if sp.command != m.command {
		sp.command, sp.n = m.command, 0
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
	return modelAnswer{claim: c.id, text: fmt.Sprintf("%v %s %s token %d left %v", state, c.id, c.holder, c.token, m.left(m.deadline(c)))}
}

func (m *model) showWaiter(c *modelClaim) modelAnswer {
	place := 1 + slices.Index(m.queue(c.sp, c.resource), c)
	return modelAnswer{claim: c.id, text: fmt.Sprintf("waits %s %s place %d", c.id, c.holder, place)}
}

func (m *model) showSession(s *modelSession) modelAnswer {
	claims := 0
	for _, c := range m.claims {
		if c.sp == s.sp && c.session == s.id {
			claims++
		}
	}
	for _, r := range m.records {
		if r.sp == s.sp && r.session == s.id {
			claims++
		}
	}
	return modelAnswer{session: s.id, text: fmt.Sprintf("session %s left %v has %d", s.id, m.left(s.end()), claims)}
}

// held tells who is in the way, and the place of the one who asks.
func (m *model) held(sp *modelSpace, path string, asks *modelClaim) modelAnswer {
	queue := m.queue(sp, path)
	by := ""
	if holder := m.holder(sp, path); holder != nil {
		by = m.showLease(holder).text
	} else {
		by = fmt.Sprintf("rest after %s", m.resource(sp, path).last.id)
	}
	return modelAnswer{text: fmt.Sprintf("held (%s) waiting %d place %d", by, len(queue), 1+slices.Index(queue, asks))}
}

// status is what is to be seen of a resource, collected or not.
func (m *model) status(sp *modelSpace, path string) string {
	r := m.resource(sp, path)
	state, held, last, rests := leasehold.Available, "", r.last, r.rests
	if holder := m.holder(sp, path); holder != nil {
		if at, how, over := m.over(holder); over {
			last, rests = &modelEnding{id: holder.id, how: how, token: holder.token}, m.restAfter(holder, how, at)
		} else {
			held = m.showLease(holder).text
		}
	}
	ended := ""
	if last != nil {
		ended = fmt.Sprintf(" last %s token %d %v", last.id, last.token, last.how)
		state = m.stateAfter(last.how)
	}
	if held != "" {
		state = leasehold.Leased
		if m.holder(sp, path).breakAt != 0 {
			state = leasehold.Breaking
		}
	}
	queue := ""
	for _, c := range m.queue(sp, path) {
		queue += " " + c.id
	}
	return fmt.Sprintf("%s/%s %v [%s] rests %v queue%s%s", sp.name, path, state, held, m.left(rests), queue, ended)
}

func (m *model) stateAfter(how leasehold.How) leasehold.State {
	switch how {
	case leasehold.ByBreak:
		return leasehold.Broken
	case leasehold.ByTTL, leasehold.ByHoldLimit, leasehold.SessionExpired:
		return leasehold.Expired
	}
	return leasehold.Available
}
