package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// lines hands on the lines of a reader that are JSON. The protocol would end with the first that is not, and with it
// everything that the agent holds; so each of those is answered with an error instead.
type lines struct {
	scan *bufio.Scanner
	out  io.Writer
	rest []byte // of the line that is handed on
}

// maxLine is how long one message may be.
const maxLine = 8 << 20

// parseError answers a line whose id nobody can read.
const parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this line is not JSON"}}`

func newLines(in io.Reader, out io.Writer) *lines {
	l := &lines{scan: bufio.NewScanner(in), out: out}
	l.scan.Buffer(nil, maxLine)
	return l
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if !l.scan.Scan() {
			if err := l.scan.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		switch line := bytes.TrimSpace(l.scan.Bytes()); {
		case len(line) == 0:
		case json.Valid(line):
			l.rest = append(bytes.Clone(line), '\n')
		default:
			if _, err := io.WriteString(l.out, parseError+"\n"); err != nil {
				return 0, err
			}
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close does nothing: the process has its standard input until it ends.
func (l *lines) Close() error { return nil }

// An output is written to by several goroutines, whole lines by each. It is never closed: the process has
// its standard output until it ends.
type output struct {
	mu  sync.Mutex
	out io.Writer
}

func (s *output) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *output) Close() error { return nil }
