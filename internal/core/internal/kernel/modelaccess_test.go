package kernel_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// What the model knows of principals: whose everything is, how much they may have, and who lost a role that ends leases.
// All of them may do everything; who may do what is judged elsewhere.
type modelAccess struct {
	askers  []string // of the commands of the next entry; none: there is no policy
	who     string   // of the command
	quotas  []modelQuota
	revoked string // whose leases the next tick ends

	regained  bool      // it has the role again
	keeps     bool      // the role that it lost does not end leases
	revokedAt core.Time // and waits end from then on
}

// A modelQuota is that of a principal, of all who have none of their own (*), or of a namespace (/…).
type modelQuota struct {
	of   string
	most modelTally // 0: any number
}

type modelTally struct{ leases, waiters, sessions, records, bytes int }

func (m *model) asks(i int) {
	if m.who = ""; i < len(m.askers) {
		m.who = m.askers[i]
	}
}

// usesAnothersID reports whether a command proposes an id that is or was somebody else's.
func (m *model) usesAnothersID(c core.Command) bool {
	if m.who == "" {
		return false
	}
	claims := func(a *core.Acquire) bool {
		sp := m.space(a.Namespace)
		return slices.ContainsFunc(itemsOf(a), func(item core.Item) bool {
			if claim := m.claim(sp, item.ID); sp != nil && claim != nil {
				return claim.owner != m.who
			}
			e := m.ended(sp, item.ID, false)
			return sp != nil && e != nil && e.owner != m.who
		})
	}
	switch c := c.(type) {
	case *core.Acquire:
		return claims(c)
	case *core.Txn:
		return slices.ContainsFunc(slices.Concat(c.Then, c.Else), func(o core.Op) bool { return o.Acquire != nil && claims(o.Acquire) })
	case *core.OpenSession:
		sp := m.space(c.Namespace)
		if session := m.session(sp, c.ID); sp != nil && session != nil {
			return session.owner != m.who
		}
		e := m.ended(sp, c.ID, true)
		return sp != nil && e != nil && e.owner != m.who
	}
	return false
}

// neverWas reports whether an id was given back before anybody asked for it, of which nobody is told.
func (m *model) neverWas(namespace, id string) bool {
	sp := m.space(namespace)
	if m.who == "" || sp == nil || m.claim(sp, id) != nil {
		return false
	}
	e := m.ended(sp, id, false)
	return e != nil && e.resource == ""
}

// aboutNothing answers a command about such an id; empty if it is about something else.
func (m *model) aboutNothing(c core.Command) string {
	never := false
	switch c := c.(type) {
	case *core.Renew:
		never = m.neverWas(c.Namespace, c.ID)
	case *core.Change:
		never = m.neverWas(c.Namespace, c.ID)
	case *core.Move:
		never = m.neverWas(c.Namespace, c.ID)
	case *core.Break:
		never = c.ID != "" && m.neverWas(c.Namespace, c.ID)
	case *core.Release:
		if never = m.neverWas(c.Namespace, c.ID); never && c.Withdraw {
			return "done"
		}
	}
	if never {
		return "not-found"
	}
	return ""
}

// has counts what a principal has, or what is in a namespace (/…).
func (m *model) has(of string) (t modelTally) {
	counts := func(sp *modelSpace, owner string) bool { return owner == of || "/"+sp.name == of }
	for _, c := range m.claims {
		switch {
		case !counts(c.sp, c.owner):
		case c.token == 0:
			t.waiters++
		default:
			t.leases++
		}
	}
	for _, s := range m.sessions {
		if counts(s.sp, s.owner) {
			t.sessions++
		}
	}
	for _, r := range m.records {
		if counts(r.sp, r.owner) {
			t.records++
			t.bytes += modelSize(r.path, r.value)
		}
	}
	for _, v := range m.former {
		owner := ""
		if r := m.record(v.sp, v.path); r != nil {
			owner = r.owner
		}
		if counts(v.sp, owner) {
			t.bytes += modelSize(v.path, v.value)
		}
	}
	return t
}

