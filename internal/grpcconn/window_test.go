package grpcconn

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// window is the setting of how much a client takes on a stream.
func window(n uint32) http2.Setting { return http2.Setting{ID: http2.SettingInitialWindowSize, Val: n} }

// A client that never has room for an answer is sent away.
func TestWindowsThatStayShut(t *testing.T) {
	for name, shut := range map[string]func(c *raw){
		"of streams": func(c *raw) { _ = c.WriteSettings(window(0)); c.send(message(0)...) },
		"below zero": func(c *raw) {
			_ = c.WriteSettings(window(1))
			c.send(message(0)...)
			c.came()
			_ = c.WriteSettings(window(0))
		},
		"of the connection": func(c *raw) {
			_ = c.WriteSettings(window(1 << 20))
			c.large(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *site) {
				c := s.raw(true)
				began := time.Now()
				shut(c)
				<-c.ended
				if took := time.Since(began); took != testSlow {
					t.Errorf("it was sent away after %v", took)
				}
				s.served.Wait()
			})
		})
	}
}

// Streams that wait for room on the connection get it in turn, also if it comes in small pieces.
func TestWindowsInTurn(t *testing.T) {
	inBubble(t, func(s *site) {
		const calls = 10
		c := s.raw(true)
		_ = c.WriteSettings(window(1 << 20))
		c.large(1)
		c.came()
		for i := range uint32(calls) {
			c.call(2*i+3, false)
			_ = c.WriteData(2*i+3, true, message(0))
		}
		if got := c.came(); got != "" {
			t.Fatalf("there is no room for %q", got)
		}
		for range 3 * calls {
			_ = c.WriteWindowUpdate(0, 5)
			synctest.Wait()
		}
		// One piece in so many is for the large answer; the others are answered in two.
		if got := strings.Count(c.came(), "HEADERS"); got != 2*calls {
			t.Errorf("%d headers came", got)
		}
		_ = c.Close()
	})
}

// All that wait go on when there is enough for all: room on the connection, or a client that reads again.
func TestWindowsForAll(t *testing.T) {
	const calls = 20
	for name, room := range map[string]uint32{"room": 0, "reading": 1 << 28} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *site) {
				c := s.raw(room == 0)
				_ = c.WriteSettings(window(1 << 28))
				if room > 0 {
					_ = c.WriteWindowUpdate(0, room)
				}
				for i := range uint32(calls) {
					c.large(2*i + 1)
				}
				c.came()
				if room == 0 {
					_ = c.WriteWindowUpdate(0, 1<<28)
				} else {
					go c.read()
				}
				if got := c.came(); strings.Count(got, "HEADERS") < 2*calls-1 { // one was there before
					t.Errorf("there came %q", got)
				}
				_ = c.Close()
			})
		})
	}
}

// A stream whose window opens byte by byte gets its answer.
func TestWindowsByteByByte(t *testing.T) {
	inBubble(t, func(s *site) {
		c := s.raw(true)
		_ = c.WriteSettings(window(0))
		for id := uint32(1); id < 2*64; id += 2 {
			c.call(id, false)
			_ = c.WriteData(id, true, message(0))
		}
		for range 100 { // more than an answer has
			_ = c.WriteWindowUpdate(3, 1)
		}
		if got := c.came(); strings.Count(got, "HEADERS") != 2 {
			t.Errorf("there came %q", got)
		}
		_ = c.WriteSettings(window(100))
		if got := c.came(); strings.Count(got, "HEADERS") != 2*63 {
			t.Errorf("there came %q", got)
		}
		_ = c.Close()
	})
}

// large makes a call whose answer has 128 KB.
func (c *raw) large(id uint32) {
	c.call(id, false, append(slices.Clone(usual[:4]), ":path", "/etcdserverpb.KV/Put", usual[6], usual[7])...)
	_ = c.WriteData(id, true, []byte{0, 0, 0, 0, 7, 0x12, 1, 'x', 0x18, 0x80, 0x80, 0x08})
}
