package grpcconn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
)

func keyValue(value []byte, times int) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Value: bytes.Repeat(value, times)}
}

// A raw client writes frames as it likes.
type raw struct {
	*site
	net.Conn
	*http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
	ended   chan struct{}

	mu   sync.Mutex
	seen []string // frames that came
}

// raw connects a client, which reads unless it is told not to.
func (s *site) raw(reads bool) *raw {
	s.Helper()
	c := &raw{site: s, Conn: s.connect(), ended: make(chan struct{})}
	c.encoder = hpack.NewEncoder(&c.block)
	c.Framer = http2.NewFramer(c.Conn, bufio.NewReader(c.Conn))
	c.AllowIllegalWrites = true
	if reads {
		go c.read()
	}
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		s.Fatal(err)
	}
	return c
}

func (c *raw) Write(b []byte) (int, error) { return c.Conn.Write(b) }
func (c *raw) Close() error                { return c.Conn.Close() }

func (c *raw) read() {
	defer close(c.ended)
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return
		}
		what := f.Header().Type.String()
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			what += " " + f.ErrCode.String()
		case *http2.GoAwayFrame:
			what += " " + f.ErrCode.String()
		case *http2.PingFrame:
			if f.IsAck() {
				what += " answer"
			}
		case *http2.SettingsFrame, *http2.WindowUpdateFrame:
			continue
		}
		c.mu.Lock()
		c.seen = append(c.seen, what)
		c.mu.Unlock()
	}
}

// came returns the frames that came since it was last asked.
func (c *raw) came() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.seen = nil }()
	return strings.Join(c.seen, ",")
}

// usual is the header of a call.
var usual = []string{
	":method", "POST", ":scheme", "http", ":path", "/etcdserverpb.KV/Range", "content-type", "application/grpc",
}

// malformed makes a call with fields that are wrong.
func malformed(fields ...string) func(c *raw) {
	return func(c *raw) { c.call(1, true, append(slices.Clone(usual[:6]), fields...)...) }
}

// call writes the header of a call.
func (c *raw) call(id uint32, end bool, fields ...string) {
	if fields == nil {
		fields = usual
	}
	c.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	c.writeBlock(id, end, c.block.Bytes())
}

// writeBlock writes a header that is encoded already.
func (c *raw) writeBlock(id uint32, end bool, block []byte) {
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: end, EndHeaders: true})
}

// send makes a call with these bytes.
func (c *raw) send(bytes ...byte) {
	c.call(1, false)
	_ = c.WriteData(1, true, bytes)
}

// message is one of gRPC, with so many bytes.
func message(n int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(n)), make([]byte, n)...)
}

