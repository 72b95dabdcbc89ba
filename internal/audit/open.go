package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Opening a journal finds out how far it has come. The log is the truth: what is missing at the
// end of the journal is written again when the log is replayed, so a torn end is cut off and
// not repaired.

// open reads what is there, and leaves the newest segment ready for more.
func (j *Journal) open() error {
	if j.config.Dir == "" {
		return j.begin(1)
	}
	if err := os.MkdirAll(j.config.Dir, 0o700); err != nil {
		return fmt.Errorf("the journal %s cannot be made: %w", j.config.Dir, err)
	}
	numbers, err := segmentNumbers(j.config.Dir)
	if err == nil {
		err = removeUnfinished(j.config.Dir)
	}
	if err != nil {
		return fmt.Errorf("the journal %s cannot be read: %w", j.config.Dir, err)
	}
	for i, number := range numbers {
		s, err := j.openSegment(number, i == len(numbers)-1)
		if err != nil {
			return fmt.Errorf("the journal cannot be opened: %w", err)
		}
		j.segments = append(j.segments, *s)
		if s.index > j.last.index || s.index == j.last.index && s.n > j.last.n {
			j.last = mark{s.index, s.n}
		}
	}
	// The journal knows of entries that the log does not have, so the log was replaced. To wait
	// until the new log comes to that index would leave everything up to there out of the
	// journal.
	if j.last.index > j.config.End {
		j.config.Log.Warn("the journal is ahead of the log, which may have been replaced: it goes on from here",
			"journal", j.last.index, "log", j.config.End)
		j.last = mark{}
	}
	if j.fresh = len(numbers) == 0; j.fresh {
		return errors.Join(syncDir(filepath.Dir(j.config.Dir)), j.begin(1))
	}
	j.drop()
	return nil
}

// openSegment finds out what is in a segment: from its index, or by reading it. The newest
// segment has no index yet, and is the only one that a crash can have torn.
func (j *Journal) openSegment(number uint64, newest bool) (*segment, error) {
	name := segmentName(j.config.Dir, number)
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !newest {
		if s, _, err := readIndex(j.config.Dir, number, info.Size()); err == nil {
			return s, nil
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s, f := &segment{number: number, size: info.Size(), uses: uses{}}, make(filter, filterBytes(j.segmentBytes))
	good := int64(eachLine(b, func(_ int, text string) bool {
		var l Line
		if decodeLine(text, &l) == nil {
			s.add(&l)
			s.use(&l, len(text))
			f.addLine(&l)
		}
		return true
	}))
	// The newest goes on; of any other, what cannot be read is damage, since it was whole and
	// synced once.
	if newest {
		j.filter = f
		return s, j.reopen(s, good)
	}
	if good < s.size {
		j.damaged(number, good, s.size)
	}
	return s, j.writeIndex(s, f)
}

// reopen continues the newest segment after its last whole line. What a crash tore there is
// still in the log, and will be written again.
func (j *Journal) reopen(s *segment, good int64) (err error) {
	j.file, err = os.OpenFile(segmentName(j.config.Dir, s.number), os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if good < s.size {
		j.config.Log.Warn("the journal's end was torn and is cut", "segment", s.number, "bytes", s.size-good)
		if err := j.file.Truncate(good); err != nil {
			return err
		}
	}
	if s.size = good; good == 0 {
		_, err = j.file.WriteString(segmentMagic)
		s.size = int64(len(segmentMagic))
	}
	return errors.Join(err, j.file.Sync())
}

// damaged reports, once for each segment, that it cannot be read to its end. The journal goes
// on: what is readable of it is still worth having.
func (j *Journal) damaged(number uint64, good, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spoilt[number] {
		return
	}
	j.spoilt[number] = true
	j.stats.Damaged++
	j.config.Log.Error("a segment of the journal is damaged: the rest of it is passed over", "segment",
		segmentName(j.config.Dir, number), "at", good, "lost_bytes", size-good)
}

// read returns the bytes of a segment as they were when it was asked for.
func (j *Journal) read(s *segment) ([]byte, error) {
	if j.config.Dir == "" {
		return s.memory[:s.size], nil
	}
	f, err := os.Open(segmentName(j.config.Dir, s.number))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, s.size)
	n, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil // what is missing is found by who looks for lines
	}
	return b[:n], err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
