package leasehold

import "time"

// A Digest is the SHA-256 of the bytes of a large value, which is also its name.
type Digest [32]byte

const hexDigits = "0123456789abcdef"

// String is the digest in hexadecimal digits, as people and headers write it.
func (d Digest) String() string {
	var text [2 * len(d)]byte
	for i, b := range d {
		text[2*i], text[2*i+1] = hexDigits[b>>4], hexDigits[b&15]
	}
	return string(text[:])
}

// ParseDigest reads what String wrote; false if it is none.
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

// A Large names a value that is kept beside the log, because it is too long to stand in
// it. Whoever has the digest can tell whether the bytes are the right ones.
type Large struct {
	SHA256 Digest
	Size   int64
}

// A Version is what a record was, or is: one of the values that it had.
type Version struct {
	Path     string
	Value    string    // any bytes
	Large    *Large    // instead of Value: where the bytes are
	Revision Revision  // that wrote it; names the version
	Create   Revision  // that made the record of which it is one
	Version  uint64    // 1 when the record was made, one more with each change
	Written  time.Time // zero: nobody noted it, because the record kept no versions then
	Holder   string    // who wrote it, if that was done under a lease, and was noted
	Session  string    // the session that the record would have ended with, if any
	Token    Token     // the largest that the record was written under
	Current  bool      // it is what the record is now
	Deleted  bool      // it was not replaced: the record was deleted
}
