package grpcconn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// windowSize is how much a client may send on a stream, or on a connection, that was not read yet.
	windowSize = 1 << 20
	// readBuffer is what each connection has for as long as it lives. Requests are small.
	readBuffer = 4 << 10

	defaultWindow = 65535
	maxWindow     = 1<<31 - 1
	leastFrame    = 16 << 10 // every client can read one as large
	maxFrame      = 64 << 10 // larger ones gain nothing
)

// A conn is one connection.
type conn struct {
	server *Server
	nc     net.Conn
	from   string // address of the client
	framer *http2.Framer
	header *headerReader
	work   chan *Stream
	calls  sync.WaitGroup // under way

	heard  atomic.Bool // a frame came since the last look
	proven atomic.Bool // the client has shown who it is
	alive  *time.Timer // looks whether the client is there

	continued *http2.HeadersFrame // whose rest is to come; nil: none
	within    bool                // the client has said how it wants to be spoken to

	mu      sync.Mutex // guards what follows
	streams map[uint32]*Stream
	last    uint32    // newest stream of the client
	running int       // calls under way, also those whose stream is gone
	held              // what came and is under way
	window  int       // that the client may still send
	away    bool      // the client was told to go elsewhere
	calm    time.Time // when the calls that it gave up are forgotten
	seen    uint32    // newest stream at the last look
	looks   int       // since a stream was there, if nothing was proven
	failed  error     // why the connection is at its end

	writer // what is sent
	pings  // that are to be answered
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, from: nc.RemoteAddr().String(), header: newHeaderReader(), window: windowSize}
	c.streams = map[uint32]*Stream{}
	c.framer = http2.NewFramer(nil, bufio.NewReaderSize(nc, readBuffer))
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(leastFrame)
	c.writer = writer{room: defaultWindow, initial: defaultWindow, frame: leastFrame}
	c.encoder = hpack.NewEncoder((*headerWriter)(c))
	c.written.L = &c.mu
	return c
}

// serve reads until the connection ends.
func (c *conn) serve() error {
	if err := c.greet(); err != nil {
		return err
	}
	c.alive = time.AfterFunc(c.server.PingTime, c.look)
	defer c.alive.Stop()
	for {
		f, err := c.framer.ReadFrame()
		if err == nil {
			c.heard.Store(true)
			err = c.handle(f)
		}
		var one http2.StreamError
		if errors.As(err, &one) {
			err = c.refuse(one.StreamID, one.Code)
		}
		if err != nil {
			return err
		}
	}
}

// greet exchanges what connections begin with.
func (c *conn) greet() error {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.server.SlowTime))
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.nc, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putSettings(
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.server.MaxStreams)},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: windowSize},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeader},
	)
	c.putWindow(0, windowSize-defaultWindow)
	c.flushSoon()
	return nil
}

