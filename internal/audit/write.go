package audit

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

// One goroutine writes the journal. It takes all that is queued at once, makes lines of it and
// appends them with one write, and syncs once a second, or at once if somebody waits for it.
// The file belongs to it alone; what readers see is published under the lock.

// run writes what is queued until the journal is closed or fails.
func (j *Journal) run() {
	defer close(j.ended)
	p := newProjector()
	p.refusals = j.refusalsOnly
	for {
		items, sync, more := j.next()
		j.since.Store(time.Now().UnixNano())
		// Odd while the disk is at work. A write that hangs shows as a number that does not
		// change.
		j.operation.Add(1)
		err := j.write(p, items)
		if err == nil && sync {
			err = j.sync()
		}
		j.operation.Add(1)
		if err != nil {
			j.end()
			j.Fail(err)
			return
		}
		j.done(items, sync)
		if !more {
			j.end()
			return
		}
	}
}

// next waits for something to do: items to write, and whether to sync after them. more is false
// with the last of it.
func (j *Journal) next() (items []item, sync, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) == 0 && !j.hurried() {
		j.awake.Wait()
	}
	if !j.hurried() {
		j.gather()
	}
	items, j.queue, j.spare, j.queued = j.queue, j.spare[:0], nil, 0
	j.changed.Broadcast() // there is room
	sync = j.due || j.wanted > j.synced || j.closing
	j.due = false
	return items, sync, !j.closing && j.failure == nil
}

// hurried reports whether there is something to do that does not wait for more.
func (j *Journal) hurried() bool {
	return j.due || j.wanted > j.synced || j.closing || j.failure != nil ||
		len(j.queue) > 0 && (j.readers > 0 || j.queued > gatherBytes)
}

// gather lets the queue grow for a moment. Who adds to it need not wake anybody meanwhile.
func (j *Journal) gather() {
	j.gathered = false
	timer := time.AfterFunc(gatherTime, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.gathered = true
		j.awake.Signal()
	})
	defer timer.Stop()
	for !j.gathered && !j.hurried() {
		j.awake.Wait()
	}
}

// done tells those who wait how far the journal has come. The slice of the items is used again
// for the next queue, unless a burst has made it large.
func (j *Journal) done(items []item, synced bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written += uint64(len(items))
	if clear(items); cap(items) <= maxSpare {
		j.spare = items
	}
	if synced {
		j.synced = j.written
	}
	j.changed.Broadcast()
}

// write makes lines of items and appends them. A line that the journal has already is passed
// over: after a restart the log is replayed from its last snapshot, which is older.
func (j *Journal) write(p *projector, items []item) error {
	b := batch{journal: j, segment: j.newest(), bytes: j.buffer[:0]}
	logged := func(l *Line) {
		if here := (mark{l.Index, l.N}); !j.has(here) {
			j.last = here
			b.add(l)
		}
	}
	for i := range items {
		if line := items[i].line; line != nil {
			if token := items[i].inTheWay; token == 0 || !p.refusedBefore(line, token) {
				b.add(line)
			}
			continue
		}
		p.lines(&items[i].entry, logged)
	}
	b.flush()
	j.buffer = b.bytes
	j.arm()
	return b.err
}

// has reports whether the journal has been to a place in the log before.
func (j *Journal) has(m mark) bool {
	return m.index < j.last.index || m.index == j.last.index && m.n <= j.last.n
}

// A batch is lines on their way to the file.
type batch struct {
	journal *Journal
	segment segment // as it will be
	bytes   []byte
	lines   uint64
	uses    uses // by these lines
	err     error
}

func (b *batch) add(l *Line) {
	if b.err != nil {
		return
	}
	before := len(b.bytes)
	b.bytes = appendFramed(b.bytes, l)
	if b.uses == nil {
		b.uses = uses{}
	}
	b.uses[l.Namespace] += int64(len(b.bytes) - before)
	b.segment.add(l)
	b.journal.filter.addLine(l)
	b.lines++
	if b.segment.size+int64(len(b.bytes)) < b.journal.segmentBytes {
		return
	}
	if b.flush(); b.err == nil {
		b.err = b.journal.rotate()
		b.segment = b.journal.newest()
	}
}

// flush appends the lines to the segment, and lets readers see them only when all of them are
// there.
func (b *batch) flush() {
	if b.err != nil || len(b.bytes) == 0 {
		return
	}
	j := b.journal
	if j.file != nil {
		b.err = j.append(b.bytes)
	} else {
		b.segment.memory = append(b.segment.memory, b.bytes...)
	}
	// append has left the file as it was, so what the batch assumed about it is taken back.
	if isNoRoom(b.err) {
		j.lose(b.lines, b.err)
		b.segment, b.bytes, b.lines, b.uses, b.err = j.newest(), b.bytes[:0], 0, nil, nil
		return
	}
	if b.err != nil {
		return
	}
	j.dirty, j.losing = true, false
	j.unsynced += b.lines
	b.segment.size += int64(len(b.bytes))
	b.segment.uses.add(b.uses)
	j.publish(b.segment, b.lines)
	b.bytes, b.lines, b.uses = b.bytes[:0], 0, nil
}

