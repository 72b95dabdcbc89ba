package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// This file is the part of the model that keeps records. What they were at an older
// revision it knows because it keeps a copy of all of them for each.

type modelRecord struct {
	sp                   *modelSpace
	path, value, session string // the value is that, or the name of a large one
	create, mod, version int
	token                leasehold.Token
	owner                string
	lease                string // that it is the face of
}

// A modelVersion is what a record was.
type modelVersion struct {
	modelRecord
	written core.Time // 0: nobody knows
	holder  string
	deleted bool
}

// A modelShelf says that a record keeps what it was.
type modelShelf struct {
	sp      *modelSpace
	path    string
	keep    int
	deleted core.Time
	written core.Time
	holder  string
}

type modelPast struct {
	sp       *modelSpace
	revision int
	records  []modelRecord
}

func (m *model) keepPast() {
	for _, sp := range m.spaces {
		if sp.command == m.command && sp.revision > 0 {
			m.past = append(m.past, modelPast{sp, sp.revision, m.between(sp, "", "")})
		}
	}
}

// unbegin forgets a namespace that a refusal must not begin.
func (m *model) unbegin(sp *modelSpace) {
	m.spaces = slices.DeleteFunc(m.spaces, func(other *modelSpace) bool { return other == sp })
	m.resources = slices.DeleteFunc(m.resources, func(r *modelResource) bool { return r.sp == sp })
}

func (m *model) put(sp *modelSpace, c *core.PutRecord) modelAnswer {
	old := m.liveRecord(sp, c.Path)
	token, no := m.fence(sp, old, c.Fence)
	switch {
	case no != "":
		return modelAnswer{text: no}
	case c.IfAbsent && old != nil, c.IfRevision != 0 && (old == nil || old.mod != int(c.IfRevision)):
		return modelAnswer{text: "refused"}
	}
	value, found := m.valueOf(sp, c.Path, tellValue(c.Value, c.Large), c.From)
	if found && (c.Link != nil || m.faceOf(old) != nil) {
		w := modelWrite{path: c.Path, value: value, session: c.Session, keep: c.Keep}
		if c.Fence.Lease != "" {
			w.holder = m.claim(sp, c.Fence.Lease).holder
		}
		return m.putLinked(sp, c, old, w, token)
	}
	switch {
	case !found:
		return modelAnswer{text: "not-found"}
	case c.Session != "" && m.live(sp, c.Session) == nil:
		return m.noSession(sp, c.Session)
	case m.fullOfSpaces(c.Namespace), m.writesBeyond(c.Namespace, []modelWrite{{path: c.Path, value: value, keep: c.Keep}}):
		return modelAnswer{text: "limited"}
	}
	holder := ""
	if c.Fence.Lease != "" {
		holder = m.claim(sp, c.Fence.Lease).holder
	}
	m.apart(m.begin(c.Namespace), old)
	return modelAnswer{text: m.write(m.begin(c.Namespace), modelWrite{path: c.Path, value: value, session: c.Session, keep: c.Keep, holder: holder}, token).text(true)}
}

// valueOf is what a write puts: what it says, or what the record was at a revision.
func (m *model) valueOf(sp *modelSpace, path, value string, from leasehold.Revision) (string, bool) {
	if from == 0 {
		return value, true
	}
	if r := m.record(sp, path); r != nil && r.mod == int(from) {
		return r.value, true
	}
	for _, v := range m.former {
		if v.sp == sp && v.path == path && v.mod == int(from) {
			return v.value, true
		}
	}
	return "", false
}

func (m *model) delete(sp *modelSpace, c *core.DeleteRecord) modelAnswer {
	var old *modelRecord
	if !c.Range {
		old = m.liveRecord(sp, c.Path)
	}
	_, no := m.fence(sp, old, c.Fence)
	switch {
	case no != "":
		return modelAnswer{text: no}
	case c.IfRevision != 0 && (old == nil || old.mod != int(c.IfRevision)):
		return modelAnswer{text: "refused"}
	}
	m.settleRecords(sp, c.Path, m.endOf(c.Path, c.To, c.Range))
	for _, r := range m.between(sp, c.Path, m.endOf(c.Path, c.To, c.Range)) {
		m.apart(sp, &r)
	}
	deleted := m.deleteAll(sp, c.Path, m.endOf(c.Path, c.To, c.Range))
	return modelAnswer{text: fmt.Sprintf("then %d, %d deleted", m.revision(sp), deleted)}
}

