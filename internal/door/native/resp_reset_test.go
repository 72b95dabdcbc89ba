package native

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold/internal/resp"
)

// After RESET a connection may be somebody else's: what was asked for before is over, and nothing of it is told.
func TestRESPResetEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.hold("r", "first")
		c := h.speak()
		defer c.conn.Close()
		if got := c.fields("LH.ACQUIRE", "r", "HOLDER", "gone", "WAIT", "60s", "PUSH", "t"); got["waiting"] != true {
			t.Fatalf("the wait is answered by %v", got)
		}
		if got := plainOf(c.do("RESET")); got != "RESET" {
			t.Errorf("RESET is answered by %v", got)
		}
		synctest.Wait()
		if n := h.resource("r").Waiting; n != 0 {
			t.Errorf("%d wait after RESET", n)
		}
		if got := plainOf(c.do("LH.RELEASE", "first")); got != "OK" {
			t.Errorf("the release is answered by %v", got)
		}
		if got := plainOf(c.do("PING", "x")); got != "x" {
			t.Errorf("PING is answered by %v", got)
		}
	})
}

// With RESP2 an event that comes after the end of its watch would be taken for the answer of the next command.
func TestRESPNoEventsAfterUnwatch(t *testing.T) {
	for _, end := range [][]string{{"LH.UNWATCH", "w"}, {"RESET"}} {
		synctest.Test(t, func(t *testing.T) {
			h := build(t, Config{})
			defer h.close()
			h.hold("r", "first")
			c := newRESPClient(t, h.raw(""))
			defer c.conn.Close()
			all := resp.AppendCommand(nil, "LH.WATCH", "SINCE", "0", "TAG", "w")
			all = resp.AppendCommand(all, end...)
			if _, err := c.conn.Write(resp.AppendCommand(all, "ECHO", "last")); err != nil {
				t.Fatal(err)
			}
			for plainOf(c.next()) != "last" {
			}
			if got := plainOf(c.do("PING", "x")); got != "x" {
				t.Errorf("after %v, PING is answered by %v", end, got)
			}
		})
	}
}

// Many watches that have much to catch up with take turns: together they are not more than one connection can take.
func TestRESPManyWatchesCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		const events = 500
		c := h.speak()
		defer c.conn.Close()
		var all []byte
		for i := range events {
			all = resp.AppendCommand(all, "LH.ACQUIRE", fmt.Sprint("r", i), "HOLDER", "h", "REASON", strings.Repeat("x", 200))
		}
		go c.conn.Write(all)
		for range events {
			c.next()
		}
		all = nil
		for i := range maxWatches {
			all = resp.AppendCommand(all, "LH.WATCH", "SINCE", "0", "TAG", fmt.Sprint("w", i))
		}
		go c.conn.Write(all)
		for range maxWatches * (1 + events) {
			if _, err := c.reader.Read(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A connection that watched with RESP2 does other things again after HELLO 3, as its refusal says.
func TestRESPWatchThenHello3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		h.hold("r", "first")
		c := newRESPClient(t, h.raw(""))
		defer c.conn.Close()
		c.do("LH.WATCH")
		c.fails("ERR", "send HELLO 3 first to do more", "LH.GET", "r")
		if got := c.fields("HELLO", "3"); got["proto"] != 3.0 {
			t.Errorf("HELLO is answered by %v", got)
		}
		if got := c.fields("LH.GET", "r"); got["resource"] != "r" && got["path"] != "r" {
			t.Errorf("LH.GET is answered by %v", got)
		}
	})
}
