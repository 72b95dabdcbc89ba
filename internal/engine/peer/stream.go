package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// chunkBytes is how much of a large file is in one frame.
const chunkBytes = 256 << 10

// Stream sends a large file, and returns once the other server has made it durable. Each file
// has a connection of its own, so that messages do not wait for it.
func (m *Mesh) Stream(ctx context.Context, to uint64, kind byte, head []byte, body io.Reader) error {
	p, ok := m.peer(to)
	if !ok {
		return fmt.Errorf("no server with the id %d is known here", to)
	}
	conn, err := m.connect(ctx, to, p, forStream)
	if err != nil {
		return unavailable(p, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := writeStream(conn, kind, head, body); err != nil {
		return refusedFor(conn, err)
	}
	_, err = readAnswer(conn)
	return err
}

// writeStream sends a head and a body in chunks. Each has a deadline of its own, so that a slow link is no failure.
func writeStream(conn net.Conn, kind byte, head []byte, body io.Reader) error {
	w := bufio.NewWriterSize(conn, chunkBytes)
	write := func(kind byte, body []byte) error {
		_ = conn.SetWriteDeadline(time.Now().Add(quietFor))
		return writeFrame(w, kind, body)
	}
	if err := write(kindHead, append([]byte{kind}, head...)); err != nil {
		return err
	}
	chunk := make([]byte, chunkBytes)
	for {
		n, err := io.ReadFull(body, chunk)
		if n > 0 {
			if err := write(kindChunk, chunk[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := write(kindEnd, nil); err != nil {
		return err
	}
	return w.Flush()
}

// refusedFor returns what the other end said before it closed the connection, if it said
// anything: that explains more than the failed write.
func refusedFor(conn net.Conn, err error) error {
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	for {
		kind, body, rerr := readFrame(conn, MaxFrame)
		switch {
		case rerr != nil:
			return err
		case kind == kindError:
			return decodeError(body)
		}
	}
}

// takeStream takes a large file.
func (m *Mesh) takeStream(conn net.Conn, from Identity) {
	r := bufio.NewReaderSize(conn, chunkBytes)
	_ = conn.SetReadDeadline(time.Now().Add(quietFor))
	kind, head, err := readFrame(r, maxQuestion)
	if err != nil || kind != kindHead || len(head) == 0 {
		return
	}
	body := &chunks{conn: conn, r: r}
	if !m.work(conn, func(ctx context.Context) { err = m.Handler.Stream(ctx, from, head[0], head[1:], body) }) {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(quietFor))
	if err != nil {
		m.Log.Warn("a file of another server could not be taken", "server", from.Name, "err", err)
		_ = writeFrame(conn, kindError, encodeError(err))
		// Bytes that are still on their way would reset the connection, and the reason would be
		// lost.
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20))
		return
	}
	_ = writeFrame(conn, kindAnswer, nil)
}

// chunks reads what a stream carries. Only kindEnd ends it well: a connection that breaks off
// is an error, or half a file would count as a whole one.
type chunks struct {
	conn net.Conn
	r    io.Reader
	left []byte
	end  bool
}

func (c *chunks) Read(b []byte) (int, error) {
	for len(c.left) == 0 {
		if c.end {
			return 0, io.EOF
		}
		_ = c.conn.SetReadDeadline(time.Now().Add(quietFor))
		kind, body, err := readFrame(c.r, chunkBytes)
		switch {
		case err != nil:
			return 0, unexpected(err)
		case kind == kindChunk:
			c.left = body
		case kind == kindEnd:
			c.end = true
		default:
			return 0, errKind
		}
	}
	n := copy(b, c.left)
	c.left = c.left[n:]
	return n, nil
}