func (m *model) txn(sp *modelSpace, c *core.Txn) modelAnswer {
	for _, i := range c.If {
		if i.What >= core.LeaseID && sp != nil {
			m.settle(sp, i.Path)
		} else {
			m.liveRecord(sp, i.Path)
		}
	}
	for _, i := range c.If {
		if r := m.record(sp, i.Path); i.What == core.RecordValue && r != nil && strings.HasPrefix(r.value, "large:") {
			return modelAnswer{text: "refused"}
		}
	}
	branch, list := "then", c.Then
	for _, i := range c.If {
		if !m.holds(sp, i) {
			branch, list = "else", c.Else
		}
	}
	var linked, released []string // the claims that something is done to
	for _, o := range list {
		switch o.Do {
		case core.Put:
			old := m.liveRecord(sp, o.Path)
			if _, found := m.valueOf(sp, o.Path, "", o.From); !found {
				return modelAnswer{text: "not-found"}
			}
			if claim := m.faceOf(old); claim != nil {
				if m.isMirrored(sp, claim.resource) || slices.Contains(linked, claim.id) || slices.Contains(released, claim.id) {
					return modelAnswer{text: "refused"}
				}
				linked = append(linked, claim.id)
			}
		case core.Delete:
			m.settleRecords(sp, o.Path, m.endOf(o.Path, o.To, o.Range))
			for _, r := range m.between(sp, o.Path, m.endOf(o.Path, o.To, o.Range)) {
				if r.lease == "" {
					continue
				}
				if slices.Contains(linked, r.lease) || slices.Contains(released, r.lease) {
					return modelAnswer{text: "refused"}
				}
				linked = append(linked, r.lease)
			}
		case core.ReleaseLease:
			if m.neverWas(c.Namespace, o.ID) {
				return modelAnswer{text: "not-found"}
			}
			if m.touch(sp, o.ID) == nil && !m.wasReleased(sp, o.ID) {
				return m.noClaim(sp, o.ID)
			}
			if slices.Contains(linked, o.ID) {
				return modelAnswer{text: "refused"}
			}
			released = append(released, o.ID)
		}
	}
	for _, o := range list {
		if o.Session != "" && m.live(sp, o.Session) == nil {
			return m.noSession(sp, o.Session)
		}
	}
	var writes []modelWrite
	for _, o := range list {
		if value, _ := m.valueOf(sp, o.Path, tellValue(o.Value, o.Large), o.From); o.Do == core.Put {
			writes = append(writes, modelWrite{path: o.Path, value: value, keep: o.Keep})
		}
	}
	if m.writesBeyond(c.Namespace, writes) {
		return modelAnswer{text: "limited"}
	}
	var claims []*modelClaim
	known, crowded := sp != nil, m.fullOfSpaces(c.Namespace)
	for _, o := range list {
		if o.Do == core.Put || o.Do == core.AcquireLease {
			sp = m.begin(c.Namespace)
		}
		if o.Do == core.AcquireLease {
			var refusal modelAnswer
			claims, _, refusal = m.mayAcquire(sp, o.Acquire)
			if refusal.text == "" && (m.full(len(claims), false) || m.claimsBeyond(c.Namespace, len(claims), false)) {
				refusal.text = "limited"
			}
			if refusal.text != "" {
				if !known {
					m.unbegin(sp)
				}
				return refusal
			}
		}
	}
	if crowded && sp != nil {
		m.unbegin(sp)
		return modelAnswer{text: "limited"}
	}
	for _, o := range list {
		for _, r := range m.between(sp, o.Path, m.endOf(o.Path, o.To, o.Range)) {
			if o.Do == core.Put || o.Do == core.Delete {
				m.apart(sp, &r)
			}
		}
	}
	for _, o := range list {
		if o.Do == core.AcquireLease { // before all else
			m.agree(sp, o.Acquire)
			m.claims = append(m.claims, claims...)
			for _, claim := range claims {
				m.grant(claim)
			}
			m.mirrorClaims(claims)
		}
	}
	before, text := "", ""
	for _, o := range list {
		to := m.endOf(o.Path, o.To, o.Range)
		switch o.Do {
		case core.Put:
			value, _ := m.valueOf(sp, o.Path, tellValue(o.Value, o.Large), o.From)
			holder, token := m.writerOf(sp, c, branch, o.Path)
			gives := ""
			if r := m.record(sp, o.Path); r != nil {
				gives = r.lease
			}
			text += ", " + m.write(sp, modelWrite{path: o.Path, value: value, session: o.Session, keep: o.Keep, holder: holder}, token).text(false)
			m.giveUp(sp, gives)
		case core.Delete:
			text += fmt.Sprintf(", %d deleted", m.deleteAll(sp, o.Path, to))
		case core.Get:
			text += ", " + m.get(sp, o, to)
		case core.ReleaseLease:
			m.release(sp, &core.Release{Namespace: sp.name, ID: o.ID})
			text += ", 0 deleted"
		case core.AcquireLease:
			before, text = text+", ", ""
		}
	}
	head := fmt.Sprintf("%s %d%s", branch, m.revision(sp), before)
	if claims == nil {
		return modelAnswer{text: head + text}
	}
	var ids []string
	for _, claim := range claims {
		ids = append(ids, claim.id)
	}
	return m.tellTxn(sp, head, ids, text)
}

