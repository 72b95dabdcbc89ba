package sim

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// Disasters: all servers are lost, and a new cluster begins with a backup. Clients and watchers
// carry on with what they knew of the lost cluster, and must not be misled by the new one.

// Disasters say how often all servers are lost, and a new cluster begins with a backup.
type Disasters struct {
	Every      time.Duration // on average; 0: never
	Backup     time.Duration // how often one is taken
	Quarantine time.Duration // at least as long as anybody believes
}

// A backup is the state of a server at a place in the log, with what the witness knew then.
type backup struct {
	index, term uint64
	state       []byte
	roster      *replica.Roster
	witness     *witness
	events      map[string][]*leasehold.Event
}

// backUp takes a backup of a server that has everything. The one before is kept too.
func (w *World) backUp() {
	if w.quiet {
		return
	}
	w.after(w.upTo(2*w.Disasters.Backup), w.backUp)
	for _, s := range w.servers {
		if s.node == nil || s.node.Statistics().Applied != w.truth.end || w.truth.end == 0 {
			continue
		}
		b := &backup{index: w.truth.end, term: s.disk.term(w.truth.end), roster: s.node.Roster()}
		if b.term == 0 {
			continue
		}
		b.state = s.disk.encode(b.index, s.node.State().Freeze())
		b.witness, b.events = w.truth.witness.clone(), maps.Clone(w.truth.events)
		w.backups = append(w.backups, b)
		w.backups = w.backups[max(0, len(w.backups)-2):]
		w.count("backups")
		return
	}
}

// term returns the term of a durable entry; 0: it is not there.
func (d *disk) term(index uint64) (term uint64) {
	for _, r := range d.log {
		if r.entry != nil && r.entry.GetIndex() == index {
			term = r.entry.GetTerm()
		}
		if r.mark != nil && r.mark.GetIndex() == index {
			term = r.mark.GetTerm()
		}
	}
	return term
}

// disaster loses all servers for good. A new cluster begins with a backup; clients go on
// with it, and do not know.
func (w *World) disaster() {
	if w.quiet {
		return
	}
	w.after(w.between(w.Disasters.Every/2, 3*w.Disasters.Every/2), w.disaster)
	if len(w.backups) == 0 {
		return
	}
	b := w.backups[w.random.IntN(len(w.backups))]
	w.tell("all servers are lost; a backup of %d is restored", b.index)
	w.count("restores")
	for _, s := range slices.Clone(w.servers) {
		s.retire()
	}
	s := newServer(w, 0)
	s.id, s.founder = w.freshID(), false
	w.servers, w.byID[s.id] = append(w.servers, s), s
	// What happened to the registers so far is judged now: after the restore some of it is
	// undone.
	w.history.check()
	if !w.load(s, b) {
		return
	}
	for _, c := range w.clients {
		c.at, c.busy = s, 0
		if c.grip != nil {
			c.grip.former = true
		}
	}
	for _, x := range w.watchers {
		x.restart(b)
	}
	w.after(w.between(100*time.Millisecond, 3*time.Second), s.start)
}

// freshID is an id that no server had.
func (w *World) freshID() (id uint64) {
	for known := range w.byID {
		id = max(id, known+1)
	}
	return id
}

// load puts what a restore makes of a backup on the disk of a server, as a snapshot that
// its log goes on from.
func (w *World) load(s *server, b *backup) bool {
	state, _, err := wire.ReadSnapshotUpTo(s.levels.Newest, bytes.NewReader(b.state))
	if err != nil {
		w.violated("a backup cannot be read: %v", err)
		return false
	}
	// The operator knows the largest token or revision that anybody saw: the same backup may
	// have been restored before.
	above := uint64(0)
	for _, token := range w.truth.ever {
		above = max(above, uint64(token))
	}
	for _, revision := range w.truth.witness.revisions {
		above = max(above, uint64(revision))
	}
	if _, err := state.FromBackup(core.Restoration{Quarantine: w.Disasters.Quarantine, Above: above}); err != nil {
		w.violated("a backup cannot be restored: %v", err)
		return false
	}
	roster := &replica.Roster{Cluster: "restored", Next: s.id + 1, Members: []replica.Member{s.member()}}
	roster.Members[0].Voter = true
	w.truth = w.truth.after(b, roster)
	w.truth.witness.restore(above, w.Disasters.Quarantine)
	w.history.restart(w.truth.witness)
	w.epoch++
	s.disk.files[b.index] = file{s.disk.encode(b.index, state), roster}
	s.disk.log = []record{
		{mark: &walpb.Snapshot{Index: &b.index, Term: &b.term, ConfState: &raftpb.ConfState{Voters: []uint64{s.id}}}},
		{hard: &raftpb.HardState{Term: &b.term, Vote: new(uint64(0)), Commit: &b.index}},
	}
	state.Larges(func(l leasehold.Large) bool {
		s.disk.values[l.SHA256] = true
		return true
	})
	return true
}

