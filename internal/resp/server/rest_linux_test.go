package server

import "testing"

// What was sent before something that is no command is carried out, and the client is told what is wrong.
func TestAnswersBeforeAProtocolError(t *testing.T) {
	for _, crowd := range []int{1, -1} {
		b := newBench(Config{Crowd: crowd})
		c := b.dial(t, t.Context())
		c.send("NOW 0") // the loop has it from now on, if there is one
		c.expect("*(0)")
		c.sendBytes("*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nHOT\r\n$1\r\n1\r\nGET / HTTP/1.1\r\n")
		c.expect("PONG", "*(1)", "-ERR Protocol error: expected '*', got 'G'", "EOF")
	}
}

// RESET ends what a connection waits for, which may take a while: no other connection waits with it.
func TestLoopLeavesReset(t *testing.T) {
	stalled := make(chan struct{})
	b := newBench(Config{Crowd: 1, Reset: func(*Conn) {
		stalled <- struct{}{}
		<-stalled
	}})
	c, other := b.dial(t, t.Context()), b.dial(t, t.Context())
	c.send("NOW 0")
	c.expect("*(0)")
	c.send("RESET")
	<-stalled
	other.send("HOT 1", "RUN 2")
	other.expect("*(1)", "*(2)")
	stalled <- struct{}{}
	c.expect("RESET")
}
