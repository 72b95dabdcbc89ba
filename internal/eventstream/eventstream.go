// Package eventstream reads server-sent events.
package eventstream

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
)

// A Message is one block of a stream.
type Message struct {
	ID    string
	Event string
	Data  []byte
}

// maxLine is more than the largest event takes.
const maxLine = 1 << 20

// A Reader reads messages.
type Reader struct {
	lines *bufio.Scanner
	alive func()
}

// NewReader returns a reader that calls alive with each line.
func NewReader(r io.Reader, alive func()) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 16<<10), maxLine)
	return &Reader{lines, alive}
}

// Read reads up to the next empty line. A message that is cut off is dropped, so that its
// id does not count as passed.
func (r *Reader) Read() (m Message, err error) {
	for r.lines.Scan() {
		r.alive()
		line := r.lines.Bytes()
		if len(line) == 0 {
			return m, nil
		}
		m.field(line)
	}
	return Message{}, cmp.Or(r.lines.Err(), io.ErrUnexpectedEOF)
}

// field adds one line to the message.
func (m *Message) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		m.ID = string(value)
	case "event":
		m.Event = string(value)
	case "data":
		if m.Data != nil {
			m.Data = append(m.Data, '\n')
		}
		m.Data = append(m.Data, value...)
	}
}
