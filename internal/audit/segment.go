package audit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A segment is one file of the journal: a head, and then lines, each behind its length
// and its checksum. Beside a segment that is full there is an index, by which a search
// knows whether it has to look into the segment. An index that is missing or damaged is
// made again; nothing depends on it but time.
const (
	segmentSuffix = ".journal"
	indexSuffix   = ".index"
	segmentMagic  = "LHJOURN1"
	indexMagic    = "LHJINDX2"
	lineHead      = 8 // length and CRC-32C of a line, four bytes each, lowest first

	// maxLine is more than a line can have: a length beyond it is damage.
	maxLine = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame writes the bytes of a line behind their length and checksum.
func appendFrame(b []byte, line string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(line)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum([]byte(line), castagnoli))
	return append(b, line...)
}

// appendFramed writes a line behind its length and checksum, in place and without a copy of it.
func appendFramed(b []byte, l *Line) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = appendLine(b, l)
	line := b[start+lineHead:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(line)))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(line, castagnoli))
	return b
}

// eachLine calls fn with each line of a segment and its place, until fn returns false. It
// returns how far the segment is good; what follows is torn or damaged. Places count the bytes
// that were taken out before them, so a line has the same place for ever, and a reader that
// pages through the journal goes on where it was.
func eachLine(b []byte, fn func(at int, line string) bool) (good int) {
	if len(b) < len(segmentMagic) || string(b[:len(segmentMagic)]) != segmentMagic {
		return 0
	}
	all := string(b) // lines are parts of it
	good = len(segmentMagic)
	gone := 0 // bytes that were taken out
	for len(b)-good >= lineHead {
		size := int(binary.LittleEndian.Uint32(b[good:]))
		from := good + lineHead
		if size == gapMark {
			gone += int(binary.LittleEndian.Uint32(b[good+4:])) - gapBytes
			good = from
			continue
		}
		// After a wrong length nobody knows where the next line begins, so nothing behind it is
		// read.
		if size > maxLine || size > len(b)-from {
			return good
		}
		if crc32.Checksum(b[from:from+size], castagnoli) != binary.LittleEndian.Uint32(b[good+4:]) {
			return good
		}
		if !fn(good+gone, all[from:from+size]) {
			return good
		}
		good = from + size
	}
	return good
}

// A segment is what is known of one file of the journal.
type segment struct {
	number uint64
	size   int64
	summary
	filter filter // of a full segment in memory; that of a file is in its index
	memory []byte // of a journal without a directory
	uses   uses   // by its lines

	indexSize int64 // bytes of its index, as far as it has one; 0: as those of a full segment
}

// A summary says what a segment is about.
type summary struct {
	lines       uint64
	first, last int64  // the earliest moment that a line is about, and the latest
	index       uint64 // of the last log entry that it has a line of
	n           uint32 // of that line
}

// add notes a line.
func (s *summary) add(l *Line) {
	if s.lines == 0 {
		s.first, s.last = l.begin().UnixNano(), l.At.UnixNano()
	}
	s.lines++
	s.first, s.last = min(s.first, l.begin().UnixNano()), max(s.last, l.At.UnixNano())
	if l.Index != 0 {
		s.index, s.n = l.Index, l.N
	}
}

// use notes how many bytes a line has.
func (s *segment) use(l *Line, bytes int) {
	s.uses[l.Namespace] += int64(lineHead + bytes)
}

// A filter is a Bloom filter over the names in a segment: it reports that a name is not there,
// or that it may be. A search reads only the segments that may have what it looks for.
type filter []byte

// filterBytes returns the size of the filter for a segment of a size: a few bits for each of
// the names that fit in.
func filterBytes(segmentBytes int64) int {
	size := 1 << 10
	for int64(size) < segmentBytes/32 {
		size *= 2
	}
	return size
}

// addLine notes the names by which a line is looked for.
func (f filter) addLine(l *Line) {
	f.add(l.Namespace, 'r', l.Resource)
	f.add(l.Namespace, 'h', l.Holder)
	f.add(l.Namespace, 'a', l.Actor)
}

