package kernel_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// What a resource learns, and the alarms, in the dumbest way: everything that ever
// happened is kept, and fractions are used freely.

type modelHold struct {
	length time.Duration
	how    leasehold.How
	ttl    time.Duration
	gap    float64 // the largest part of the ttl without a renewal
}

type modelWait struct {
	length time.Duration
	queue  int
}

type modelAlarm struct {
	token leasehold.Token
	order uint64
	on    string // the resource that is shown; of a session that was lost, that of its first lease
	quiet bool   // somebody has looked at it
	sp    *modelSpace
	kind  leasehold.AlarmKind
	thing string // a resource, a lease or a session
	last  core.Time
	count int
	limit int
}

// modelScale are the times that are told apart.
var modelScale = func() (list []time.Duration) {
	for decade := 10 * time.Microsecond; ; decade *= 10 {
		for _, n := range []time.Duration{100, 110, 120, 135, 150, 165, 180, 200, 220, 240, 270, 300, 330, 360, 400, 440, 480, 540, 600, 660, 720, 800, 900} {
			if list = append(list, n*decade); len(list) == 256 {
				return list
			}
		}
	}
}()

// rounded is a time as it is learned.
func rounded(d time.Duration) time.Duration {
	best := modelScale[0]
	for _, step := range modelScale {
		if math.Abs(float64(step-d)) <= math.Abs(float64(best-d)) {
			best = step
		}
	}
	return best
}

// percentile is the smallest of a list that so many percent of it are not above.
func percentile(list []time.Duration, percent int) time.Duration {
	slices.Sort(list)
	if len(list) == 0 {
		return 0
	}
	return list[int(math.Ceil(float64(len(list)*percent)/100))-1]
}

func (r *modelResource) lastHolds() []modelHold { return r.holds[max(0, len(r.holds)-64):] }
func (r *modelResource) lastWaits() []modelWait { return r.waits[max(0, len(r.waits)-64):] }

func (r *modelResource) hold(percent int) time.Duration {
	var list []time.Duration
	for _, h := range r.lastHolds() {
		list = append(list, rounded(h.length))
	}
	return percentile(list, percent)
}

func (r *modelResource) wait(percent int) time.Duration {
	var list []time.Duration
	for _, w := range r.lastWaits() {
		list = append(list, rounded(w.length))
	}
	return percentile(list, percent)
}

func (r *modelResource) usualQueue() int {
	var list []time.Duration
	for _, w := range r.lastWaits() {
		list = append(list, rounded(time.Duration(w.queue)*time.Millisecond))
	}
	return int(math.Ceil(float64(percentile(list, 50)) / 1e6))
}

// usual is what is shown of it.
func (r *modelResource) usual() string {
	holds, waits := r.lastHolds(), r.lastWaits()
	if len(holds) < 3 && len(waits) < 3 {
		return "nothing"
	}
	unclean := 0
	for _, h := range holds {
		if h.how == leasehold.ByTTL || h.how == leasehold.ByHoldLimit || h.how == leasehold.ByBreak || h.how == leasehold.SessionExpired || h.how == leasehold.Abandoned {
			unclean++
		}
	}
	return fmt.Sprintf("%d holds %v %v, %d unclean, %d waits %v %v, queue %d",
		len(holds), r.hold(50), r.hold(95), unclean, len(waits), r.wait(50), r.wait(95), r.usualQueue())
}

func usualText(u *leasehold.Usual) string {
	if u == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d holds %v %v, %d unclean, %d waits %v %v, queue %d",
		u.Holds, u.HoldP50, u.HoldP95, u.Unclean, u.Waits, u.WaitP50, u.WaitP95, u.Queue)
}

// learn notes the end of a lease.
func (m *model) learn(c *modelClaim, how leasehold.How, at core.Time) {
	r := m.resource(c.sp, c.resource)
	ttl, gap := c.ttl, c.gap
	if c.session != "" {
		session := m.session(c.sp, c.session)
		if session == nil {
			session = m.closing
		}
		ttl, gap = session.ttl, session.gap
	}
	r.holds = append(r.holds, modelHold{time.Duration(at - c.granted), how, ttl, gap})
	m.alarmEnd(c, how, at)
}

func (m *model) alarmEnd(c *modelClaim, how leasehold.How, at core.Time) {
	m.clear(c.sp, leasehold.HeldLong, c.id)
	awaited := m.definition(c.sp, c.resource).Unclean == leasehold.AwaitAcknowledgement
	routine := how == leasehold.ByTTL && c.mayExpire && !awaited
	tooMany := len(m.untold) >= 100 && !awaited
	if !tooMany && (how == leasehold.ByTTL && !routine || how == leasehold.ByHoldLimit) {
		m.raise(c.sp, leasehold.UncleanEnd, c.resource).token = c.token
	}
	if how != leasehold.ByTTL && how != leasehold.SessionExpired {
		return
	}
	r := m.resource(c.sp, c.resource)
	if n := len(r.lost); !routine && n >= 2 && r.lost[n-2]+core.Time(5*time.Minute) > m.now {
		m.raise(c.sp, leasehold.Flapping, c.resource).token = c.token
	}
	r.lost = append(r.lost, at)
}