// What is not as it should be ends the stream, or the connection, with the code that HTTP/2 has for it.
func TestBadFrames(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(c *raw)
		want string
	}{
		"an answer":  {func(c *raw) { c.send(message(0)...) }, "HEADERS,DATA,HEADERS"},
		"no message": {func(c *raw) { c.call(1, true) }, "HEADERS"},
		"no gRPC": {func(c *raw) {
			c.call(1, true, ":method", "GET", ":path", "/health", ":scheme", "http")
		}, "HEADERS,DATA,DATA"},
		"another gRPC": {malformed("content-type", "application/grpc+json"), "HEADERS"},
		"a GET": {func(c *raw) {
			c.call(1, true, ":method", "GET", ":path", "/x/y", ":scheme", "http", "content-type", "application/grpc")
		}, "HEADERS"},
		"compression":             {func(c *raw) { c.send(1, 0, 0, 0, 0) }, "HEADERS"},
		"bytes that are no proto": {func(c *raw) { c.send(0, 0, 0, 0, 1, 0xff) }, "HEADERS"},
		"half a message":          {func(c *raw) { c.send(0, 0, 0, 1, 0, 1) }, "HEADERS"},
		"half a prefix":           {func(c *raw) { c.send(0, 0) }, "HEADERS"},
		"a bad timeout": {func(c *raw) {
			c.call(1, true, append(slices.Clone(usual), "grpc-timeout", "soon")...)
		}, "HEADERS"},
		"a large header": {func(c *raw) {
			c.call(1, true, append(slices.Clone(usual), "a", strings.Repeat("x", 3000))...)
			for id := uint32(3); id < 9; id += 2 { // each names the content type, and the large field many times
				c.writeBlock(id, true, append([]byte{0x80 | 63}, bytes.Repeat([]byte{0x80 | 62}, 100)...))
			}
		}, "HEADERS,HEADERS,HEADERS,HEADERS"},

		"an even stream":      {func(c *raw) { c.call(2, true) }, "GOAWAY PROTOCOL_ERROR"},
		"data of no stream":   {func(c *raw) { _ = c.WriteData(1, true, nil) }, "GOAWAY PROTOCOL_ERROR"},
		"reset of no stream":  {func(c *raw) { _ = c.WriteRSTStream(1, 0) }, "GOAWAY PROTOCOL_ERROR"},
		"window of no stream": {func(c *raw) { _ = c.WriteWindowUpdate(1, 1) }, "GOAWAY PROTOCOL_ERROR"},
		"no window":           {func(c *raw) { _ = c.WriteWindowUpdate(0, 0) }, "GOAWAY PROTOCOL_ERROR"},
		"a window too wide":   {func(c *raw) { _ = c.WriteWindowUpdate(0, 1<<31-1) }, "GOAWAY FLOW_CONTROL_ERROR"},
		"a bad setting": {func(c *raw) {
			_ = c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1})
		}, "GOAWAY PROTOCOL_ERROR"},
		"a bad header block": {func(c *raw) { c.writeBlock(1, true, []byte{0xff}) }, "GOAWAY COMPRESSION_ERROR"},
		"a frame too large": {func(c *raw) {
			_, _ = c.Write([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1})
		}, "GOAWAY FRAME_SIZE_ERROR"},
		"a field in capitals":     {malformed("Path", "x"), "RST_STREAM PROTOCOL_ERROR"},
		"a pseudo field too late": {malformed("te", "trailers", ":path", "x"), "RST_STREAM PROTOCOL_ERROR"},
		"an unknown pseudo field": {malformed(":status", "200"), "RST_STREAM PROTOCOL_ERROR"},
		"a field twice":           {malformed(":path", "/x/y"), "RST_STREAM PROTOCOL_ERROR"},
		"a field of HTTP/1.1":     {malformed("connection", "close"), "RST_STREAM PROTOCOL_ERROR"},
		"a value of two lines":    {malformed("a", "b\nc"), "RST_STREAM PROTOCOL_ERROR"},
		"another te":              {malformed("te", "gzip"), "RST_STREAM PROTOCOL_ERROR"},
		"no path":                 {func(c *raw) { c.call(1, true, ":method", "POST") }, "RST_STREAM PROTOCOL_ERROR"},
		"a second header": {func(c *raw) {
			c.call(1, true)
			c.came()
			c.call(1, true)
		}, "RST_STREAM STREAM_CLOSED"},
		"data in a half header": {func(c *raw) {
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
			_ = c.WriteData(1, true, nil)
		}, "GOAWAY PROTOCOL_ERROR"},
		"a push": {func(c *raw) {
			_ = c.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, "GOAWAY PROTOCOL_ERROR"},
		"a stream's window too wide": {func(c *raw) {
			c.call(1, false)
			_ = c.WriteWindowUpdate(1, 1<<31-1)
		}, "RST_STREAM FLOW_CONTROL_ERROR"},
		"a header that never ends": {func(c *raw) {
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
			for range 10 {
				_ = c.WriteContinuation(1, false, make([]byte, 16<<10))
			}
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		"data after the end": {func(c *raw) {
			c.echo.let = make(chan struct{})
			c.call(1, false)
			_ = c.WriteData(1, true, message(0))
			_ = c.WriteData(1, true, nil)
		}, "RST_STREAM STREAM_CLOSED"},
		"more than the window": {func(c *raw) {
			c.call(1, false)
			_ = c.WriteData(1, false, []byte{0, 0, 0x10, 0, 0}) // of a megabyte
			for range 80 {
				_ = c.WriteData(1, false, make([]byte, 16<<10))
			}
		}, "RST_STREAM FLOW_CONTROL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *site) {
				c := s.raw(true)
				_ = c.WriteSettings()
				test.do(c)
				if got := c.came(); got != test.want {
					t.Errorf("the answer is %q, want %q", got, test.want)
				}
				_ = c.Close()
			})
		})
	}
}