// writerOf is who puts a path in a transaction: the holder of the lease on it, if the transaction
// compares that lease's id.
func (m *model) writerOf(sp *modelSpace, c *core.Txn, branch, path string) (string, leasehold.Token) {
	for _, i := range c.If {
		if branch == "then" && i.What == core.LeaseID && i.Is == core.Equal && i.Path == path {
			if claim := m.claim(sp, i.Text); claim != nil {
				return claim.holder, claim.token
			}
		}
	}
	return "", 0
}

// tellTxn tells of a transaction that acquired, with what there is of the leases now.
func (m *model) tellTxn(sp *modelSpace, head string, ids []string, tail string) modelAnswer {
	var claims []*modelClaim
	for _, id := range ids {
		claim := m.claim(sp, id)
		if claim == nil {
			return m.noClaim(sp, id)
		}
		claims = append(claims, claim)
	}
	return modelAnswer{text: head + m.showLeases(claims).text + tail, again: func() modelAnswer {
		for _, id := range ids {
			if m.touch(sp, id) == nil {
				return m.noClaim(sp, id)
			}
		}
		return m.tellTxn(sp, head, ids, tail)
	}}
}

func (m *model) wasReleased(sp *modelSpace, id string) bool {
	e := m.ended(sp, id, false)
	return e != nil && (e.how == leasehold.Released || e.how == leasehold.Withdrawn)
}

func (m *model) get(sp *modelSpace, o core.Op, to string) string {
	found := m.seen(sp, o.Path, to)
	text := ""
	for i, r := range found {
		if i == o.Most && o.Most > 0 {
			text += " more"
			break
		}
		if o.KeysOnly && !strings.HasPrefix(r.value, "large:") {
			r.value = `""`
		}
		text += " " + r.path + "=" + r.value
	}
	if o.Count && len(found) > 0 {
		text += fmt.Sprint(" of ", len(found))
	}
	return "got" + text
}

// wrongTxn reports whether no state could make sense of a transaction.
func wrongTxn(c *core.Txn) bool {
	for _, list := range [][]core.Op{c.Then, c.Else} {
		leases := ""
		for _, o := range list {
			switch {
			case o.Do == core.AcquireLease && (leases != "" || o.Acquire.Wait != 0 || o.Acquire.TTL != 0 && o.Acquire.Session != ""):
				return true
			case o.Do == core.AcquireLease:
				leases = "acquired"
			case o.Do == core.ReleaseLease:
				leases = "released"
			}
		}
		for i, o := range list {
			if o.Do == core.Get && c.Request != (core.Request{}) {
				return true
			}
			for j, other := range list {
				within := other.Path == o.Path
				if other.Range {
					within = o.Path >= other.Path && (other.To == "" || o.Path < other.To)
				}
				if o.Do == core.Put && i != j && other.Do != core.Get && within {
					return true
				}
			}
		}
	}
	return false
}