func modelSize(path, value string) int {
	if name, large := strings.CutPrefix(value, "large:"); large {
		n, _ := strconv.Atoi(name[strings.Index(name, "/")+1:])
		return len(path) + n
	}
	return len(path) + len(value)
}

// quotaFor finds the quota of a principal, or of a namespace.
func (m *model) quotaFor(of string) (most modelTally) {
	for _, name := range []string{"*", of} {
		for _, q := range m.quotas {
			if q.of == name && (name == of || of[0] != '/') {
				most = q.most
			}
		}
	}
	return most
}

func (m *model) beyondOf(of string, more modelTally) bool {
	over := func(has, more, most int) bool { return more > 0 && most > 0 && has+more > most }
	has, most := m.has(of), m.quotaFor(of)
	return over(has.leases+has.waiters, more.leases+more.waiters, most.leases) || over(has.waiters, more.waiters, most.waiters) ||
		over(has.sessions, more.sessions, most.sessions) || over(has.records, more.records, most.records) || over(has.bytes, more.bytes, most.bytes)
}

// beyond reports whether more would be too much for who asks, or for a namespace.
func (m *model) beyond(namespace string, more modelTally) bool {
	return m.who != "" && (m.beyondOf(m.who, more) || m.beyondOf("/"+namespace, more))
}

func (m *model) claimsBeyond(namespace string, n int, wait bool) bool {
	if wait {
		return m.beyond(namespace, modelTally{waiters: n})
	}
	return m.beyond(namespace, modelTally{leases: n})
}

// writesBeyond counts what writes make larger for the owners of the records.
func (m *model) writesBeyond(namespace string, writes []modelWrite) bool {
	if m.who == "" {
		return false
	}
	sp, all, each := m.space(namespace), modelTally{}, map[string]modelTally{}
	for _, w := range writes {
		old, shelf := m.record(sp, w.path), m.shelf(sp, w.path)
		keeps := w.keep > 0 || w.keep == 0 && shelf != nil
		more, owner := modelTally{bytes: modelSize(w.path, w.value)}, m.who
		switch {
		case old == nil:
			more.records = 1
		case !keeps:
			more.bytes -= modelSize(old.path, old.value)
		}
		all.records, all.bytes = all.records+more.records, all.bytes+more.bytes
		if old != nil {
			owner = old.owner
		} else if keeps {
			for _, v := range m.versions(sp, w.path) {
				more.bytes += modelSize(v.path, v.value)
			}
		}
		sum := each[owner]
		if sum.records, sum.bytes = sum.records+more.records, sum.bytes+more.bytes; owner != m.who && m.beyondOf(owner, sum) {
			return true
		}
		each[owner] = sum
	}
	return m.beyondOf(m.who, each[m.who]) || m.beyondOf("/"+namespace, all)
}

// revoke ends what somebody had who lost the role, unless it got it back.
func (m *model) revoke() {
	who := m.revoked
	m.withdraw()
	if m.revoked = ""; who == "" || m.regained || m.keeps {
		return
	}
	var ids []named
	for _, c := range m.claims {
		if c.owner == who {
			ids = append(ids, named{c.sp.name, c.id})
		}
	}
	slices.SortFunc(ids, func(a, b named) int { return strings.Compare(a.namespace+"\x00"+a.id, b.namespace+"\x00"+b.id) })
	for _, at := range ids {
		if claim := m.touch(m.space(at.namespace), at.id); claim != nil {
			m.breakClaim(claim, &core.Break{})
		}
	}
}

// loses notes that somebody lost a role, which may keep its leases.
func (m *model) loses(now core.Time, who string, keeps bool) {
	if !keeps || slices.ContainsFunc(m.claims, func(c *modelClaim) bool { return c.token == 0 }) {
		m.revoked, m.revokedAt, m.keeps = who, now, keeps
	}
}

