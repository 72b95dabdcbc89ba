package sim

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// A disk keeps what was synced. Of a write in flight when the machine loses power, it keeps
// some beginning or nothing, as real disks do.
type disk struct {
	server *server
	dir    string // its name

	log   []record        // durable
	files map[uint64]file // durable states, by their index

	values map[leasehold.Digest]bool // large ones, durable

	writing []*write      // in flight, first come first served
	slow    time.Duration // until when each write takes long
	stall   time.Duration // how long the next write takes
	broken  bool          // writes fail from now on
	idle    time.Duration // when the writes in flight are done
}

// A record is what one write to the log holds: a hard state, an entry, or the mark of a
// snapshot.
type record struct {
	hard  *raftpb.HardState
	entry *raftpb.Entry
	mark  *walpb.Snapshot
}

// A file is a state, with the roster in its head.
type file struct {
	state  []byte
	roster *replica.Roster
}

type write struct {
	records []record
	life    int
}

func newDisk(s *server) *disk {
	return &disk{server: s, dir: fmt.Sprintf("%x", s.world.random.Uint64()), files: map[uint64]file{},
		values: map[leasehold.Digest]bool{}}
}

func (d *disk) world() *World { return d.server.world }

// Write begins to make something durable.
func (d *disk) Write(w replica.Write) {
	var records []record
	if w.Snapshot != nil {
		records = append(records, record{mark: w.Snapshot})
	}
	for _, e := range w.Entries {
		records = append(records, record{entry: e})
	}
	if w.Hard != nil {
		records = append(records, record{hard: w.Hard})
	}
	x := &write{records, d.server.life}
	d.writing = append(d.writing, x)
	// One after the other, should a node not wait for the first.
	took := max(0, d.idle-d.world().now) + d.takes()
	d.idle = d.world().now + took
	if took >= replica.SlowWrite {
		d.later(x, replica.SlowWrite, func() { d.server.deliver(edge, replica.Stalled{}) })
	}
	// A write that has not returned by now may still reach the disk later. The node must stop,
	// because it can no longer say what is durable.
	if took >= replica.StalledWrite {
		d.later(x, replica.StalledWrite, func() {
			d.server.doomed = true
			d.server.deliver(edge, replica.Written{Err: errors.New("a write has not returned")})
		})
	}
	d.later(x, took, func() { d.written(x) })
}

// later does something for a write, if its process still lives and waits for it.
func (d *disk) later(x *write, after time.Duration, do func()) {
	d.world().after(after, func() {
		if d.server.life == x.life && d.server.node != nil {
			do()
		}
	})
}

// takes returns how long the next write takes.
func (d *disk) takes() time.Duration {
	w := d.world()
	if stall := d.stall; stall > 0 {
		d.stall = 0
		return stall
	}
	if d.slow > w.now {
		return w.upTo(700 * time.Millisecond)
	}
	return w.between(100*time.Microsecond, 2*time.Millisecond)
}

// written ends the first write in flight. A disk that breaks has kept some beginning of it, so
// a node that went on after the error could contradict what it finds after a restart.
func (d *disk) written(x *write) {
	if d.server.doomed {
		return // nobody waits for it now
	}
	d.writing = d.writing[1:]
	if d.broken {
		d.keep(x.records[:d.world().random.IntN(len(x.records)+1)])
		d.server.doomed = true
		d.server.deliver(edge, replica.Written{Err: errors.New("input/output error")})
		return
	}
	d.keep(x.records)
	d.server.deliver(edge, replica.Written{})
}

func (d *disk) keep(records []record) {
	d.log = append(d.log, records...)
	for _, r := range records {
		if r.mark != nil {
			d.purge()
		}
	}
}

// purge removes what only a start from before the last two snapshots would need.
func (d *disk) purge() {
	var marks []uint64
	for _, r := range d.log {
		if r.mark != nil {
			marks = append(marks, r.mark.GetIndex())
		}
	}
	if len(marks) < 2 {
		return
	}
	older := marks[len(marks)-2]
	var kept []record
	var hard record
	for _, r := range d.log {
		switch {
		case r.hard != nil:
			hard = r
		case r.entry != nil && r.entry.GetIndex() > older, r.mark != nil && r.mark.GetIndex() >= older:
			kept = append(kept, r)
		}
	}
	if hard.hard != nil {
		kept = append(kept, hard)
	}
	d.log = kept
	for index := range d.files {
		if index < older {
			delete(d.files, index)
		}
	}
}

