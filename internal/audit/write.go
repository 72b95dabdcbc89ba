package audit

import (
	"errors"
	"os"
	"slices"
	"time"
)

// run writes what is queued until the journal is closed or fails.
func (j *Journal) run() {
	defer close(j.ended)
	p := newProjector()
	p.refusals = j.refusalsOnly
	for {
		items, sync, more := j.next()
		j.since.Store(time.Now().UnixNano())
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

// next waits for something to do: items to write, and whether to sync after them. It
// returns false with the last of it.
func (j *Journal) next() (items []item, sync, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) == 0 && !j.due && j.wanted <= j.synced && !j.closing && j.failure == nil {
		j.changed.Wait()
	}
	items, j.queue, j.spare, j.queued = j.queue, j.spare[:0], nil, 0
	j.changed.Broadcast() // there is room
	sync = j.due || j.wanted > j.synced || j.closing
	j.due = false
	return items, sync, !j.closing && j.failure == nil
}

// done tells whoever waits how far the journal has come.
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

// write makes lines of items and appends them.
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

// has tells whether a line came from a place in the log that the journal has been to.
func (j *Journal) has(m mark) bool {
	return m.index < j.last.index || m.index == j.last.index && m.n <= j.last.n
}

// A batch is lines on their way to the file.
type batch struct {
	journal *Journal
	segment segment // as it will be
	bytes   []byte
	lines   uint64
	err     error
}

func (b *batch) add(l *Line) {
	if b.err != nil {
		return
	}
	b.bytes = appendFramed(b.bytes, l)
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

// flush appends what there is to the segment.
func (b *batch) flush() {
	if b.err != nil || len(b.bytes) == 0 {
		return
	}
	j := b.journal
	if j.file != nil {
		_, b.err = j.file.Write(b.bytes)
	} else {
		b.segment.memory = append(b.segment.memory, b.bytes...)
	}
	if b.err != nil {
		return
	}
	j.dirty = true
	b.segment.size += int64(len(b.bytes))
	j.publish(b.segment, b.lines)
	b.bytes, b.lines = b.bytes[:0], 0
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

// rotate seals the newest segment and begins the next one.
func (j *Journal) rotate() error {
	if err := j.sync(); err != nil {
		return err
	}
	s := j.newest()
	if j.file == nil {
		s.filter = j.filter
		j.publish(s, 0)
	} else if err := errors.Join(j.file.Close(), writeIndex(j.config.Dir, &s, j.filter)); err != nil {
		return err
	}
	if err := j.begin(s.number + 1); err != nil {
		return err
	}
	j.drop()
	return nil
}

// begin makes a segment. Its name is durable before anything in it counts as synced.
func (j *Journal) begin(number uint64) error {
	s := segment{number: number, size: int64(len(segmentMagic))}
	j.filter = make(filter, filterBytes(j.segmentBytes))
	if j.config.Dir == "" {
		s.memory = []byte(segmentMagic)
	} else {
		f, err := os.OpenFile(segmentName(j.config.Dir, number), os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		j.file = f
		if _, err := f.WriteString(segmentMagic); err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), syncDir(j.config.Dir)); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.segments = append(j.segments, s)
	return nil
}

// drop removes the oldest segments until the newest has room to grow to its full size.
func (j *Journal) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.segments) > 1 && j.total()+j.segmentBytes-j.segments[len(j.segments)-1].size > j.config.Bytes {
		oldest := j.segments[0].number
		j.segments = slices.Delete(j.segments, 0, 1)
		delete(j.spoilt, oldest)
		j.stats.Dropped++
		if j.config.Dir == "" {
			continue
		}
		for _, name := range []string{segmentName(j.config.Dir, oldest), indexName(j.config.Dir, oldest)} {
			if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
				j.config.Log.Warn("an old segment of the journal could not be removed", "err", err)
			}
		}
	}
}

// arm has what was written synced before long.
func (j *Journal) arm() {
	if j.timer != nil || !j.dirty {
		return
	}
	j.timer = time.AfterFunc(syncEvery, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.due = true
		j.changed.Broadcast()
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
	j.dirty = false
	if j.file == nil {
		return nil
	}
	return j.file.Sync()
}

// end lets go of the file.
func (j *Journal) end() {
	if j.file != nil {
		_ = j.file.Close() // all of it is synced, or else in the log
	}
}
