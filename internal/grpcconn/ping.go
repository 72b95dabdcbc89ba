package grpcconn

import (
	"time"

	"golang.org/x/net/http2"
)

// A client of grpc-go sends a ping with the first bytes of each answer, unless one is under way, to learn how much the
// network can carry. An answer to it costs both sides as much as a small call. It therefore waits for this long, and
// so does the next ping; while much is sent, where the client needs to know, it does not wait.
const pingWait = 20 * time.Millisecond

// muchSent is how much is sent between two pings if there is more to it than small answers.
const muchSent = 32 << 10

// pings are what clients asked. The connection's mu guards them.
type pings struct {
	owed  int     // pings that are not answered yet
	data  [8]byte // of the first of them
	timer *time.Timer
	sent  int  // bytes since the last ping
	asked bool // the client was asked whether it is there
}

// handlePing answers a ping, soon. Only one waits: a client that sends a second one measures nothing.
func (c *conn) handlePing(f *http2.PingFrame) {
	if f.IsAck() {
		c.asked = false
		return
	}
	if c.owed > 0 || c.pings.sent > muchSent {
		c.answerPing()
		c.putPing(true, f.Data)
		c.flushSoon()
		return
	}
	c.owed, c.data = 1, f.Data
	if c.timer == nil {
		c.timer = time.AfterFunc(pingWait, c.pingDue)
	} else {
		c.timer.Reset(pingWait)
	}
}

// pingDue answers the ping that waited.
func (c *conn) pingDue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answerPing()
	c.flush()
}

func (c *conn) answerPing() {
	c.pings.sent = 0
	if c.owed > 0 {
		c.owed = 0
		c.timer.Stop()
		c.putPing(true, c.data)
	}
}

func (p *pings) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