// Save begins to make a state durable. It is encoded only when that is done, long after the
// node went on: if the frozen state were not frozen, what is applied in the meantime would
// show.
func (d *disk) Save(s replica.Snapshot) {
	life, w := d.server.life, d.world()
	took := w.between(time.Millisecond, 100*time.Millisecond)
	if d.slow > w.now {
		took += w.upTo(5 * time.Second)
	}
	w.after(took, func() {
		if d.server.life != life || d.server.node == nil {
			return
		}
		if d.broken {
			d.server.doomed = true
			d.server.deliver(edge, replica.Saved{Err: errors.New("input/output error")})
			return
		}
		if d.server.low > w.now {
			w.count("snapshots without room")
			d.server.deliver(edge, replica.Saved{Err: replica.ErrNoRoom})
			return
		}
		// The node has applied more by now. If the state it gave away were not frozen, the
		// checksum would differ from that of other servers at this index.
		encoded := d.encode(s.Index, s.State)
		w.truth.rostered(d.server, s.Index, s.Roster)
		d.files[s.Index] = file{encoded, s.Roster}
		w.count("snapshots")
		size := int64(len(encoded))
		if w.Faults.Eager {
			size = 1
		}
		d.server.deliver(edge, replica.Saved{Bytes: size})
	})
}

func (d *disk) encode(index uint64, state *core.State) []byte {
	var b bytes.Buffer
	summary, err := wire.WriteSnapshot(&b, state)
	if err != nil {
		d.world().violated("a snapshot cannot be encoded: %v", err)
	}
	d.world().truth.hashed(d.server, index, summary.Checksum)
	return b.Bytes()
}

// knows returns how far the disk has recorded that the log is committed.
func (d *disk) knows() (index uint64) {
	for _, r := range d.log {
		if r.hard != nil {
			index = max(index, r.hard.GetCommit())
		}
		if r.mark != nil {
			index = max(index, r.mark.GetIndex())
		}
	}
	return index
}

// last returns the index of the last entry that is durable.
func (d *disk) last() (index uint64) {
	for _, r := range d.log {
		if r.entry != nil {
			index = r.entry.GetIndex()
		}
		if r.mark != nil {
			index = max(index, r.mark.GetIndex())
		}
	}
	return index
}

// losePower forgets what was not synced; of what was in flight a beginning may stay.
func (d *disk) losePower() {
	if len(d.writing) > 0 {
		records := d.writing[0].records
		d.keep(records[:d.world().random.IntN(len(records)+1)])
	}
	d.writing, d.broken, d.stall, d.idle = nil, false, 0, 0
}

// found is what a start finds on the disk.
type found struct {
	storage *raft.MemoryStorage
	state   *core.State
	roster  *replica.Roster
	applied uint64
	begun   bool
}

// read recovers what is on the disk, as the real one is recovered.
func (d *disk) read() (found, error) {
	start, state, roster := &walpb.Snapshot{}, core.New(), &replica.Roster{Cluster: "simulated"}
	for _, r := range d.log {
		if r.mark == nil {
			continue
		}
		if start = r.mark; d.files[start.GetIndex()].state == nil {
			return found{}, errors.New("a state that the log knows of is not there")
		}
	}
	if start.GetIndex() > 0 {
		read, summary, err := wire.ReadSnapshotUpTo(d.server.levels.Newest,
			bytes.NewReader(d.files[start.GetIndex()].state))
		if err != nil {
			return found{}, err
		}
		state, roster = read, d.files[start.GetIndex()].roster
		d.world().truth.hashed(d.server, start.GetIndex(), summary.Checksum)
		d.world().truth.rostered(d.server, start.GetIndex(), roster)
	}
	hard, entries := d.after(start.GetIndex())
	storage, err := replica.NewStorage(start, hard, entries)
	return found{storage, state, roster, start.GetIndex(), len(d.log) > 0}, err
}

// after reads the log after an index, as etcd's wal does: a later entry for an index replaces
// the earlier one and everything after it.
func (d *disk) after(index uint64) (*raftpb.HardState, []*raftpb.Entry) {
	hard := &raftpb.HardState{}
	var entries []*raftpb.Entry
	for _, r := range d.log {
		if r.hard != nil {
			hard = &raftpb.HardState{Term: new(r.hard.GetTerm()), Vote: new(r.hard.GetVote()),
				Commit: new(r.hard.GetCommit())}
		}
		if r.entry != nil && r.entry.GetIndex() > index {
			at := r.entry.GetIndex() - index - 1
			entries = append(entries[:min(int(at), len(entries))], r.entry)
		}
	}
	// A commit index beyond the entries was never true of this log.
	return hard, entries
}