// A client that does not begin as it should is sent away.
func TestBadBeginnings(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WritePing(false, [8]byte{})
		<-c.ended
		silent := s.raw(true)
		began := time.Now()
		<-silent.ended
		if took := time.Since(began); took != testSlow {
			t.Errorf("a silent client was sent away after %v", took)
		}
	})
}

// A ping is answered after a moment, and two at once: nobody measures with the second one.
func TestPings(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings()
		_ = c.WritePing(false, [8]byte{1})
		if got := c.came(); got != "" {
			t.Errorf("at once, %q", got)
		}
		time.Sleep(pingWait)
		if got := c.came(); got != "PING answer" {
			t.Errorf("after a moment, %q", got)
		}
		_ = c.WritePing(false, [8]byte{1})
		_ = c.WritePing(false, [8]byte{2})
		if got := c.came(); got != "PING answer,PING answer" {
			t.Errorf("of two, %q", got)
		}
		_ = c.Close()
	})
}

// A quiet client is asked whether it is there, and sent away if it does not say so.
func TestQuietClients(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.proven()
		for range 3 {
			time.Sleep(testPing + time.Second)
			got := c.came()
			if got == "" { // it has just spoken
				time.Sleep(testPing)
				got = c.came()
			}
			if got != "PING" {
				t.Fatalf("it was sent %q", got)
			}
			_ = c.WritePing(true, [8]byte{})
		}
		began := time.Now()
		<-c.ended
		if took := time.Since(began); took > 3*testPing {
			t.Errorf("it took %v", took)
		}
	})
}

// proven connects a client that has shown who it is.
func (s *site) proven() *raw {
	s.server.Unary = func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		FromContext(ctx).Proven()
		return h(ctx, r)
	}
	c := s.raw(true)
	_ = c.WriteSettings()
	c.call(1, false)
	_ = c.WriteData(1, true, message(0))
	if got := c.came(); !strings.HasPrefix(got, "HEADERS") {
		s.Fatalf("its call is answered %q", got)
	}
	return c
}

// A connection on which nothing was proven, and nothing is asked, ends.
func TestStrangersDoNotStay(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings()
		for range 5 * strangerLooks {
			time.Sleep(testPing / 2)
			_ = c.WritePing(false, [8]byte{1})
		}
		select {
		case <-c.ended:
		default:
			t.Error("it stays")
		}
		_ = c.Close()
	})
}

// A request that never comes whole is not waited for, whoever sends it.
func TestHalfRequestsEnd(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.proven()
		c.call(3, false)
		_ = c.WriteData(3, false, message(10)[:8])
		for range 4 {
			time.Sleep(testPing)
			_ = c.WritePing(true, [8]byte{})
		}
		if got := c.came(); !strings.Contains(got, "HEADERS,RST_STREAM NO_ERROR") {
			t.Errorf("it was told %q", got)
		}
		_ = c.Close()
	})
}

