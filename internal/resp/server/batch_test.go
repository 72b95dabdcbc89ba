package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What came together is submitted together, and answered by one write.
func TestBatch(t *testing.T) {
	b := newBench(Config{})
	c := b.start(t, t.Context())
	c.send("HOT 1", "hot 2", "Hot 3 4", "NOW 5")
	c.expect("*(1)", "*(2)", "*(3 4)", "*(5)")
	if !slices.Equal(b.submits, []int{3}) || b.writes.Load() != 1 {
		t.Errorf("submitted %v, %d writes", b.submits, b.writes.Load())
	}
}

// What is done at once needs no Submit.
func TestBatchDoneAtOnce(t *testing.T) {
	b := newBench(Config{})
	c := b.start(t, t.Context())
	c.send("NOW 1", "NOW 2")
	c.expect("*(1)", "*(2)")
	if len(b.submits) > 0 {
		t.Errorf("submitted %v", b.submits)
	}
}

// Answers come in the order of the commands, of whatever sort these are.
func TestOrder(t *testing.T) {
	b := newBench(Config{})
	c := b.start(t, t.Context())
	c.send("HOT 1", "PING", "HOT 2", "HOT 3", "RUN 4", "NOPE 5", "NOW", "HOT 6", "noun run 7", "NOUN", "NOUN NOPE",
		"noun hot 8", "noun hot", "PING 9")
	c.expect("*(1)", "PONG", "*(2)", "*(3)", "*(4)", "-ERR unknown command 'NOPE', with args beginning with: '5' ",
		"-ERR wrong number of arguments for 'now' command", "*(6)", "*(7)",
		"-ERR NOUN needs a subcommand: HOT, RUN", "-ERR unknown subcommand 'NOPE' of NOUN; known subcommands: HOT, RUN",
		"*(8)", "-ERR wrong number of arguments for 'noun|hot' command", "9")
	if !slices.Equal(b.submits, []int{1, 2, 1}) {
		t.Errorf("submitted %v", b.submits)
	}
}

// A pipeline of any length is carried out in batches that have a limit, and answers are not
// kept waiting for the next batch.
func TestLongPipeline(t *testing.T) {
	b := newBench(Config{Pipeline: 10})
	b.gate = make(chan struct{})
	c := b.start(t, t.Context())
	var commands, want []string
	for i := range 25 {
		commands = append(commands, fmt.Sprint("HOT ", i))
		want = append(want, fmt.Sprintf("*(%d)", i))
	}
	go c.send(commands...)
	for part := range slices.Chunk(want, 10) {
		b.gate <- struct{}{}
		c.expect(part...)
	}
	if !slices.Equal(b.submits, []int{10, 10, 5}) {
		t.Errorf("submitted %v", b.submits)
	}
}

// A builtin's answer is not kept waiting for what comes after it, either.
func TestAnswerBeforeSubmit(t *testing.T) {
	b := newBench(Config{})
	b.gate = make(chan struct{})
	c := b.start(t, t.Context())
	c.send("PING", "HOT 1")
	c.expect("PONG")
	b.gate <- struct{}{}
	c.expect("*(1)")
}

func TestProtocolErrors(t *testing.T) {
	for sent, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n":             "-ERR Protocol error: expected '*', got 'G'",
		"*1\r\n$1048577\r\n":                 "-ERR Protocol error: invalid bulk length: a command may have 1048576 bytes",
		"*4097\r\n":                          "-ERR Protocol error: invalid multibulk length: a command may have 4096 arguments",
		"*2\r\n$3\r\nHOT\r\n:1\r\n":          "-ERR Protocol error: expected '$', got ':'",
		"*1\r\n$4\r\nPING\r\nPING\r\n":       "PONG -ERR Protocol error: expected '*', got 'P'",
		"*2\r\n$3\r\nHOT\r\n$1\r\n1\r\n\x00": `*(1) -ERR Protocol error: expected '*', got '\x00'`,
	} {
		b := newBench(Config{})
		c := b.start(t, t.Context())
		go c.sendBytes(sent)
		var got []string
		for text := c.read(); text != "EOF"; text = c.read() {
			got = append(got, text)
		}
		if strings.Join(got, " ") != want || b.protocolErrors.Load() != 1 {
			t.Errorf("%q: %q", sent, got)
		}
		<-c.ended
	}
}

// A command that comes in parts is carried out when it is whole; one that does not come whole
// in time ends the connection.
func TestHalfCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{})
		c := b.start(t, t.Context())
		for _, part := range []string{"*1", "\r\n$4\r\nPI", "NG\r\n*1\r\n$4\r\nPING\r\n*1"} {
			time.Sleep(6 * time.Second)
			c.sendBytes(part)
		}
		c.expect("PONG", "PONG")
		begun := time.Now()
		go func() {
			for range 5 { // bytes that finish nothing do not help
				time.Sleep(4 * time.Second)
				_, _ = c.Write([]byte("0"))
			}
		}()
		if got := c.read(); got != "EOF" {
			t.Error(got)
		}
		if took := time.Since(begun); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("it was cut off after %v", took)
		}
		<-c.ended
	})
}

// A client that has sent a command may be silent for as long as it likes; one that never sends
// any may not.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{IdleTime: time.Hour * 24})
		c := b.start(t, t.Context())
		c.send("PING")
		c.expect("PONG")
		time.Sleep(24 * time.Hour)
		c.send("PING")
		c.expect("PONG")
		if b.greeted.Load() != 1 {
			t.Errorf("greeted %d times", b.greeted.Load())
		}
		silent := b.start(t, t.Context())
		begun := time.Now()
		silent.expect("EOF")
		if took := time.Since(begun); took > 22*time.Second {
			t.Errorf("it was cut off after %v", took)
		}
	})
}