// pulse notes a sign of life, and reports whether it is the first that came late.
func pulse(gap *float64, passed core.Time, ttl time.Duration) bool {
	late := *gap <= 0.9
	*gap = max(*gap, float64(passed)/float64(ttl))
	return late && *gap > 0.9
}

func (m *model) renewed(c *modelClaim) {
	if c.token != 0 && c.session == "" && c.ttl != 0 && pulse(&c.gap, m.now-c.alive, c.ttl) {
		m.raise(c.sp, leasehold.LateRenewal, c.resource).token = c.token
	}
}

func (m *model) renewedSession(s *modelSession) {
	if pulse(&s.gap, m.now-s.alive, s.ttl) {
		m.raise(s.sp, leasehold.LateRenewal, s.id).on = ""
	}
}

// long is after which time a new lease on a resource is held for too long; 0: never.
func (m *model) long(r *modelResource) time.Duration {
	if len(r.lastHolds()) < 8 {
		return 0
	}
	long := max(time.Minute, 3*r.hold(95))
	for _, step := range modelScale {
		if step >= long {
			return step
		}
	}
	return modelScale[255]
}

// alarmAt is when a lease is held for too long; 0: never.
func (c *modelClaim) alarmAt() core.Time {
	long := c.expected
	if long == 0 {
		long = c.long
	}
	if c.token == 0 || c.overdue || long == 0 {
		return 0
	}
	return c.granted + core.Time(long)
}

func (m *model) overdue(c *modelClaim) {
	c.overdue = true
	m.raise(c.sp, leasehold.HeldLong, c.id).on = c.resource
}

// lengthened and shortened look at a queue after it changed.
func (m *model) lengthened(sp *modelSpace, path string) {
	r, n := m.resource(sp, path), len(m.queue(sp, path))
	limit := 10
	if len(r.lastWaits()) >= 8 {
		limit = max(limit, 4*r.usualQueue())
	}
	if n > limit && m.alarm(sp, leasehold.LongQueue, path) == nil {
		m.raise(sp, leasehold.LongQueue, path).limit = limit
	}
}

func (m *model) shortened(sp *modelSpace, path string) {
	if a := m.alarm(sp, leasehold.LongQueue, path); a != nil && len(m.queue(sp, path)) <= a.limit/2 {
		m.clear(sp, leasehold.LongQueue, path)
	}
}

func (m *model) alarm(sp *modelSpace, kind leasehold.AlarmKind, thing string) *modelAlarm {
	past := kind == leasehold.UncleanEnd || kind == leasehold.Flapping || kind == leasehold.LateRenewal
	m.alarms = slices.DeleteFunc(m.alarms, func(a *modelAlarm) bool { return a.kind == kind && past && a.last+core.Time(time.Hour) <= m.now })
	for _, a := range m.alarms {
		if a.sp == sp && a.kind == kind && a.thing == thing {
			return a
		}
	}
	return nil
}

func (m *model) raise(sp *modelSpace, kind leasehold.AlarmKind, thing string) *modelAlarm {
	a := m.alarm(sp, kind, thing)
	if a == nil {
		a = &modelAlarm{sp: sp, kind: kind, thing: thing, on: thing}
		m.untold = append(m.untold, func() { m.event(sp, "alarmed %v", kind) })
	}
	m.raised++
	a.last, a.count, a.order = m.now, a.count+1, m.raised
	m.alarms = append(slices.DeleteFunc(m.alarms, func(other *modelAlarm) bool { return other == a }), a)
	return a
}

func (m *model) clear(sp *modelSpace, kind leasehold.AlarmKind, thing string) {
	if a := m.alarm(sp, kind, thing); a != nil {
		m.alarms = slices.DeleteFunc(m.alarms, func(other *modelAlarm) bool { return other == a })
		if !a.quiet {
			m.untold = append(m.untold, func() { m.event(sp, "alarm cleared %v", kind) })
		}
	}
}

func (m *model) acknowledgeAlarm(sp *modelSpace, c *core.AcknowledgeAlarm) modelAnswer {
	if sp == nil {
		return modelAnswer{text: "done"}
	}
	a := m.alarm(sp, c.Kind, c.Resource)
	for _, other := range m.alarms {
		if other.sp == sp && other.kind == c.Kind && other.order == c.Order && other.on == c.Resource {
			a = other
		}
	}
	switch {
	case a == nil || a.quiet:
	case a.order != c.Order:
		return modelAnswer{text: "refused"}
	case a.kind == leasehold.LongQueue:
		a.quiet = true
		m.untold = append(m.untold, func() { m.event(sp, "alarm cleared %v", c.Kind) })
	default:
		m.clear(sp, a.kind, a.thing)
	}
	return modelAnswer{text: "done"}
}

// tellAlarms comes at the end of a command.
func (m *model) tellAlarms() {
	for _, tell := range m.untold {
		tell()
	}
	m.untold = nil
}