// Nor is a request that has one message and a stream of answers, and nothing runs for it before.
func TestHalfRequestsForStreamsEnd(t *testing.T) {
	inBubble(t, func(s *site) {
		began := 0
		s.server.methods["/x/Observe"] = &method{
			info:   &grpc.StreamServerInfo{FullMethod: "/x/Observe", IsServerStream: true},
			stream: func(_ any, stream grpc.ServerStream) error { began++; return stream.RecvMsg(&pb.RangeRequest{}) },
		}
		fields := slices.Clone(usual)
		fields[5] = "/x/Observe"
		c := s.raw(true)
		_ = c.WriteSettings()
		c.call(1, false, fields...)
		_ = c.WriteData(1, false, message(0))
		if got := c.came(); began != 1 || got != "HEADERS,RST_STREAM NO_ERROR" {
			t.Errorf("a whole request is answered %q", got)
		}
		c.call(3, false, fields...)
		if c.came(); began != 1 {
			t.Error("a half one is carried out")
		}
		for range 3 {
			time.Sleep(testPing)
			_ = c.WritePing(true, [8]byte{})
		}
		if got := c.came(); !strings.Contains(got, "HEADERS,RST_STREAM NO_ERROR") {
			t.Errorf("a half one is answered %q", got)
		}
		_ = c.Close()
	})
}

// A client that goes on beginning calls and giving them up is sent away, sooner if nobody knows it. So is one that has
// the server give them up, by what is wrong.
func TestEndlessResets(t *testing.T) {
	for how, giveUp := range map[string]func(c *raw, id uint32) error{
		"resets":   func(c *raw, id uint32) error { return c.WriteRSTStream(id, http2.ErrCodeCancel) },
		"mistakes": func(c *raw, id uint32) error { return c.WriteWindowUpdate(id, 1<<31-1) },
	} {
		inBubble(t, func(s *site) {
			for name, c := range map[string]*raw{"known": s.proven(), "unknown": s.raw(true)} {
				most := 2 * s.server.MaxStreams
				if name == "unknown" {
					_ = c.WriteSettings()
					most = 0
				}
				most, n := max(most, strangerGivesUp), 0
				for id := uint32(3); n < 2*most; n++ {
					c.call(id, false)
					if giveUp(c, id) != nil {
						break
					}
					id += 2
				}
				if got := c.came(); n < most || n > most+10 || !strings.HasSuffix(got, "GOAWAY ENHANCE_YOUR_CALM") {
					t.Errorf("%s, %s: after %d calls it was told %.200q", how, name, n, got)
				}
				_ = c.Close()
			}
		})
	}
}

// A client that does not read costs no more than so much, whatever it asks for, and not for ever.
func TestClientsThatDoNotRead(t *testing.T) {
	for name, ask := range map[string]func(c *raw, i uint32) error{
		"pings":    func(c *raw, _ uint32) error { return c.WritePing(false, [8]byte{1}) },
		"settings": func(c *raw, _ uint32) error { return c.WriteSettings() },
		"resets":   func(c *raw, i uint32) error { c.call(2*i+1, true); return c.WriteWindowUpdate(2*i+1, 1<<31-1) },
		"errors":   func(c *raw, i uint32) error { c.call(2*i+1, true); return nil },
		"answers":  func(c *raw, i uint32) error { c.call(2*i+1, false); return c.WriteData(2*i+1, true, message(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *site) {
				c := s.raw(false)
				_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
				_ = c.WriteSettings()
				began := time.Now()
				for i := range uint32(100_000) {
					if err := ask(c, i); err != nil {
						break
					}
					if time.Since(began) > 2*testSlow {
						break
					}
				}
				if took := time.Since(began); took < testSlow || took > testSlow+time.Second {
					t.Errorf("it was sent away after %v", took)
				}
				_ = c.Close()
			})
		})
	}
}

