package audit

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// The journal is bounded for all namespaces together. When it is full, the namespace that has
// most of it loses its oldest lines: a loud one pushes out its own past and nobody else's.
// Such lines are taken out of their segment, which stays in its place; a gap says how many
// bytes they had, so that the places of all others are as they were.

// A gap stands where lines were taken out: the mark, and the bytes that they had.
const (
	gapMark  = 1 << 31
	gapBytes = lineHead
)

func appendGap(b []byte, size int) []byte {
	b = binary.LittleEndian.AppendUint32(b, gapMark)
	return binary.LittleEndian.AppendUint32(b, uint32(size))
}

// uses is how many bytes the lines of each namespace have.
type uses map[string]int64

// add counts what others have, too. Only the writer looks at it.
func (u uses) add(more uses) {
	for namespace, bytes := range more {
		u[namespace] += bytes
	}
}

// loudest returns the namespace that has most of the journal, among those that have something
// in full segments; false if there is none. Of several the first by name is taken. The caller
// holds the lock.
func (j *Journal) loudest() (string, bool) {
	all := uses{}
	for _, s := range j.segments[:len(j.segments)-1] {
		for namespace, bytes := range s.uses {
			all[namespace] += bytes
		}
	}
	newest := j.segments[len(j.segments)-1].uses
	found, most := "", int64(0)
	for _, namespace := range slices.Sorted(maps.Keys(all)) {
		if bytes := all[namespace] + newest[namespace]; bytes > most {
			found, most = namespace, bytes
		}
	}
	return found, most > 0
}

// dropLoudest takes the oldest lines of the loudest namespace out of the journal, those of one
// segment, and reports whether it could. A segment that has nothing else is removed as a whole.
func (j *Journal) dropLoudest() bool {
	j.mu.Lock()
	namespace, found := j.loudest()
	full := j.segments[:len(j.segments)-1] // the newest is being written
	at := slices.IndexFunc(full, func(s segment) bool { return s.uses[namespace] > 0 })
	if !found || at < 0 {
		j.mu.Unlock()
		return false
	}
	s := full[at]
	if len(s.uses) == 1 {
		j.remove(at)
		j.dropped[namespace] = spot{s.number, math.MaxInt64}
		j.mu.Unlock()
		return true
	}
	// The lock is given up for the disk. Only the writer changes full segments, and this is the
	// writer.
	j.mu.Unlock()
	if err := j.thin(s, namespace); err != nil {
		j.config.Log.Warn("a segment of the journal could not be made smaller", "err", err)
		return false
	}
	return true
}

// thin takes the lines of a namespace out of a full segment. It writes a new file and renames
// it, so that a crash leaves one or the other.
func (j *Journal) thin(s segment, namespace string) error {
	b, err := j.read(&s)
	if err != nil {
		return err
	}
	out, last := thinned(b, namespace)
	after := segment{number: s.number, size: int64(len(out)), uses: uses{}}
	f := make(filter, filterBytes(after.size))
	eachLine(out, func(_ int, text string) bool {
		var l Line
		if decodeLine(text, &l) == nil {
			after.add(&l)
			after.use(&l, len(text))
			f.addLine(&l)
		}
		return true
	})
	after.index, after.n = s.index, s.n // it has been there
	if j.config.Dir == "" {
		after.memory, after.filter = out, f
	} else if err := replaceSegment(j.config.Dir, s.number, out); err != nil {
		return err
	} else if err := j.writeIndex(&after, f); err != nil {
		return err
	}
	after.indexSize = indexSize(&after, f)
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.segments {
		if j.segments[i].number == s.number {
			j.segments[i] = after
		}
	}
	j.dropped[namespace] = spot{s.number, int64(last)}
	j.stats.Thinned++
	return nil
}

// thinned returns a segment without the lines of a namespace, and where the last of them was.
func thinned(b []byte, namespace string) (out []byte, last int) {
	out = []byte(segmentMagic)
	end := len(segmentMagic) // of what out has, as places count
	eachLine(b, func(at int, text string) bool {
		var l Line
		if decodeLine(text, &l) == nil && l.Namespace == namespace {
			last = at
			return true
		}
		if at > end {
			out = appendGap(out, at-end)
		}
		out = appendFrame(out, text)
		end = at + lineHead + len(text)
		return true
	})
	return out, last
}

const unfinished = ".new"

// removeUnfinished removes what replaceSegment left when the server ended in it.
func removeUnfinished(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix+unfinished))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// droppedAfter reports whether lines of a namespace were dropped that come after a spot: then a
// reader at that spot has missed something.
func (j *Journal) droppedAfter(namespace string, at spot) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.dropped[namespace]
	return last.segment > at.segment || last.segment == at.segment && last.offset > at.offset
}

// isAsRead reports whether a segment is still as it was when somebody began to read it. If not,
// it was thinned in between, and what looks like damage is none.
func (j *Journal) isAsRead(s *segment) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.segments, func(now segment) bool {
		return now.number == s.number &&
			now.size == s.size
	})
}

// replaceSegment replaces the bytes of a segment, all or nothing. The index goes before the
// rename: one that belongs to the old bytes must never be beside the new ones.
func replaceSegment(dir string, number uint64, b []byte) error {
	name := segmentName(dir, number)
	temporary := name + unfinished
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		// What stands beside it would be of another file.
		if err = os.Remove(indexName(dir, number)); os.IsNotExist(err) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return syncDir(dir)
}
