package resp

import "strconv"

// AppendCommand appends a command as a client sends it.
func AppendCommand(b []byte, args ...string) []byte {
	b = AppendArray(b, len(args))
	for _, a := range args {
		b = AppendBulk(b, a)
	}
	return b
}

// AppendArray appends the header of an array; its n values must follow.
func AppendArray(b []byte, n int) []byte { return appendHeader(b, '*', int64(n)) }

// AppendBulk appends a bulk string: any bytes.
func AppendBulk[T string | []byte](b []byte, text T) []byte {
	b = appendHeader(b, '$', int64(len(text)))
	b = append(b, text...)
	return append(b, '\r', '\n')
}

// AppendBulkInt appends a number as a bulk string, which is how commands have them.
func AppendBulkInt(b []byte, n int64) []byte {
	var digits [20]byte
	return AppendBulk(b, strconv.AppendInt(digits[:0], n, 10))
}

func appendHeader(b []byte, kind byte, n int64) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, n, 10)
	return append(b, '\r', '\n')
}

// appendLine appends text that must be one line.
func appendLine[T string | []byte](b []byte, text T) []byte {
	return append(appendWords(b, text), '\r', '\n')
}

// appendWords appends a part of a line.
func appendWords[T string | []byte](b []byte, text T) []byte {
	first := len(b)
	b = append(b, text...)
	for i, c := range b[first:] {
		if c == '\r' || c == '\n' {
			b[first+i] = ' '
		}
	}
	return b
}