// A client that starts calls and cancels them at once cannot exceed its limit of running calls.
func TestRapidResets(t *testing.T) {
	inBubble(t, func(s *site) {
		s.echo.let = make(chan struct{})
		c := s.raw(true)
		_ = c.WriteSettings()
		for id := uint32(1); id < 2000; id += 2 {
			c.call(id, false)
			_ = c.WriteData(id, true, message(0))
			_ = c.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		synctest.Wait()
		if s.echo.begun != s.echo.ended {
			t.Errorf("of %d calls, %d ended", s.echo.begun, s.echo.ended)
		}
		for id := uint32(2001); id < 4000; id += 2 {
			c.call(id, false)
			_ = c.WriteData(id, true, message(0))
		}
		synctest.Wait()
		if n := s.echo.begun - s.echo.ended; n != s.server.MaxStreams {
			t.Errorf("%d calls are under way", n)
		}
		if got := c.came(); !strings.HasSuffix(got, "RST_STREAM REFUSED_STREAM") {
			t.Errorf("the last one was not refused: %q", got)
		}
		_ = c.Close()
	})
}

// A client that gave up as many calls as it may have can make as many new ones: it does not know that the server is not
// done with the old ones. That goes on only for so long.
func TestCallsAfterResets(t *testing.T) {
	inBubble(t, func(s *site) {
		let := make(chan struct{})
		s.server.Unary = func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
			<-let
			return &pb.RangeResponse{}, nil
		}
		c := s.raw(true)
		_ = c.WriteSettings()
		most := uint32(2 * s.server.MaxStreams)
		for i := range most + 10 {
			c.call(2*i+1, false)
			_ = c.WriteData(2*i+1, true, message(0))
			want := ""
			if i >= most {
				want = "RST_STREAM REFUSED_STREAM"
			}
			if got := c.came(); got != want {
				t.Errorf("call %d: %q", i, got)
			}
			_ = c.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		}
		close(let)
		_ = c.Close()
	})
}

// A server that stops does not wait for calls that were never made as a whole.
func TestDrainOfHalfCalls(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings()
		c.call(1, false)
		c.call(3, false)
		_ = c.WriteData(3, false, message(0))
		synctest.Wait()
		s.stop()
		s.served.Wait()
		<-c.ended
		if got := c.came(); got != "GOAWAY NO_ERROR,RST_STREAM REFUSED_STREAM,RST_STREAM REFUSED_STREAM" {
			t.Errorf("it was told %q", got)
		}
	})
}

// Parts of messages that never come to an end are held only up to so many bytes.
func TestUnfinishedMessages(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings()
		part := make([]byte, 16<<10)
		for id := uint32(1); id < 2*64; id += 2 {
			c.call(id, false)
			_ = c.WriteData(id, false, binary.BigEndian.AppendUint32([]byte{0}, testMost))
			for range (testMost - 1) / len(part) {
				_ = c.WriteData(id, false, part)
			}
			synctest.Wait()
		}
		if !strings.Contains(c.came(), "HEADERS") {
			t.Error("none was refused")
		}
		_ = c.Close()
	})
}

// No bytes bring a connection to anything but its end.
func FuzzConn(f *testing.F) {
	var b bytes.Buffer
	c := &raw{Framer: http2.NewFramer(&b, nil)}
	c.encoder = hpack.NewEncoder(&c.block)
	_ = c.WriteSettings()
	c.call(1, false)
	_ = c.WriteData(1, true, message(3))
	c.call(3, false, ":method", "POST", ":scheme", "http", ":path", "/etcdserverpb.Watch/Watch",
		"content-type", "application/grpc", "grpc-timeout", "1S")
	_ = c.WriteData(3, false, message(2)[:4])
	_ = c.WriteWindowUpdate(3, 100)
	_ = c.WritePing(false, [8]byte{})
	_ = c.WriteRSTStream(3, 0)
	c.call(5, false, ":method", "PUT", ":scheme", "http", ":path", "/body", "content-length", "3", "expect", "100-continue")
	_ = c.WriteData(5, true, []byte("abc"))
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		inBubble(t, func(s *site) {
			c := s.raw(true)
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := c.Write(b); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				var timeout net.Error
				if !errors.As(err, &timeout) {
					t.Error(err)
				}
			}
			synctest.Wait()
			_ = c.Close()
			s.served.Wait()
		})
	})
}