func (m *model) holds(sp *modelSpace, c core.Compare) bool {
	number, text, none := 0, "", false
	if c.What >= core.LeaseID {
		if holder := m.holder(sp, c.Path); holder != nil {
			number, text = int(holder.token), holder.id
		}
	} else {
		r := m.record(sp, c.Path)
		if none = r == nil; none {
			r = &modelRecord{}
		}
		number = map[core.What]int{core.RecordCreate: r.create, core.RecordMod: r.mod, core.RecordVersion: r.version}[c.What]
		text = map[core.What]string{core.RecordValue: strings.Trim(r.value, `"`), core.RecordSession: r.session}[c.What]
	}
	order := number - int(c.Number)
	if c.What == core.RecordValue || c.What == core.RecordSession || c.What == core.LeaseID {
		order = strings.Compare(text, c.Text)
		if none && c.What == core.RecordValue {
			return false
		}
	}
	return map[core.Relation]bool{core.Equal: order == 0, core.NotEqual: order != 0, core.Less: order < 0, core.Greater: order > 0}[c.Is]
}

// fence is the token that a write is made under, or why it may not be made.
func (m *model) fence(sp *modelSpace, old *modelRecord, f core.Fence) (leasehold.Token, string) {
	if f.Lease != "" {
		claim := m.touch(sp, f.Lease)
		if claim == nil {
			if e := m.ended(sp, f.Lease, false); e != nil {
				m.settle(sp, e.resource)
			}
			return 0, "lost"
		}
		if claim.token == 0 || f.Token != 0 && f.Token != claim.token {
			return 0, "lost"
		}
		return claim.token, ""
	}
	switch {
	case f.Token == 0:
		return 0, ""
	case sp == nil || f.Token > sp.token:
		return 0, "refused"
	case old != nil && old.token > f.Token:
		return 0, "lost"
	}
	return f.Token, ""
}

// endOf is where a range ends; one path is the range of itself.
func (m *model) endOf(path, to string, isRange bool) string {
	if !isRange {
		return path + "\x00"
	}
	return to
}

func (m *model) between(sp *modelSpace, from, to string) (list []modelRecord) {
	for _, r := range m.records {
		if r.sp == sp && r.path >= from && (to == "" || r.path < to) {
			list = append(list, r)
		}
	}
	return list
}

// seen are the records of a range whose session is not over.
func (m *model) seen(sp *modelSpace, from, to string) []modelRecord {
	return slices.DeleteFunc(m.between(sp, from, to), func(r modelRecord) bool {
		if claim := m.faceOf(&r); claim != nil {
			at := m.deadline(claim)
			return !claim.face.stay && at != 0 && at <= m.now
		}
		session := m.session(r.sp, r.session)
		return session != nil && session.end() <= m.now
	})
}

func (m *model) record(sp *modelSpace, path string) *modelRecord {
	for _, r := range m.between(sp, path, path+"\x00") {
		return &r
	}
	return nil
}

func (m *model) liveRecord(sp *modelSpace, path string) *modelRecord {
	m.settleRecords(sp, path, path+"\x00")
	return m.record(sp, path)
}

func (m *model) settleRecords(sp *modelSpace, from, to string) {
	for _, r := range m.between(sp, from, to) {
		switch now := m.record(sp, r.path); {
		case now == nil:
		case now.lease != "":
			m.touch(sp, now.lease)
		default:
			m.live(sp, now.session)
		}
	}
}

type modelWrite struct {
	path, value, session string
	keep                 int
	holder               string
	lease                string // that it is the face of
	loose                bool   // it does not end with its session
}

func (m *model) write(sp *modelSpace, w modelWrite, token leasehold.Token) modelRecord {
	path, value := w.path, w.value
	r := modelRecord{sp: sp, path: path, value: value, session: w.session, version: 1, token: token, owner: m.who, lease: w.lease}
	was := " after nothing"
	old := m.record(sp, path)
	m.keep(sp, old, w)
	if old != nil {
		r.version, r.token, r.owner = old.version+1, max(old.token, token), old.owner
		was = " after " + old.path + "=" + old.value
		m.records = slices.DeleteFunc(m.records, func(o modelRecord) bool { return o == *old })
	}
	m.event(sp, "put %s=%s%s", path, value, was)
	r.create, r.mod = sp.revision, sp.revision
	if old != nil {
		r.create = old.create
	}
	m.addRecord(r)
	return r
}

func (m *model) addRecord(r modelRecord) {
	m.records = append(m.records, r)
	slices.SortFunc(m.records, func(a, b modelRecord) int { return strings.Compare(a.path, b.path) })
}

