package grpcconn

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// maxOut is how much waits to be written before those wait who have more.
	maxOut = 64 << 10
	// maxRounds is how often a goroutine that has an answer also writes those of others, before it leaves that to a new
	// one.
	maxRounds = 8
	// keptBuffer is the size up to which a buffer is used again.
	keptBuffer = 64 << 10

	frameHeader = 9
)

// A writer is what is sent on a connection, whose mu guards it. Frames are put, and then flushed by the goroutine that
// put them, unless another one writes at the moment and so takes them along.
type writer struct {
	out     []byte // to be written
	writing bool
	encoder *hpack.Encoder

	room    int // that the client has for data, on all streams together
	initial int // that it has on a new stream
	frame   int // that it takes at most

	unsent int // bytes of messages that are not put as a whole yet
	queues
	written sync.Cond // what was put: the reader waits for it
}

// headerWriter takes what the encoder of headers makes.
type headerWriter conn

// Write puts a part of a header.
func (w *headerWriter) Write(b []byte) (int, error) {
	w.out = append(w.out, b...)
	return len(b), nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// buffer returns an empty buffer.
func buffer() *[]byte { return buffers.Get().(*[]byte) }

// giveBack lets a buffer be used again.
func giveBack(b *[]byte) {
	if cap(*b) <= keptBuffer {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// putFrame puts the header of a frame.
func (c *conn) putFrame(kind http2.FrameType, flags http2.Flags, id uint32, length int) {
	if c.out == nil {
		b := buffer()
		c.out = *b
	}
	c.out = append(c.out, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	c.out = binary.BigEndian.AppendUint32(c.out, id)
}

func (c *conn) putSettings(all ...http2.Setting) {
	c.putFrame(http2.FrameSettings, 0, 0, 6*len(all))
	for _, s := range all {
		c.out = binary.BigEndian.AppendUint16(c.out, uint16(s.ID))
		c.out = binary.BigEndian.AppendUint32(c.out, s.Val)
	}
}

func (c *conn) putWindow(id uint32, more int) {
	c.putFrame(http2.FrameWindowUpdate, 0, id, 4)
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(more))
}

func (c *conn) putReset(id uint32, code http2.ErrCode) {
	c.putFrame(http2.FrameRSTStream, 0, id, 4)
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(code))
}

func (c *conn) putGoAway(code http2.ErrCode) {
	c.putFrame(http2.FrameGoAway, 0, 0, 8)
	c.out = binary.BigEndian.AppendUint32(c.out, c.last)
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(code))
}

func (c *conn) putPing(answer bool, data [8]byte) {
	var flags http2.Flags
	if answer {
		flags = http2.FlagPingAck
	}
	c.putFrame(http2.FramePing, flags, 0, len(data))
	c.out = append(c.out, data[:]...)
}

// putHeader puts a header that fits in one frame.
func (c *conn) putHeader(id uint32, last bool, fields ...hpack.HeaderField) {
	flags := http2.FlagHeadersEndHeaders
	if last {
		flags |= http2.FlagHeadersEndStream
	}
	c.putFrame(http2.FrameHeaders, flags, id, 0)
	begin := len(c.out)
	for _, f := range fields {
		_ = c.encoder.WriteField(f) // to memory
	}
	length := len(c.out) - begin
	at := c.out[begin-frameHeader:]
	at[0], at[1], at[2] = byte(length>>16), byte(length>>8), byte(length)
}

var (
	ok200       = hpack.HeaderField{Name: ":status", Value: "200"}
	contentType = hpack.HeaderField{Name: "content-type", Value: "application/grpc"}
	statusOK    = hpack.HeaderField{Name: "grpc-status", Value: "0"}
)

// putStatus puts what a call came to, which ends its stream.
func (s *Stream) putStatus(err error) {
	c := s.conn
	var fields []hpack.HeaderField
	if !s.headed {
		status := ok200
		if s.httpStatus != "" {
			status.Value = s.httpStatus
		}
		fields = append(fields, status, contentType)
	}
	if err == nil {
		fields = append(fields, statusOK)
	} else {
		status := statusOf(err)
		fields = append(fields, hpack.HeaderField{Name: "grpc-status", Value: strconv.Itoa(int(status.Code()))},
			hpack.HeaderField{Name: "grpc-message", Value: percent(status.Message())})
		if details := detailsOf(status); details != "" {
			fields = append(fields, hpack.HeaderField{Name: "grpc-status-details-bin", Value: details})
		}
	}
	c.putHeader(s.id, true, fields...)
	if !s.ended {
		c.putReset(s.id, http2.ErrCodeNo) // what the client still has to say, nobody hears
	}
}

// put puts a message, as far as the client has room for it, and waits until it has. mu is held, but not while it waits.
func (s *Stream) put(message []byte) error {
	c := s.conn
	size := len(message)
	if c.unsent > 0 && c.unsent+size > c.server.MaxUnsent {
		return status.Errorf(codes.ResourceExhausted,
			"%d bytes of answers are under way on one connection, of at most %d", c.unsent+size, c.server.MaxUnsent)
	}
	c.unsent += size
	defer func() { c.unsent -= size }()
	for len(message) > 0 {
		if err := s.await(); err != nil {
			return err
		}
		switch {
		case s.headed:
		case s.plain != nil:
			s.plain.putHead(false)
		default:
			s.headed = true
			c.putHeader(s.id, false, ok200, contentType)
		}
		n := min(len(message), c.room, c.initial+s.room, c.frame)
		c.putFrame(http2.FrameData, 0, s.id, n)
		c.out = append(c.out, message[:n]...)
		message = message[n:]
		c.room -= n
		s.room -= n
		c.pings.sent += n
	}
	return nil
}

var errGone = errors.New("the stream has ended")

// await waits until a part of a message can be put on a stream.
func (s *Stream) await() error {
	s.wait(true)
	switch {
	case s.gone:
		return errGone
	case s.Err() != nil:
		return s.Err()
	}
	return s.conn.failed
}

// flush writes all that was put, unless somebody does. mu is held, but not while it writes.
func (c *conn) flush() {
	if c.writing {
		return
	}
	c.writing = true
	c.write()
}

// flushSoon lets a goroutine write what was put: the reader of a connection must not wait for the client. mu is held.
func (c *conn) flushSoon() {
	if c.writing {
		return
	}
	c.writing = true
	go func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.write()
	}()
}

// pace lets the reader wait if the client does not take the answers to what it sends, such as pings. mu is held, but
// not while it waits.
func (c *conn) pace() {
	for len(c.out) > 2*maxOut && c.failed == nil {
		c.written.Wait()
	}
}

// write writes until there is nothing more.
func (c *conn) write() {
	if c.running > 1 {
		// Others may have an answer at the same moment, since what they wait for comes in batches.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	for round := 0; len(c.out) > 0 && c.failed == nil; round++ {
		if round == maxRounds {
			c.writing = false
			c.flushSoon()
			return
		}
		b := c.out
		c.out = nil
		c.mu.Unlock()
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.server.SlowTime))
		_, err := c.nc.Write(b)
		giveBack(&b)
		c.mu.Lock()
		if err != nil {
			c.fail(err)
		}
		c.written.Broadcast()
		c.next()
	}
	c.writing = false
	c.written.Broadcast()
	c.endIfDone()
}

// encode returns an encoded message, with what gRPC puts before it.
func encode(b []byte, m any) ([]byte, error) {
	b = append(b[:0], 0, 0, 0, 0, 0)
	b, err := appendMessage(b, m)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-prefix))
	return b, nil
}