// end ends the connection, with what is under way on it, and says why if that is the client's fault.
func (c *conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams { // first: else they could go on putting answers
		s.abandon()
	}
	clear(c.streams)
	var fault http2.ConnectionError
	if errors.Is(err, http2.ErrFrameTooLarge) {
		fault = http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	if c.failed == nil && (fault != 0 || errors.As(err, &fault)) {
		c.putGoAway(http2.ErrCode(fault))
		c.flush()
		for c.writing { // for as long as a client may take
			c.written.Wait()
		}
	}
	c.fail(err)
	c.pings.stop()
}

// fail closes the connection: its reader sees that. mu is held.
func (c *conn) fail(err error) {
	if c.failed == nil {
		c.failed = err
		_ = c.nc.Close()
		c.written.Broadcast()
		c.wakeAll()
	}
}

// look asks a client that was quiet whether it is there, and ends the connection if it does not answer, or has proven
// nothing and asks nothing.
func (c *conn) look() {
	heard := c.heard.Swap(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endHalf()
	switch {
	case c.deserted():
		c.fail(errors.New("the client has proven nothing and asks nothing"))
	case !heard && c.asked:
		c.fail(errors.New("the client does not answer"))
	case !heard:
		c.asked = true
		c.putPing(false, [8]byte{})
		c.flush()
	}
	if c.failed == nil {
		c.alive.Reset(c.server.PingTime)
	}
}

// goAway tells the client to go elsewhere, also with calls that it has not asked as a whole: they might never end. The
// connection ends with the last call.
func (c *conn) goAway() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = true
	c.putGoAway(http2.ErrCodeNo)
	for id, s := range c.streams {
		if !s.started {
			s.abandon()
			delete(c.streams, id)
			c.putReset(id, http2.ErrCodeRefusedStream)
		}
	}
	c.flush()
	c.endIfDone()
}

// endIfDone ends the connection of a client that was told to go, when it has no call under way. mu is held.
func (c *conn) endIfDone() {
	if c.away && len(c.streams) == 0 && len(c.out) == 0 && !c.writing {
		c.fail(net.ErrClosed)
	}
}

// handle takes one frame.
func (c *conn) handle(f http2.Frame) error {
	if !c.within {
		if _, ok := f.(*http2.SettingsFrame); !ok {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.within = true
		_ = c.nc.SetReadDeadline(time.Time{})
		c.server.Greeted(c.nc)
	}
	switch f := f.(type) {
	case *http2.HeadersFrame:
		return c.handleHeader(f, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		return c.handleHeader(c.continued, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.DataFrame:
		return c.handleData(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.pace()
	switch f := f.(type) {
	case *http2.RSTStreamFrame:
		return c.handleReset(f)
	case *http2.WindowUpdateFrame:
		return c.handleWindow(f)
	case *http2.SettingsFrame:
		return c.handleSettings(f)
	case *http2.PingFrame:
		c.handlePing(f)
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	}
	return nil
}

// handleHeader takes a part of a header. The whole of it begins a call.
func (c *conn) handleHeader(f *http2.HeadersFrame, part []byte, whole bool) error {
	if !whole {
		if c.continued == nil {
			c.continued = &http2.HeadersFrame{FrameHeader: f.FrameHeader, Priority: f.Priority}
		}
		return c.header.add(part)
	}
	c.continued = nil
	if err := c.header.decode(part); err != nil {
		return err
	}
	r, whole := c.header.request()
	c.mu.Lock()
	defer c.mu.Unlock()
	id := f.Header().StreamID
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if id <= c.last {
		return c.handleTrailer(id, f.StreamEnded())
	}
	c.last = id
	switch {
	case !whole, f.HasPriority() && f.Priority.StreamDep == id:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	case c.away:
		return nil // as it was told: the client makes the call elsewhere
	case len(c.streams) >= c.server.MaxStreams || c.running >= 2*c.server.MaxStreams:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	}
	return c.begin(id, &r, f.StreamEnded())
}

// handleTrailer takes a second header of a stream, which ends what the client sends.
func (c *conn) handleTrailer(id uint32, end bool) error {
	s := c.streams[id]
	switch {
	case s == nil, s.ended:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeStreamClosed}
	case !end:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	s.arrived(nil, true)
	return nil
}

// begin begins a call. The error says that there is no room even to refuse it. mu is held.
func (c *conn) begin(id uint32, r *request, ended bool) error {
	s := &Stream{conn: c, id: id, fields: r.fields, window: windowSize, cost: streamCost + r.size}
	s.beginPlain(r)
	c.hold(s.cost)
	switch {
	case r.refused != nil:
		s.refused = r.refused
	case c.tooMuch() != nil:
		s.refused = c.tooMuch()
	case s.plain != nil:
	case !grpcContent(r.contentType):
		s.httpStatus = "415"
		s.refused = status.Errorf(codes.InvalidArgument, "invalid gRPC request content-type %q", brief(r.contentType))
	case r.method != "POST":
		s.httpStatus = "405"
		s.refused = status.Errorf(codes.Internal, "a call of gRPC is a POST, not a %q", brief(r.method))
	case r.encoding != "" && r.encoding != "identity":
		s.refused = status.Errorf(codes.Unimplemented, "grpc: Decompressor is not installed for grpc-encoding %q",
			brief(r.encoding))
	default:
		if s.method = c.server.methods[r.path]; s.method == nil {
			s.refused = c.server.unknown(r.path)
		}
	}
	if s.refused != nil { // its answer may have to wait for long
		s.fields = nil
		c.hold(streamCost - s.cost)
		s.cost = streamCost
		if c.exceeds(refusing) != nil {
			c.hold(-s.cost)
			return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
		}
	}
	if r.timeout > 0 {
		s.Context, s.cancel = context.WithTimeout(context.Background(), r.timeout)
	} else {
		s.Context, s.cancel = context.WithCancel(context.Background())
	}
	c.streams[id] = s
	if s.refused == nil && (s.plain != nil || s.method.unary == nil) {
		s.more = make(chan struct{}, 1)
	}
	if s.refused != nil || s.plain != nil || s.more != nil && s.method.info.IsClientStream {
		s.start()
	}
	if ended {
		s.arrived(nil, true)
	}
	return nil
}

// handleData takes a part of what a client sends in a call.
func (c *conn) handleData(f *http2.DataFrame) error {
	id, n := f.Header().StreamID, int(f.Header().Length)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.window -= n; c.window < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if c.window < windowSize/2 {
		c.putWindow(0, windowSize-c.window)
		c.window = windowSize
		c.flushSoon()
	}
	s := c.streams[id]
	switch {
	case s == nil && id > c.last:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil:
		return nil // it was on its way when the stream ended
	case s.ended:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeStreamClosed}
	}
	if s.window -= n; s.window < 0 {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeFlowControl}
	}
	s.taken += n - len(f.Data()) // padding
	s.arrived(f.Data(), f.StreamEnded())
	return nil
}

// handleReset ends a stream that the client does not want any more.
func (c *conn) handleReset(f *http2.RSTStreamFrame) error {
	if f.StreamID > c.last {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if s := c.streams[f.StreamID]; s != nil {
		s.abandon()
		c.drop(s)
	}
	return c.gaveUp()
}

// handleWindow lets more be sent.
func (c *conn) handleWindow(f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if c.room += int(f.Increment); c.room > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.next()
	} else if s := c.streams[f.StreamID]; s != nil {
		if s.room += int(f.Increment); c.initial+s.room > maxWindow {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
		}
		if s.place.queue == &c.forOwn {
			s.wake()
		}
	} else if f.StreamID > c.last {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

// handleSettings does what the client wants.
func (c *conn) handleSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingHeaderTableSize:
			c.encoder.SetMaxDynamicTableSize(min(s.Val, 4096))
		case http2.SettingMaxFrameSize:
			c.frame = min(int(s.Val), maxFrame)
		case http2.SettingInitialWindowSize:
			c.initial = int(s.Val)
			c.widened()
		}
		return nil
	})
	if err == nil {
		c.putFrame(http2.FrameSettings, http2.FlagSettingsAck, 0, 0)
		c.flushSoon()
	}
	return err
}

// refuse ends a stream because of what the client did. If a call ends by that, the client has given it up.
func (c *conn) refuse(id uint32, code http2.ErrCode) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		s.abandon()
		c.drop(s)
		err = c.gaveUp()
	}
	c.putReset(id, code)
	c.flushSoon()
	c.pace()
	return err
}

// drop forgets a stream. mu is held.
func (c *conn) drop(s *Stream) {
	if c.streams[s.id] == s {
		delete(c.streams, s.id)
		c.endIfDone()
	}
}