// append writes to the newest segment, all or nothing. If there is no room it drops the oldest
// segments, one after the other.
func (j *Journal) append(b []byte) error {
	return j.makingRoom(func() error {
		n, err := j.file.Write(b)
		if err == nil || n == 0 {
			return err
		}
		// Half a line would hide all that follow it.
		if cut := j.file.Truncate(j.newest().size); cut != nil {
			return cut
		}
		return err
	})
}

// makingRoom tries something until there is room for it, or nothing left to drop. Others are
// asked to make room first: old lines are gone for good.
func (j *Journal) makingRoom(do func() error) error {
	err := do()
	if isNoRoom(err) && j.config.MakeRoom != nil {
		j.config.MakeRoom()
		err = do()
	}
	for isNoRoom(err) && j.dropOldest() {
		err = do()
	}
	return err
}

func isNoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// lose counts lines for which there is no room. It logs that once, until there is room again.
func (j *Journal) lose(lines uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Lost += lines
	if !j.losing {
		j.losing = true
		j.config.Log.Error("the disk is full, and the journal loses lines until there is room", "err", err)
	}
}

// newest returns the segment that is being written.
func (j *Journal) newest() segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segments[len(j.segments)-1]
}

// publish lets readers see what was written.
func (j *Journal) publish(s segment, lines uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.segments[len(j.segments)-1] = s
	j.stats.Lines += lines
}

// rotate seals the newest segment and begins the next one. Without room for another, the newest
// just grows. The old one is synced first: an index says that its segment is whole.
func (j *Journal) rotate() error {
	if err := j.sync(); err != nil {
		return err
	}
	s, sealed, file := j.newest(), j.filter, j.file
	err := j.makingRoom(func() error { return j.begin(s.number + 1) })
	switch {
	case isNoRoom(err):
		return nil
	case err != nil:
		return err
	case file != nil:
		if err := errors.Join(file.Close(), j.writeIndex(&s, sealed)); err != nil {
			return err
		}
	}
	j.seal(&s, sealed)
	j.drop()
	return nil
}

// seal records how large the index of a full segment is; without a directory it keeps the
// filter itself.
func (j *Journal) seal(s *segment, f filter) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.segments {
		if j.segments[i].number != s.number {
			continue
		}
		j.segments[i].indexSize = indexSize(s, f)
		if j.config.Dir == "" {
			j.segments[i].filter = f
		}
	}
}

// writeIndex puts the index of a full segment beside it, if there is room.
func (j *Journal) writeIndex(s *segment, f filter) error {
	err := writeIndex(j.config.Dir, s, f)
	if isNoRoom(err) {
		return nil // the next start makes it again
	}
	return err
}

// begin makes a segment. Its name is durable before anything in it counts as synced: a file
// that was synced in a directory that was not may be gone after a crash.
func (j *Journal) begin(number uint64) error {
	s := segment{number: number, size: int64(len(segmentMagic)), uses: uses{}}
	if j.config.Dir == "" {
		s.memory = []byte(segmentMagic)
	} else {
		f, err := newSegment(j.config.Dir, number)
		if err != nil {
			return err
		}
		j.file = f
	}
	j.filter = make(filter, filterBytes(j.segmentBytes))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.segments = append(j.segments, s)
	return nil
}

// newSegment makes the file of a segment, or leaves nothing behind: half of one would be in the
// way of the next attempt.
func newSegment(dir string, number uint64) (*os.File, error) {
	name := segmentName(dir, number)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = f.WriteString(segmentMagic); err == nil {
		err = errors.Join(f.Sync(), syncDir(dir))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(name))
	}
	return f, nil
}

// drop makes room until the newest segment can grow to its full size.
func (j *Journal) drop() {
	for j.isOver() && (j.dropLoudest() || j.dropOldest()) {
	}
}

func (j *Journal) isOver() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.total()+j.segmentBytes-j.segments[len(j.segments)-1].size > j.config.Bytes
}

// dropOldest removes the oldest segment, unless that is being written.
func (j *Journal) dropOldest() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segments) < 2 {
		return false
	}
	j.remove(0)
	return true
}

// remove removes a segment. The caller has the lock.
func (j *Journal) remove(at int) {
	number := j.segments[at].number
	j.segments = slices.Delete(j.segments, at, at+1)
	delete(j.spoilt, number)
	j.stats.Dropped++
	if j.config.Dir == "" {
		return
	}
	for _, name := range []string{segmentName(j.config.Dir, number), indexName(j.config.Dir, number)} {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			j.config.Log.Warn("an old segment of the journal could not be removed", "err", err)
		}
	}
}

// arm makes sure that what was written is synced before long.
func (j *Journal) arm() {
	if j.timer != nil || !j.dirty {
		return
	}
	j.timer = time.AfterFunc(syncEvery, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.due = true
		j.awake.Signal()
	})
}

func (j *Journal) sync() error {
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	if !j.dirty {
		return nil
	}
	unsynced := j.unsynced
	j.dirty, j.unsynced = false, 0
	if j.file == nil {
		return nil
	}
	err := j.file.Sync()
	if isNoRoom(err) {
		// Some file systems find out only now. What became of the lines nobody can tell.
		j.dropOldest()
		j.lose(unsynced, err)
		return nil
	}
	return err
}

// end lets go of the file.
func (j *Journal) end() {
	if j.file != nil {
		_ = j.file.Close() // all of it is synced, or else in the log
	}
}