// standing is what is to be seen of the alarms of a namespace, newest first.
func (m *model) standing(sp *modelSpace) (text string) {
	for _, kind := range leasehold.AlarmKinds {
		m.alarm(sp, kind, "") // lets those go that are over
	}
	if m.quarantined() {
		text = "quarantine 1; "
	}
	for _, a := range slices.Backward(m.alarms) {
		if a.sp == sp && !a.quiet {
			text += fmt.Sprintf("%v %d; ", a.kind, a.count)
		}
	}
	return text
}

func alarmsText(list []leasehold.Alarm) (text string) {
	for _, a := range list {
		text += fmt.Sprintf("%v %d; ", a.Kind, a.Count)
	}
	return text
}

// sameAlarms compares the alarms that stand.
func sameAlarms(view core.View, m *model) error {
	for _, sp := range m.spaces {
		list, _ := view.Alarms(sp.name, core.AlarmQuery{Most: 1000})
		if got, want := alarmsText(list), m.standing(sp); got != want {
			return fmt.Errorf("\n alarms in %s: %s\n expected: %s", sp.name, got, want)
		}
	}
	return nil
}

// forecast is when somebody usually has its turn on a resource who has so many before
// it; 0: nobody can tell.
func (m *model) forecast(sp *modelSpace, path string, ahead int) time.Duration {
	r := m.resource(sp, path)
	if len(r.lastHolds()) < 3 {
		return 0
	}
	holders := m.holders(sp, path)
	half, most := r.hold(50), r.hold(95)
	each, first := half, time.Duration(0)
	if len(holders) > 0 {
		each = half / time.Duration(len(holders))
		held := time.Duration(m.now - holders[0].granted)
		switch {
		case held < half:
			first = half - held
		case held < most:
			first = most - held
		case holders[0].breakAt == 0:
			return 0
		}
		if at := holders[0].breakAt; at != 0 {
			first = min(first, time.Duration(at-m.now))
		}
	} else if until, resting := m.longestRest(r); resting && until == 0 {
		return 0
	} else if resting {
		first = time.Duration(until - m.now)
	}
	if m.quarantined() && m.resumes != 0 {
		first = max(first, time.Duration(m.resumes-m.now))
	}
	d := min(first+time.Duration(ahead)*each, 365*24*time.Hour)
	if d <= 0 {
		return 0
	}
	return rounded(d)
}

// longestRest is until when a resource rests, at least in part; 0: until somebody
// acknowledges it.
func (m *model) longestRest(r *modelResource) (until core.Time, resting bool) {
	for _, rest := range r.rests {
		switch {
		case rest.until == 0:
			return 0, true
		case rest.until > max(m.now, until):
			until, resting = rest.until, true
		}
	}
	return until, resting
}

// waiterForecast is that of the queue where it takes longest; 0 if any is unknown.
func (m *model) waiterForecast(c *modelClaim) (longest time.Duration) {
	for _, one := range m.together(c) {
		d := m.forecast(one.sp, one.resource, slices.Index(m.queue(one.sp, one.resource), one))
		if d == 0 {
			return 0
		}
		longest = max(longest, d)
	}
	return longest
}

// auto is the TTL that is advised; otherwise, if too little is known.
func (m *model) auto(r *modelResource, d leasehold.Definition, otherwise time.Duration) time.Duration {
	holds := r.lastHolds()
	if len(holds) < 8 {
		if d.LargestTTL != 0 {
			return min(otherwise, d.LargestTTL)
		}
		return otherwise
	}
	var gaps []time.Duration // in parts of 250
	for _, h := range holds {
		if part := math.Ceil(h.gap * 250); h.ttl != 0 && part > 0 {
			gaps = append(gaps, time.Duration(part))
		}
	}
	k := 3.0
	if half := percentile(gaps, 50); half > 0 {
		k = min(max(math.Floor((250+math.Floor(float64(half)/2))/float64(half)), 2), 10)
	}
	pause, held, lost := 0.0, 0.0, 0.0
	for _, h := range holds {
		if part := math.Ceil(h.gap * 250); h.ttl != 0 && part > 0 {
			pause = max(pause, math.Floor(float64(rounded(h.ttl))*part/250)-math.Floor(float64(rounded(h.ttl))/k))
		}
		if held += float64(rounded(h.length)); h.how == leasehold.ByTTL || h.how == leasehold.SessionExpired {
			lost++
		}
	}
	least := max(math.Ceil((2*pause+1e8)*k/(k-1)*100/99/1e9), 5)
	once := (held + 8640e9) * 10 / (10*lost + 1) / 1e6 // milliseconds
	best := math.Ceil(math.Floor(math.Sqrt(math.Floor(math.Floor(once)*2*k*10*2*k/(2*k-1)))) / 1000)
	most := 600.0
	if d.LargestTTL != 0 {
		most = min(most, d.LargestTTL.Seconds())
	}
	return time.Duration(min(max(best, least), most) * 1e9)
}
