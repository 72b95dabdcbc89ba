package leasehold

import "time"

// A Record is a named value. Its path has nothing to do with a resource of the same name.
type Record struct {
	Path    string
	Value   string   // any bytes
	Large   *Large   // instead of Value: where the bytes of a large value are
	Create  Revision // the one that created it
	Mod     Revision // the one that changed it last
	Version uint64   // 1 when it is created, one more with each change
	Session string   // the session it ends with, if any
	Token   Token    // the largest that it was written with; smaller ones are refused
	Lease   string   // the id of the lease, or of the wait for one, that it is the face of, if any
}

// A Large names a value that is kept beside the log, because it is too large for it. The digest
// proves that the bytes are the right ones.
type Large struct {
	SHA256 Digest
	Size   int64
}

// A Version is a current or former version of a record.
type Version struct {
	Path     string
	Value    string    // any bytes
	Large    *Large    // instead of Value: where the bytes are
	Revision Revision  // the one that wrote it, which names the version
	Create   Revision  // the one that created the record
	Version  uint64    // 1 when the record is created, one more with each change
	Written  time.Time // zero: not known, because the record kept no versions then
	Holder   string    // who wrote it, if it was written under a lease and is known
	Session  string    // the session that the record would have ended with, if any
	Token    Token     // the largest that the record was written with
	Current  bool      // the current version
	Deleted  bool      // the record was deleted after it
}

// A Digest is the SHA-256 of the bytes of a large value, which is also its name.
type Digest [32]byte

const hexDigits = "0123456789abcdef"

// String returns the digest in hexadecimal digits.
func (d Digest) String() string {
	var text [2 * len(d)]byte
	for i, b := range d {
		text[2*i], text[2*i+1] = hexDigits[b>>4], hexDigits[b&15]
	}
	return string(text[:])
}

// ParseDigest parses what String returns. It reports whether text is a digest.
func ParseDigest(text string) (d Digest, ok bool) {
	if len(text) != 2*len(d) {
		return d, false
	}
	for i := range d {
		high, ok1 := hexDigit(text[2*i])
		low, ok2 := hexDigit(text[2*i+1])
		if !ok1 || !ok2 {
			return d, false
		}
		d[i] = high<<4 | low
	}
	return d, true
}

func hexDigit(c byte) (byte, bool) {
	for i := range len(hexDigits) {
		if hexDigits[i] == c {
			return byte(i), true
		}
	}
	return 0, false
}
