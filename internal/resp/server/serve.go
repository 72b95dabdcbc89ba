package server

import (
	"context"
	"io"
	"time"
)

// serve carries out what comes, in the goroutine of the connection.
func (c *Conn) serve() {
	defer context.AfterFunc(c.stopping, c.drain)()
	for {
		space := c.space()
		if space == nil {
			c.noRoom()
			c.perform()
			c.flush()
			c.leave()
			return
		}
		n, err := c.net.Read(space)
		c.in.Filled(n)
		if n > 0 && !c.work() {
			c.leave()
			return
		}
		if err != nil {
			return
		}
		if c.mayEnter() && !c.enter() {
			c.leave()
			return
		}
	}
}

// visit is how often a connection is read by its own goroutine after it had to do something that blocks: it may do so
// again, and to enter and leave a loop costs as much as some commands.
const visit = 16

func (c *Conn) mayEnter() bool {
	if c.outside > 0 {
		c.outside--
		return false
	}
	return c.greeted && c.server.crowded()
}

// drain lets the connection go on for a while, in which what comes is refused: a command may be
// on its way, and its client shall know that it was not carried out.
func (c *Conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining.Store(true)
	c.until = time.Now().Add(c.server.config.Linger)
	if !c.waking {
		_ = c.net.SetReadDeadline(c.until)
	}
	if c.place != nil {
		time.AfterFunc(c.server.config.Linger, c.lingered)
	}
}

// lingered ends a connection in a loop, which has no deadlines.
func (c *Conn) lingered() {
	c.expired.Store(true)
	c.wake()
}

// leave takes for a moment what still comes: to close a connection with unread bytes would
// reset it, and the client would lose the last answer.
func (c *Conn) leave() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.net.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, c.net)
}

// A pause is why no more commands began.
type pause int

const (
	pauseEmpty pause = iota // no whole command is left
	pauseFull               // a batch has no more
	pauseTurn               // c.turn has to be carried out alone
)

// work carries out all whole commands that have come. It reports whether the connection goes
// on.
func (c *Conn) work() bool {
	c.hold()
	r := c.server.rounds.Get().(*round)
	for {
		why := c.gather(r, c.server.config.Pipeline)
		// Earlier answers are not kept waiting for this batch.
		if r.count > 0 && c.out.Len() > 0 && !c.flushOn() {
			return false
		}
		r.await()
		r.answer()
		if why == pauseTurn {
			if c.turn.blocks() {
				c.outside = visit
			}
			c.perform()
		}
		if why == pauseEmpty || c.ending {
			break
		}
		if c.out.Len() > c.full() && !c.flushOn() {
			return false
		}
	}
	c.server.rounds.Put(r)
	c.in.Release()
	c.clock()
	defer c.giveBack()
	return c.flush()
}

// flushOn sends the answers while there is more to do.
func (c *Conn) flushOn() bool {
	c.flush()
	c.hold()
	return !c.isEnded() // one that is ending still gets the answers to what began
}

// clock notes since when half a command is there, or nothing is under way.
func (c *Conn) clock() {
	if c.heard.Load() == 0 {
		c.heard.Store(c.server.now())
	}
	if c.in.Buffered() > 0 && c.asked.Load() == 0 {
		c.asked.Store(c.server.now())
	}
}

// gather begins the commands that have come, until one has to be carried out alone, or so many
// have begun.
func (c *Conn) gather(r *round, most int) pause {
	count := int64(0)
	defer func() { c.counted(count) }()
	for range most {
		words, err := c.in.Next()
		if err != nil {
			c.server.protocolErrors.Add(1)
			c.turn, c.ending = turn{bad: err}, true
			return pauseTurn
		}
		if words == nil {
			return pauseEmpty
		}
		count++
		if !c.greeted {
			c.greet()
		}
		e, args := c.server.table.of(words)
		if e == nil || e.command == nil || e.command.runs(args) || c.refusal(e, args) != "" || c.blocks() {
			c.turn = turn{entry: e, words: words, args: args}
			return pauseTurn
		}
		r.begin(c, e.command, args)
	}
	return pauseFull
}

func (c *Conn) blocks() bool { return c.server.config.Blocks != nil && c.server.config.Blocks(c) }

// counted says how many whole commands have come. While they are carried out, however long that
// takes, no half one is waited for.
func (c *Conn) counted(commands int64) {
	if commands > 0 {
		c.server.commands.Add(commands)
		c.asked.Store(0)
		c.heard.Store(0)
	}
}

func (c *Conn) greet() {
	c.greeted = true
	if c.server.config.Greeted != nil {
		c.server.config.Greeted(c.net)
	}
}
