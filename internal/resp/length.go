package resp

import (
	"bytes"
	"errors"
)

// maxDigits is how long a number in a header may be: enough for any size that a limit allows.
const maxDigits = 20

var (
	errNumber  = errors.New("not a number")
	errLineEnd = errors.New("a line does not end with CR LF")
)

// length reads the number that begins at from, and returns where the next line begins; 0: the
// line has not come whole.
func length(b []byte, from int) (n int64, next int, err error) {
	i := from
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	for first := i; ; i++ {
		if i == len(b) {
			return 0, 0, nil
		}
		if b[i] == '\r' && i > first {
			break
		}
		if b[i] < '0' || b[i] > '9' || i-first >= maxDigits-2 { // 18 digits fit an int64
			return 0, 0, errNumber
		}
		n = n*10 + int64(b[i]-'0')
	}
	if negative {
		n = -n
	}
	if i+1 == len(b) {
		return 0, 0, nil
	}
	if b[i+1] != '\n' {
		return 0, 0, errLineEnd
	}
	return n, i + 2, nil
}

// line returns the line that begins at from, and where the next one begins; 0: it has not come
// whole.
func line(b []byte, from int) (text []byte, next int, err error) {
	i := bytes.IndexByte(b[from:], '\r')
	if i < 0 || from+i+1 == len(b) {
		return nil, 0, nil
	}
	if b[from+i+1] != '\n' {
		return nil, 0, errLineEnd
	}
	return b[from : from+i], from + i + 2, nil
}