func (m *model) shelf(sp *modelSpace, path string) *modelShelf {
	for i := range m.shelves {
		if m.shelves[i].sp == sp && m.shelves[i].path == path {
			return &m.shelves[i]
		}
	}
	return nil
}

// keep keeps what a record was before a write, if it should.
func (m *model) keep(sp *modelSpace, old *modelRecord, w modelWrite) {
	shelf := m.shelf(sp, w.path)
	if w.keep < 0 || w.keep == 0 && shelf == nil {
		m.unshelve(sp, w.path)
		return
	}
	if old != nil {
		v := modelVersion{modelRecord: *old}
		if shelf != nil {
			v.written, v.holder = shelf.written, shelf.holder
		}
		m.former = append(m.former, v)
	}
	if shelf == nil {
		m.shelves = append(m.shelves, modelShelf{sp: sp, path: w.path})
		shelf = m.shelf(sp, w.path)
	}
	if w.keep > 0 {
		shelf.keep = w.keep
	}
	shelf.deleted, shelf.written, shelf.holder = 0, m.now, w.holder
	m.trim(*shelf)
}

// trim forgets the oldest of what is kept beyond what should be.
func (m *model) trim(shelf modelShelf) {
	own := m.versions(shelf.sp, shelf.path)
	for _, v := range own[:max(0, len(own)-shelf.keep)] {
		m.former = slices.DeleteFunc(m.former, func(o modelVersion) bool { return o == v })
	}
}

// versions are the former ones of a record, oldest first.
func (m *model) versions(sp *modelSpace, path string) []modelVersion {
	return slices.DeleteFunc(slices.Clone(m.former), func(v modelVersion) bool { return v.sp != sp || v.path != path })
}

// unshelve forgets all that a record was.
func (m *model) unshelve(sp *modelSpace, path string) {
	m.former = slices.DeleteFunc(m.former, func(v modelVersion) bool { return v.sp == sp && v.path == path })
	m.shelves = slices.DeleteFunc(m.shelves, func(s modelShelf) bool { return s.sp == sp && s.path == path })
}

func (m *model) deleteAll(sp *modelSpace, from, to string) (deleted int) {
	m.settleRecords(sp, from, to)
	for _, r := range m.between(sp, from, to) {
		if now := m.record(sp, r.path); now != nil {
			m.drop(*now, 0)
			m.giveUp(sp, r.lease)
		}
		deleted++
	}
	return deleted
}

func (m *model) drop(r modelRecord, how leasehold.How) {
	m.records = slices.DeleteFunc(m.records, func(o modelRecord) bool { return o == r })
	if shelf := m.shelf(r.sp, r.path); shelf != nil {
		m.former = append(m.former, modelVersion{r, shelf.written, shelf.holder, true})
		shelf.deleted, shelf.written, shelf.holder = m.now, 0, ""
		m.trim(*shelf)
	}
	m.event(r.sp, "deleted %s=%s %d", r.path, r.value, how)
}

func (m *model) revision(sp *modelSpace) int {
	if sp == nil {
		return m.forgottenRevision
	}
	return sp.revision
}

func (r modelRecord) text(named bool) string {
	text := fmt.Sprintf("create %d mod %d version %d token %d", r.create, r.mod, r.version, r.token)
	if named {
		text = r.path + " of " + r.session + " " + text + " lease " + r.lease
	}
	return text
}

// And what the core says, in the same words.

func recordText(r *leasehold.Record) string {
	return fmt.Sprintf("%s of %s create %d mod %d version %d token %d lease %s", r.Path, r.Session, r.Create, r.Mod, r.Version, r.Token, r.Lease)
}

func pathValue(r *leasehold.Record) string {
	if r == nil {
		return "nothing"
	}
	return r.Path + "=" + tellValue(r.Value, r.Large)
}