func (f filter) add(namespace string, field byte, name string) {
	if name == "" {
		return
	}
	a, step := hashes(namespace, field, name)
	for range probes {
		bit := a % uint64(len(f)*8)
		f[bit/8] |= 1 << (bit % 8)
		a += step
	}
}

func (f filter) may(namespace string, field byte, name string) bool {
	a, step := hashes(namespace, field, name)
	for range probes {
		bit := a % uint64(len(f)*8)
		if f[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
		a += step
	}
	return true
}

const probes = 4

// hashes returns FNV-1a of a name and a second number made from it, from which all probes
// follow. It must stay the same for ever: the filters of older segments were filled by it.
func hashes(namespace string, field byte, name string) (uint64, uint64) {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	for i := range len(namespace) {
		h = (h ^ uint64(namespace[i])) * prime
	}
	h = (h ^ uint64(field)) * prime
	h = (h ^ 0xff) * prime
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	mixed := (h ^ h>>32) * 0x9e3779b97f4a7c15
	return mixed, mixed>>17 | 1
}

func segmentName(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", number, segmentSuffix))
}

func indexName(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", number, indexSuffix))
}

// segmentNumbers lists the segments of a directory, oldest first.
func segmentNumbers(dir string) (numbers []uint64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		digits, ok := strings.CutSuffix(f.Name(), segmentSuffix)
		if n, err := strconv.ParseUint(digits, 16, 64); ok && err == nil && len(digits) == 16 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// writeIndex puts the index of a full segment beside it. It is not synced: what a crash leaves
// of it is refused by its checksum, and it is made again.
func writeIndex(dir string, s *segment, f filter) error {
	b := []byte(indexMagic)
	for _, v := range []uint64{s.number, uint64(s.size), s.lines, uint64(s.first), uint64(s.last), s.index,
		uint64(s.n)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = appendUses(b, s.uses)
	b = append(b, f...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return os.WriteFile(indexName(dir, s.number), b, 0o600)
}

// appendUses writes how many there are, and of each the name and the bytes.
func appendUses(b []byte, u uses) []byte {
	b = binary.AppendUvarint(b, uint64(len(u)))
	for _, namespace := range slices.Sorted(maps.Keys(u)) {
		b = appendText(b, namespace)
		b = binary.AppendUvarint(b, uint64(u[namespace]))
	}
	return b
}

// cutUses reads what appendUses wrote, and returns what follows it.
func cutUses(b []byte) (uses, []byte, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, nil, errIndex
	}
	b = b[n:]
	u := uses{}
	for range count {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, nil, errIndex
		}
		name := string(b[n : n+int(size)])
		b = b[n+int(size):]
		bytes, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, nil, errIndex
		}
		u[name] = int64(bytes)
		b = b[n:]
	}
	return u, b, nil
}

// indexSize is how many bytes the index of a segment has.
func indexSize(s *segment, f filter) int64 {
	return int64(indexHead + len(appendUses(nil, s.uses)) + len(f) + 4)
}

const indexHead = len(indexMagic) + 7*8

var errIndex = errors.New("the index is damaged")

// readIndex reads what writeIndex wrote of a segment of a size.
func readIndex(dir string, number uint64, size int64) (*segment, filter, error) {
	b, err := os.ReadFile(indexName(dir, number))
	if err != nil {
		return nil, nil, err
	}
	return parseIndex(b, number, size)
}

func parseIndex(b []byte, number uint64, size int64) (*segment, filter, error) {
	if len(b) <= indexHead+4 || string(b[:len(indexMagic)]) != indexMagic {
		return nil, nil, errIndex
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, nil, errIndex
	}
	var v [7]uint64
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(b[len(indexMagic)+8*i:])
	}
	if v[0] != number || int64(v[1]) != size {
		return nil, nil, errIndex // it belongs to another file
	}
	sum := summary{lines: v[2], first: int64(v[3]), last: int64(v[4]), index: v[5], n: uint32(v[6])}
	used, f, err := cutUses(body[indexHead:])
	if err != nil || len(f) == 0 {
		return nil, nil, errIndex
	}
	return &segment{number: number, size: size, summary: sum, uses: used, indexSize: int64(len(b))}, filter(f), nil
}