// withdraw ends the waits of somebody who lost the right to what it waits for.
func (m *model) withdraw() {
	waiters := slices.Clone(m.claims)
	slices.SortStableFunc(waiters, func(a, b *modelClaim) int {
		return cmp.Or(strings.Compare(a.sp.name, b.sp.name), strings.Compare(a.resource, b.resource), cmp.Compare(b.priority, a.priority))
	})
	for _, c := range waiters {
		if m.withdrawn(c) && m.claim(c.sp, c.id) == c {
			m.settleClaim(c)
		}
	}
}

// withdrawn reports whether a claim waits for what its owner may not have any more.
func (m *model) withdrawn(c *modelClaim) bool {
	return c.token == 0 && m.revoked != "" && c.owner == m.revoked && !m.regained
}

// TestModelAgreesOnQuotas gives random logs to principals with quotas, some of whom lose their role now and then.
func TestModelAgreesOnQuotas(t *testing.T) {
	forEachSeed(t, testing.Short(), func(seed uint64, j journal) error { return againstQuotas(t, seed, j) })
}

// The last one has its role by a group.
var crew = []*access.Asker{{Principal: "ci0:a"}, {Principal: "ci1:b"}, {Principal: "ci2:c", Groups: []string{"team"}}}

// crewIssuer is who proves one of them, and puts it into a group.
func crewIssuer(i int, group string) *access.Issuer {
	return &access.Issuer{Name: fmt.Sprint("ci", i), URL: "https://ci.example", Audiences: []string{"leases"},
		Groups: []access.ClaimRule{{Claim: "sub", Value: "*", Group: group}}}
}

func crewBinding(i int) *access.Binding {
	b := &access.Binding{Name: fmt.Sprint(i), Role: []string{"all", "some", "all"}[i], Principal: crew[i].Principal, Namespace: access.AllNamespaces}
	if crew[i].Groups != nil {
		b.Principal, b.Group = "", crew[i].Groups[0]
	}
	return b
}

func againstQuotas(t *testing.T, seed uint64, j journal) error {
	chance := rand.New(rand.NewPCG(seed, 5))
	state, m := &replica{State: core.NewAt(core.NewestLevel)}, &model{}
	begin := crewPolicy(crewBinding(0), crewBinding(1), crewBinding(2))
	begin.Put.Roles = append(begin.Put.Roles, &access.Role{Name: "all", Any: access.All, EndOnRevoke: true},
		&access.Role{Name: "some", Any: access.All})
	begin.Put.Issuers = []*access.Issuer{crewIssuer(0, "team"), crewIssuer(1, "team"), crewIssuer(2, "team")}
	gone := -1    // who has lost its role
	left := false // by leaving its group
	change := func(e entry, c *core.ChangeAccess) error {
		result, err := state.Apply(stampOf(e.stamp), wallOf(e.stamp), []core.Command{c}, core.From{Askers: []*access.Asker{root}})
		if err == nil && result.Answers[0].Err != nil {
			err = result.Answers[0].Err
		}
		m.now = stampOf(e.stamp)
		m.forget(2 + 16)
		m.forgetSpaces()
		return err
	}
	if err := change(entry{}, begin); err != nil {
		return err
	}
	for _, e := range j {
		if chance.IntN(10) == 0 {
			if err := change(e, m.newQuota(chance)); err != nil {
				return err
			}
		}
		switch chance.IntN(12) {
		case 0:
			if gone < 0 && m.revoked == "" {
				gone = chance.IntN(len(crew))
				takes := takesFrom(chance, gone)
				m.loses(stampOf(e.stamp), crew[gone].Principal, gone == 1)
				if m.revoked == "" && takes.Remove.Issuers != nil { // it may have been in the group of another
					m.revoked, m.keeps = crew[gone].Principal, true
				}
				if left = takes.Put.Issuers != nil; change(e, takes) != nil {
					return fmt.Errorf("%s cannot be taken away", writeCommand(takes))
				}
			}
		case 1, 2, 3:
			if gone >= 0 {
				if err := change(e, &core.ChangeAccess{Put: access.Items{Bindings: []*access.Binding{crewBinding(gone)}, Issuers: []*access.Issuer{crewIssuer(gone, "team")}}}); err != nil {
					return err
				}
				if left { // a rule of an issuer was replaced, which is looked at as if it took something away
					m.loses(stampOf(e.stamp), crew[gone].Principal, true)
				}
				gone = -1
			}
		}
		if chance.IntN(20) == 0 {
			state.State = reloaded(t, state.State)
		}
		if err := m.compare(state, e, chance, gone); err != nil {
			return err
		}
	}
	return nil
}