func txnText(t *core.TxnAnswer) string {
	text := "else"
	if t.Succeeded {
		text = "then"
	}
	text += fmt.Sprint(" ", t.Revision)
	for _, r := range t.Results {
		switch {
		case r.Record != nil:
			text += fmt.Sprintf(", create %d mod %d version %d token %d", r.Record.Create, r.Record.Mod, r.Record.Version, r.Record.Token)
		case r.Page != nil:
			text += ", got"
			for _, found := range r.Page.Records {
				text += " " + pathValue(found)
			}
			if r.Page.More {
				text += " more"
			}
			if r.Page.Count > 0 {
				text += fmt.Sprint(" of ", r.Page.Count)
			}
		case r.Lease != nil:
			text += ", " + leaseText(r.Lease)
			for _, l := range r.Also {
				text += "; " + leaseText(&l)
			}
		default:
			text += fmt.Sprintf(", %d deleted", r.Deleted)
		}
	}
	return text
}

// sameRecords compares the records that can be read, as they are and as they were at
// some of the revisions before.
func sameRecords(view core.View, m *model) error {
	compare := func(sp *modelSpace, revision int, want []modelRecord) error {
		page, failure := view.Records(sp.name, core.RecordQuery{Revision: leasehold.Revision(revision), Count: true})
		if failure != nil {
			return failure
		}
		if page.Count != len(want) {
			return fmt.Errorf("at revision %d of %s there are said to be %d records, and not %d", revision, sp.name, page.Count, len(want))
		}
		var got, expected []string
		for _, r := range page.Records {
			got = append(got, recordText(r)+"="+tellValue(r.Value, r.Large))
		}
		for _, r := range want {
			expected = append(expected, r.text(true)+"="+r.value)
		}
		if !slices.Equal(got, expected) {
			return fmt.Errorf("at revision %d of %s\n to be read: %s\n   expected: %s", revision, sp.name, strings.Join(got, "; "), strings.Join(expected, "; "))
		}
		return nil
	}
	for _, sp := range m.spaces {
		if err := compare(sp, 0, m.seen(sp, "", "")); err != nil {
			return err
		}
	}
	if err := sameVersions(view, m); err != nil {
		return err
	}
	for i := 1; i <= len(m.past); i *= 3 {
		past := m.past[len(m.past)-i]
		if err := compare(past.sp, past.revision, past.records); err != nil {
			return err
		}
	}
	return nil
}

// sameVersions compares what is kept of each record, and which large values are named.
func sameVersions(view core.View, m *model) error {
	names := map[string]bool{}
	for _, v := range m.former {
		names[v.value] = true
	}
	for _, r := range m.records {
		names[r.value] = true
	}
	for _, name := range []string{"x", "y", "z"} {
		value := fmt.Sprintf("large:%s/%d", name, 100+int(name[0]-'x'))
		if named := view.NamesLarge(leasehold.Digest{name[0]}); named != names[value] {
			return fmt.Errorf("%s is named: %v, expected %v", value, named, names[value])
		}
	}
	for _, sp := range m.spaces {
		for _, path := range []string{"a", "a/1", "a/2", "b", "c", "printer"} {
			var got []string
			list, _ := view.Versions(sp.name, path, 0, 0)
			for _, v := range list {
				got = append(got, tellVersion(v))
			}
			if want := m.tellVersions(sp, path); !slices.Equal(got, want) {
				return fmt.Errorf("%s of %s\n  is kept: %s\n expected: %s", path, sp.name, strings.Join(got, "; "), strings.Join(want, "; "))
			}
		}
	}
	return nil
}

func (m *model) tellVersions(sp *modelSpace, path string) (texts []string) {
	shelf := m.shelf(sp, path)
	list := m.versions(sp, path)
	current := ""
	if r := m.record(sp, path); r != nil {
		v := modelVersion{modelRecord: *r}
		if shelf != nil {
			v.written, v.holder = shelf.written, shelf.holder
		}
		current = ", current"
		if len(m.seen(sp, path, path+"\x00")) == 0 {
			current, v.deleted = "", true
		}
		if current != "" || shelf != nil {
			list = append(list, v)
		}
	}
	slices.Reverse(list)
	for i, v := range list {
		text := fmt.Sprintf("%d: %s, version %d", v.mod, v.value, v.version)
		if v.written != 0 {
			text += ", written at " + short(time.Duration(v.written-start))
		}
		text += when("by", v.holder)
		if v.token != 0 {
			text += fmt.Sprintf(", token %d", v.token)
		}
		text += when("session", v.session)
		if i == 0 {
			text += current
		}
		if v.deleted {
			text += ", deleted"
		}
		texts = append(texts, text)
	}
	return texts
}
