package kernel_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// What the model knows of totals: caps, and namespaces that are forgotten.

func (m *model) setCaps(c *core.SetCaps) modelAnswer {
	switch {
	case c.Caps == leasehold.Caps{}:
		return modelAnswer{text: "invalid"}
	case c.IfUnset && m.caps != leasehold.Caps{}:
		return modelAnswer{text: "done"}
	}
	for _, cap := range []struct {
		now *int
		set int
	}{
		{&m.caps.Leases, c.Caps.Leases}, {&m.caps.Sessions, c.Caps.Sessions},
		{&m.caps.Waiters, c.Caps.Waiters}, {&m.caps.Namespaces, c.Caps.Namespaces},
	} {
		if cap.set != 0 {
			*cap.now = cap.set
		}
	}
	return modelAnswer{text: "done"}
}

const uncapped = 1 << 30

// full reports whether n more leases, or waiters, would be too many.
func (m *model) full(more int, wait bool) bool {
	leases, waiters := 0, 0
	for _, c := range m.claims {
		if c.token != 0 {
			leases++
		} else {
			waiters++
		}
	}
	if wait {
		return waiters+more > cmp.Or(m.caps.Waiters, uncapped)
	}
	return leases+more > cmp.Or(m.caps.Leases, uncapped)
}

// fullOfSessions reports whether one more session would be too many.
func (m *model) fullOfSessions() bool { return len(m.sessions) >= cmp.Or(m.caps.Sessions, uncapped) }

// fullOfSpaces reports whether a namespace would be one too many.
func (m *model) fullOfSpaces(name string) bool {
	return m.space(name) == nil && len(m.spaces) >= cmp.Or(m.caps.Namespaces, uncapped)
}

func (m *model) raiseTokens(c *core.RaiseTokens) modelAnswer {
	newest := max(leasehold.Token(m.base), m.forgottenToken)
	if sp := m.space(c.Namespace); sp != nil {
		newest = sp.token
	}
	switch {
	case c.Above == 0 || c.Reason == "":
		return modelAnswer{text: "invalid"}
	case newest >= c.Above:
	case m.fullOfSpaces(c.Namespace):
		return modelAnswer{text: "limited"}
	default:
		m.begin(c.Namespace).token = c.Above
	}
	return modelAnswer{text: "done"}
}

// forgetSpaces lets go of the namespaces in which there is nothing, and nothing was for ten
// minutes.
func (m *model) forgetSpaces() {
	for _, sp := range slices.Clone(m.spaces) {
		quiet := sp.changed == 0 || sp.changed+core.Time(10*time.Minute) <= m.now
		if !quiet || !m.vacant(sp) || m.graceIn(sp) {
			continue
		}
		m.forgottenToken = max(m.forgottenToken, sp.token)
		m.forgottenRevision = max(m.forgottenRevision, sp.revision)
		m.unbegin(sp)
		m.past = slices.DeleteFunc(m.past, func(p modelPast) bool { return p.sp == sp })
	}
}

func (m *model) vacant(sp *modelSpace) bool {
	return len(sp.defined) == 0 &&
		!slices.ContainsFunc(m.claims, func(c *modelClaim) bool { return c.sp == sp }) &&
		!slices.ContainsFunc(m.sessions, func(s *modelSession) bool { return s.sp == sp }) &&
		!slices.ContainsFunc(m.records, func(r modelRecord) bool { return r.sp == sp }) &&
		!slices.ContainsFunc(m.shelves, func(s modelShelf) bool { return s.sp == sp }) &&
		!slices.ContainsFunc(m.alarms, func(a *modelAlarm) bool { return a.sp == sp }) &&
		!slices.ContainsFunc(m.endings, func(e modelEnding) bool { return e.sp == sp }) &&
		!slices.ContainsFunc(m.outcomes, func(o modelOutcome) bool { return o.sp == sp })
}

// graceIn reports whether a grace runs on a resource of a vacant namespace. Those that come before the
// first of them, by name, are forgotten.
func (m *model) graceIn(sp *modelSpace) bool {
	first := ""
	for _, r := range m.resources {
		resting := slices.ContainsFunc(r.rests, func(rest modelRest) bool { return rest.until == 0 || rest.until > m.now })
		if r.sp == sp && resting && (first == "" || r.path < first) {
			first = r.path
		}
	}
	m.resources = slices.DeleteFunc(m.resources, func(r *modelResource) bool {
		return r.sp == sp && (first == "" || r.path < first)
	})
	return first != ""
}
