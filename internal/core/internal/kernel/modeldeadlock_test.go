package kernel_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// deadlock reports whether claims would wait for ever: it looks at all parties of the
// namespace, again and again, lets everybody go on who can, and then asks whether
// there is a way from the one who asks, through those that are left, back to itself.
// It returns the shortest such way.
func (m *model) deadlock(asked []*modelClaim) string {
	from := m.partyOf(asked[0])
	if slices.Contains(m.stuck(asked[0].sp, nil), from) {
		return "" // as it is
	}
	before := m.claims
	m.asked = asked
	m.claims = append(slices.Clone(m.claims), asked...)
	if len(asked) > 1 {
		for _, c := range asked {
			c.group = -1
		}
	}
	defer func() {
		m.claims, m.asked = before, nil
		for _, c := range asked {
			c.group = 0
		}
	}()
	stuck := m.stuck(asked[0].sp, asked)
	if !slices.Contains(stuck, from) {
		return ""
	}
	type way struct{ party, text string }
	ways := []way{{party: from}}
	seen := []string{}
	for i := 0; i < len(ways); i++ {
		for _, want := range m.wantsOf(asked[0].sp, ways[i].party, asked) {
			for _, next := range m.inTheWayOf(want, asked, stuck) {
				text := ways[i].text + fmt.Sprintf(" %s>%s", want.holder, want.resource)
				if next == from {
					return text
				}
				if !slices.Contains(seen, next) {
					seen, ways = append(seen, next), append(ways, way{next, text})
				}
			}
		}
	}
	return ""
}

func (m *model) partyOf(c *modelClaim) string {
	switch {
	case c.party != "":
		return "party " + c.party + " of " + c.owner
	case c.session != "":
		return "session " + c.session + " of " + c.owner
	}
	return "holder " + c.holder + " of " + c.owner
}

// stuck lists the parties that can never go on.
func (m *model) stuck(sp *modelSpace, asked []*modelClaim) (stuck []string) {
	for _, c := range m.claims {
		if party := m.partyOf(c); c.sp == sp && !slices.Contains(stuck, party) {
			stuck = append(stuck, party)
		}
	}
	for {
		left := slices.DeleteFunc(slices.Clone(stuck), func(party string) bool {
			return !slices.ContainsFunc(m.wantsOf(sp, party, asked), func(c *modelClaim) bool { return m.hindered(c, stuck) })
		})
		if len(left) == len(stuck) {
			return stuck
		}
		stuck = left
	}
}

// wantsOf lists what a party waits for, by id; what is asked for comes first.
func (m *model) wantsOf(sp *modelSpace, party string, asked []*modelClaim) (list []*modelClaim) {
	for _, c := range m.claims {
		if _, _, over := m.over(c); c.sp == sp && c.token == 0 && !over && m.partyOf(c) == party && !slices.Contains(asked, c) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *modelClaim) int { return strings.Compare(a.id, b.id) })
	if len(asked) > 0 && party == m.partyOf(asked[0]) {
		list = slices.Concat(asked, list)
	}
	return list
}

// hindered reports whether a waiter cannot be granted while some parties never go on.
func (m *model) hindered(c *modelClaim, stuck []string) bool {
	need := c.slots
	for _, other := range m.aheadOf(c) {
		if other.group != 0 && slices.Contains(stuck, m.partyOf(other)) {
			return true
		}
		if other.slots == 0 || need != 0 && other.slots > need {
			need = other.slots // those behind it wait until that much is free
		}
	}
	room := cmp.Or(m.capacity(c.sp, c.resource), 1<<30)
	for _, holder := range m.blockersOf(c, stuck) {
		if need == 0 || holder.slots == 0 {
			return true
		}
		room -= holder.slots
	}
	return need > room
}

// aheadOf lists the waiters of others that stand before one.
func (m *model) aheadOf(c *modelClaim) (list []*modelClaim) {
	for _, other := range m.queue(c.sp, c.resource) {
		if other == c {
			return list
		}
		if _, _, over := m.over(other); !over && m.partyOf(other) != m.partyOf(c) {
			list = append(list, other)
		}
	}
	return list
}

// blockersOf lists the leases of others on what a waiter wants that never end.
func (m *model) blockersOf(c *modelClaim, stuck []string) (list []*modelClaim) {
	for _, holder := range m.holders(c.sp, c.resource) {
		_, _, over := m.over(holder)
		if party := m.partyOf(holder); !over && party != m.partyOf(c) && slices.Contains(stuck, party) && !m.earlierLife(holder) {
			list = append(list, holder)
		}
	}
	return list
}

// earlierLife reports whether somebody who asks for a resource by a name alone has it already, by
// that name, and will lose it some day.
func (m *model) earlierLife(c *modelClaim) bool {
	return strings.HasPrefix(m.partyOf(c), "holder ") && m.deadline(c) != 0 &&
		slices.ContainsFunc(m.asked, func(asked *modelClaim) bool { return m.partyOf(asked) == m.partyOf(c) && asked.resource == c.resource })
}

// inTheWayOf lists the parties that never go on and hinder a waiter.
func (m *model) inTheWayOf(c *modelClaim, asked []*modelClaim, stuck []string) (parties []string) {
	if !m.hindered(c, stuck) {
		return nil
	}
	for _, holder := range m.blockersOf(c, stuck) {
		parties = append(parties, m.partyOf(holder))
	}
	for _, other := range m.aheadOf(c) {
		if other.group != 0 && slices.Contains(stuck, m.partyOf(other)) {
			parties = append(parties, m.partyOf(other))
		}
	}
	for _, other := range m.aheadOf(c) {
		if slices.Contains(asked, other) && c.slots != 0 && (other.slots == 0 || other.slots > c.slots) {
			parties = append(parties, m.partyOf(other))
		}
	}
	return parties
}