// after is what is true of a cluster that begins with a backup. What the other one came to
// since then is forgotten, but for what clients still have of it.
func (t *truth) after(b *backup, roster *replica.Roster) *truth {
	next := newTruth(t.world)
	next.attempts, next.made, next.guards, next.ever, next.gaps = t.attempts, t.made, t.guards, t.ever, t.gaps
	next.end, next.witness = b.index, b.witness.clone()
	for space, events := range b.events {
		// Only one gap in the revisions is remembered: what is older is gone.
		next.events[space] = slices.DeleteFunc(slices.Clone(events), func(e *leasehold.Event) bool {
			return e.Revision <= leasehold.Revision(b.witness.restored.base)
		})
	}
	next.members.newest, next.members.ids = roster, t.members.ids
	next.members.indexes, next.members.rosters = []uint64{b.index}, []string{describe(roster)}
	return next
}

// clone returns a copy that stays as it is. Promises and lives are shared between several maps,
// and must be shared in the copy in the same way.
func (t *witness) clone() *witness {
	c := *t
	lives := map[*life]*life{}
	live := func(l *life) *life {
		if l == nil {
			return nil
		}
		if lives[l] == nil {
			lives[l] = new(*l)
		}
		return lives[l]
	}
	promises := map[*promise]*promise{}
	same := func(p *promise) *promise {
		if promises[p] == nil {
			copied := *p
			copied.session = live(p.session)
			promises[p] = &copied
		}
		return promises[p]
	}
	c.claims, c.byToken = map[spot]*promise{}, map[grant]*promise{}
	c.sessions, c.places = map[spot]*life{}, map[spot]*place{}
	for at, p := range t.claims {
		c.claims[at] = same(p)
	}
	for at, p := range t.byToken {
		c.byToken[at] = same(p)
	}
	for at, l := range t.sessions {
		c.sessions[at] = live(l)
	}
	for at, p := range t.places {
		copied := &place{rests: slices.Clone(p.rests), agreed: p.agreed}
		for _, o := range p.holders {
			copied.holders = append(copied.holders, same(o))
		}
		for _, o := range p.queue {
			copied.queue = append(copied.queue, same(o))
		}
		c.places[at] = copied
	}
	c.defined, c.tokens = maps.Clone(t.defined), maps.Clone(t.tokens)
	c.revised = maps.Clone(t.revised)
	c.revisions, c.once = maps.Clone(t.revisions), maps.Clone(t.once)
	c.withdrawn = map[spot]*life{}
	for at, l := range t.withdrawn {
		c.withdrawn[at] = live(l)
	}
	c.faces = t.faces.Clone()
	c.subjects = t.subjects.clone()
	c.writings = newWritings()
	c.writings.records, c.writings.named = maps.Clone(t.writings.records), maps.Clone(t.writings.named)
	return &c
}

// restored is what a witness knows of a restore.
type restored struct {
	base       leasehold.Token // nothing is granted at or below it; 0: there was none
	quarantine time.Duration
	resumes    core.Time // nothing is granted before; 0: nobody has led yet
	resumed    bool      // there was a tick after that
}

// restoredStep is what tokens after a restore are a multiple of. It is written down again here
// and not taken from the core, so that a change there is noticed.
const restoredStep = 1 << 40

// restore says that a cluster begins with what was witnessed.
func (t *witness) restore(above uint64, quarantine time.Duration) {
	known := max(above, uint64(t.restored.base))
	for _, token := range t.tokens {
		known = max(known, uint64(token))
	}
	for _, revision := range t.revisions {
		known = max(known, uint64(revision))
	}
	t.restored = restored{base: leasehold.Token((known/restoredStep + 1) * restoredStep), quarantine: quarantine}
}

// leads counts the quarantine from the first who leads.
func (t *witness) leads(c core.Command) {
	r := &t.restored
	if _, ok := c.(*core.Lead); ok && r.base != 0 && r.resumes == 0 {
		r.resumes = t.now + core.Time(r.quarantine)
	}
}

// quarantined reports whether nothing may be granted yet.
func (t *witness) quarantined() bool {
	r := &t.restored
	return r.base != 0 && (r.resumes == 0 || t.now < r.resumes)
}

// resuming reports whether those who wait may not have been noticed yet.
func (t *witness) resuming(tick bool) bool {
	r := &t.restored
	if r.base == 0 {
		return false
	}
	r.resumed = r.resumed || tick && !t.quarantined()
	return !r.resumed
}

// restart begins a history anew, with what the registers have by a backup.
func (h *history) restart(t *witness) {
	h.ops = nil
	for n := range h.begins {
		h.begins[n] = ""
		if r := t.writings.records[registerAt(n)]; r != nil {
			h.begins[n] = r.Value
		}
	}
}

// restart lets a watcher begin anew, once it has tried to go on: what it saw behind the
// backup never happened here, and it must be told so.
func (x *watcher) restart(b *backup) {
	if x.revision > b.witness.revisions[x.space] {
		x.lost = position{x.revision, x.n}
	}
	// What one restore lost may be in the backup of the next: that may be older than the restore.
	if slices.ContainsFunc(b.events[x.space], func(e *leasehold.Event) bool {
		return position{e.Revision, e.N} == x.lost
	}) {
		x.lost = position{}
	}
	x.at, x.revision, x.n, x.seen = nil, leasehold.Revision(b.witness.restored.base), 0, 0
	x.tries++
}

// A position is one event's place in a namespace.
type position struct {
	revision leasehold.Revision
	n        uint32
}
