package grpcconn

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// exhaust has strangers of many networks take all that is lent to such, and returns what gives it back.
func (s *site) exhaust() (giveBack func()) {
	taken := map[string]int{}
	for i, shared := 0, s.server.Strangers; shared.Now() < shared.Most; i++ {
		from := fmt.Sprint(i)
		for n := shared.Most - shared.Now(); n > 0; n /= 2 {
			if shared.Take(from, n) {
				taken[from] = n
				break
			}
		}
	}
	return func() {
		for from, n := range taken {
			s.server.Strangers.Give(from, n)
		}
	}
}

// Calls that never send anything cost no more than so much, however large their headers are.
func TestLargeHeaders(t *testing.T) {
	inBubble(t, func(s *site) {
		s.server.MaxStreams = 8192
		c := s.raw(true)
		_ = c.WriteSettings()
		header := slices.Clone(usual)
		for range 20 { // all but the first take a byte
			header = append(header, "a", strings.Repeat("x", 3000))
		}
		for id := uint32(1); id < 2*2000; id += 2 {
			c.call(id, false, header...)
		}
		if n := strings.Count(c.came(), "HEADERS"); n < 900 || n > 1000 {
			t.Errorf("of 2,000 calls with 60 KB each, %d were refused", n)
		}
		_ = c.Close()
	})
}

// Clients whose requests are small are served although others hold all that they may together.
func TestManyHold(t *testing.T) {
	inBubble(t, func(s *site) {
		giveBack := s.exhaust() // as by hundreds of connections
		c := s.raw(true)
		_ = c.WriteSettings()
		c.send(message(0)...)
		if got := c.came(); got != "HEADERS,DATA,HEADERS" {
			t.Errorf("a small call: %q", got)
		}
		large := func(id uint32) {
			c.call(id, false)
			_ = c.WriteData(id, false, binary.BigEndian.AppendUint32([]byte{0}, 1<<20))
			for range 20 {
				_ = c.WriteData(id, false, make([]byte, 16<<10))
			}
		}
		large(3)
		if got := c.came(); got != "HEADERS,RST_STREAM NO_ERROR" {
			t.Errorf("a large call: %q", got)
		}
		giveBack()
		large(5)
		large(7)
		_ = c.WriteRSTStream(7, http2.ErrCodeCancel)
		if got := c.came(); got != "" {
			t.Errorf("a large call when the others are gone: %q", got)
		}
		if s.server.Strangers.Now() == 0 {
			t.Error("it is not counted")
		}
		_ = c.Close()
		synctest.Wait()
		if got := s.server.Strangers.Now(); got != 0 {
			t.Errorf("%d bytes stay counted", got)
		}
	})
}

// Clients that nobody knows leave half of what there is to the others: whoever has many calls on one connection would
// otherwise lose those that keep its leases alive.
func TestStrangersLeaveRoom(t *testing.T) {
	inBubble(t, func(s *site) {
		stranger := s.raw(true)
		_ = stranger.WriteSettings()
		s.exhaust() // by others like it
		for what, c := range map[string]*raw{"unknown": stranger, "known": s.proven()} {
			c.call(5, false)
			_ = c.WriteData(5, false, binary.BigEndian.AppendUint32([]byte{0}, 1<<20))
			for range 20 {
				_ = c.WriteData(5, false, make([]byte, 16<<10))
			}
			if got := c.came(); (got == "") != (what == "known") {
				t.Errorf("%s: a large call is answered %q", what, got)
			}
			_ = c.Close()
		}
	})
}

// Requests that are refused cost something, too: each waits until its client takes the answer. Beyond so many of them
// they are reset.
func TestRefusalsAreCounted(t *testing.T) {
	inBubble(t, func(s *site) {
		s.server.MaxStreams = 1 << 16
		s.exhaust() // by others
		before := s.server.Strangers.Now()
		c := s.raw(true)
		_ = c.WriteSettings(window(0))
		const calls = 10_000
		for id := uint32(1); id < 2*calls; id += 2 {
			c.call(id, false, ":method", "POST", ":scheme", "http", ":path", "/wait")
		}
		const most = (strangerHeld + refusing) / streamCost
		if n := strings.Count(c.came(), "REFUSED_STREAM"); n < calls-most || n == calls {
			t.Errorf("of %d calls, %d were reset", calls, n)
		}
		_ = c.Close()
		synctest.Wait()
		if n := s.server.Strangers.Now() - before; n != 0 {
			t.Errorf("%d bytes stay counted", n)
		}
	})
}

// What ends a connection is the last that its client hears.
func TestLastWord(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(false)
		_ = c.WriteSettings(window(1 << 20))
		_ = c.WriteWindowUpdate(0, 1<<20)
		c.large(1)
		synctest.Wait()
		c.call(2, true)
		time.Sleep(time.Second)
		go c.read()
		<-c.ended
		if got := c.came(); !strings.HasSuffix(got, "GOAWAY PROTOCOL_ERROR") {
			t.Errorf("it heard %q", got)
		}
	})
}

// Answers that a client does not take are kept only up to so many bytes, and a call beyond that is told so.
func TestAnswersThatAreNotTaken(t *testing.T) {
	inBubble(t, func(s *site) {
		s.server.MaxUnsent = 300 << 10
		c := s.raw(true)
		_ = c.WriteSettings(window(0))
		c.large(1)
		c.large(3)
		if got := c.came(); got != "" {
			t.Errorf("there is room for these: %q", got)
		}
		c.large(5)
		if got := c.came(); got != "HEADERS" {
			t.Errorf("there is none for the third: %q", got)
		}
		_ = c.WriteWindowUpdate(0, 1<<20)
		_ = c.WriteSettings(window(1 << 20))
		if got := c.came(); strings.Count(got, "HEADERS") != 4 {
			t.Errorf("when it takes them, %q", got)
		}
		c.large(7)
		if got := c.came(); strings.Count(got, "HEADERS") != 2 {
			t.Errorf("after that, %q", got)
		}
		_ = c.Close()
	})
}

// Large requests are decoded by so many at once, and small ones do not wait for them.
func TestLargeRequests(t *testing.T) {
	inBubble(t, func(s *site) {
		for range cap(s.server.decoders) {
			s.server.decoders <- struct{}{}
		}
		c := s.raw(true)
		_ = c.WriteSettings()
		c.call(1, false)
		for part := range slices.Chunk(message(2*largeRequest), 16<<10) {
			_ = c.WriteData(1, false, part)
		}
		_ = c.WriteData(1, true, nil)
		c.call(3, false)
		_ = c.WriteData(3, true, message(0))
		if got := c.came(); got != "HEADERS,DATA,HEADERS" {
			t.Errorf("before: %q", got)
		}
		<-s.server.decoders
		if got := c.came(); got != "HEADERS" { // zeros are no message
			t.Errorf("after: %q", got)
		}
		_ = c.Close()
	})
}