// takesFrom takes everything from one of the crew: its binding, what proves it, or the group by which it has its role.
func takesFrom(chance *rand.Rand, i int) *core.ChangeAccess {
	switch n := chance.IntN(6); {
	case n < 2:
		return &core.ChangeAccess{Remove: access.Keys{Issuers: []string{crewIssuer(i, "").Name}}}
	case n < 4 && crew[i].Groups != nil:
		return &core.ChangeAccess{Put: access.Items{Issuers: []*access.Issuer{crewIssuer(i, "others")}}}
	}
	return &core.ChangeAccess{Remove: access.Keys{Bindings: []string{fmt.Sprint(i)}}}
}

func (m *model) newQuota(chance *rand.Rand) *core.ChangeAccess {
	of := []string{"*", "ci0:a", "ci1:b", "/default", "/green"}[chance.IntN(5)]
	few := func() int { return []int{0, 0, 0, 1, 2, 4}[chance.IntN(6)] }
	q := modelQuota{of, modelTally{few(), few(), few(), few(), 40 * few()}}
	m.quotas = append(slices.DeleteFunc(m.quotas, func(o modelQuota) bool { return o.of == of }), q)
	put := quotaOf(of)
	put.Leases, put.Waiters, put.Sessions = int64(q.most.leases), int64(q.most.waiters), int64(q.most.sessions)
	put.Records, put.Bytes = int64(q.most.records), int64(q.most.bytes)
	return &core.ChangeAccess{Put: access.Items{Quotas: []*access.Quota{put}}}
}

// compare applies an entry to both.
func (m *model) compare(state *replica, e entry, chance *rand.Rand, gone int) error {
	from := core.From{}
	m.askers = nil
	for range e.commands {
		i := chance.IntN(len(crew))
		if i == gone {
			i = (i + 1) % len(crew)
		}
		from.Askers, m.askers = append(from.Askers, crew[i]), append(m.askers, crew[i].Principal)
	}
	m.regained = gone < 0
	if err := state.restore(e); err != nil {
		return err
	}
	result, err := state.Apply(stampOf(e.stamp), wallOf(e.stamp), e.commands, from)
	if err != nil {
		return err
	}
	if e.restore != nil {
		m.restore(e.restore)
	}
	answers := m.apply(stampOf(e.stamp), e.commands)
	for i, a := range result.Answers {
		if got := answerText(a); got != answers[i] {
			return fmt.Errorf("at %v, %s as %s\n answered: %s\n expected: %s\n%v", e.stamp, writeCommand(e.commands[i]), m.askers[i], got, answers[i], a.Err)
		}
	}
	if got := eventTexts(result.Events); !slices.Equal(got, m.events) {
		return fmt.Errorf("at %v\n happened: %s\n expected: %s", e.stamp, strings.Join(got, "; "), strings.Join(m.events, "; "))
	}
	if err := sameSight(state.State, m); err != nil {
		return fmt.Errorf("after %v: %w", e.stamp, err)
	}
	return state.Check()
}
