package azure

import (
	"bytes"
	"net"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/internal/door"
)

// A conn puts a reason phrase of ours in the first line of an answer. HTTP allows any phrase, Azure says there what
// went wrong, and clients show it to people, often as all that they show; but net/http has one phrase for each
// status and no way to set another.
type conn struct {
	net.Conn
	status int
	phrase string // for the next answer; empty: as net/http writes it
}

// Write must be called only by the goroutine that answers a request. The beginning of an answer is also the
// beginning of a write, since net/http flushes at the end of each answer.
func (c *conn) Write(b []byte) (int, error) {
	if c.phrase == "" {
		return c.Conn.Write(b)
	}
	line, rest, found := bytes.Cut(b, []byte("\r\n"))
	start := "HTTP/1.1 " + strconv.Itoa(c.status)
	if !found || !bytes.HasPrefix(line, []byte(start)) {
		return c.Conn.Write(b) // "100 Continue", say
	}
	changed := append([]byte(start+" "+c.phrase+"\r\n"), rest...)
	c.phrase = ""
	if n, err := c.Conn.Write(changed); err != nil {
		return min(n, len(b)), err
	}
	return len(b), nil
}

// reason sets the phrase of the answer that is about to be written.
func (c *call) reason(status int, message string) {
	if wire, ok := door.OwnConn(c.r).(*conn); ok {
		wire.status, wire.phrase = status, phraseOf(message)
	}
}

// phraseOf turns a message into one line, in characters that HTTP allows.
func phraseOf(message string) string {
	const most = 256
	return cut(strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, message)), most)
}

// NetConn is the connection below this one.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http say that the answer ends and still read what comes.
func (c *conn) CloseWrite() error {
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}
