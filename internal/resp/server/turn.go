package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// A turn is a command that is carried out alone.
type turn struct {
	entry *entry
	words [][]byte
	args  [][]byte
	bad   error // what was sent is no command
}

// blocks reports whether it may take a while to carry it out.
func (t *turn) blocks() bool {
	return t.bad == nil && t.entry != nil && (t.entry.command != nil || t.entry.blocks)
}

// refusal says why a command is not carried out; empty: it is.
func (c *Conn) refusal(e *entry, args [][]byte) string {
	if c.draining.Load() && !e.always {
		return stopping
	}
	if k := e.command; k != nil && (len(args) < k.Min || k.Max > 0 && len(args) > k.Max) {
		return wrongNumber
	}
	if c.allow != nil && !e.always {
		return notAllowed
	}
	return ""
}

const (
	stopping    = "the server is stopping: try again"
	wrongNumber = "wrong number of arguments"
	notAllowed  = "not allowed"
)

// perform carries out the command whose turn it is.
func (c *Conn) perform() {
	defer c.survive()
	t := c.turn
	c.turn = turn{}
	switch {
	case t.bad != nil:
		c.out.Error("ERR", t.bad.Error())
	case t.entry == nil:
		c.unknown(t.words)
	case t.entry.command == nil && t.entry.builtin == nil:
		c.unknownSub(t)
	default:
		c.carryOut(t)
	}
}

func (c *Conn) carryOut(t turn) {
	switch c.refusal(t.entry, t.args) {
	case stopping:
		c.out.Error(loading, stopping)
		return
	case wrongNumber:
		c.wrongNumber(strings.ReplaceAll(strings.ToLower(t.entry.name), " ", "|"))
		return
	case notAllowed:
		if err := c.allow(t.entry.name); err != nil {
			c.server.config.Fail(c, &c.out, err)
			return
		}
	}
	switch k := t.entry.command; {
	case k == nil:
		t.entry.builtin(c, t.args)
	case !k.runs(t.args): // it had to wait for Allow, or may block
		c.alone(k, t.args)
	default:
		c.call.Conn, c.call.Args = c, t.args
		defer c.call.unwatch()
		k.Run(&c.call, &c.out)
	}
}

// alone carries out a command that begins, and is not part of a batch.
func (c *Conn) alone(k *Command, args [][]byte) {
	r := c.server.rounds.Get().(*round)
	r.begin(c, k, args)
	r.await()
	r.answer()
	c.server.rounds.Put(r)
}

func (c *Conn) wrongNumber(name string) {
	c.out.Error("ERR", fmt.Sprintf("wrong number of arguments for '%s' command", name))
}

// unknown answers as Redis does: clients look for these words.
func (c *Conn) unknown(words [][]byte) {
	var args strings.Builder
	for _, a := range words[1:] {
		if args.Len() > 128 {
			break
		}
		fmt.Fprintf(&args, "'%s' ", clip(a))
	}
	if instead := c.server.config.Instead; instead != "" {
		args.WriteString("; " + instead)
	}
	c.out.Error("ERR", fmt.Sprintf("unknown command '%s', with args beginning with: %s", clip(words[0]), &args))
}

func (c *Conn) unknownSub(t turn) {
	name := strings.ToUpper(string(t.words[0]))
	known := strings.Join(t.entry.subs.names(), ", ")
	if len(t.args) == 0 {
		c.out.Error("ERR", fmt.Sprintf("%s needs a subcommand: %s", name, known))
		return
	}
	c.out.Error("ERR", fmt.Sprintf("unknown subcommand '%s' of %s; known subcommands: %s",
		clip(t.args[0]), name, known))
}

func clip(b []byte) []byte { return b[:min(len(b), 128)] }

// Wait is for commands that run: it says that this one may take long. Earlier answers and pushes leave now. The
// context is done when the client leaves, too: nobody would notice otherwise, as nothing is
// read from the connection while a command runs.
func (c *Call) Wait() context.Context {
	if c.watch != nil || c.round != nil {
		return c.Conn.ctx
	}
	c.Conn.flush()
	c.watch = make(chan struct{})
	go c.Conn.read(c.watch)
	return c.Conn.ctx
}

// read takes what comes while a command runs, as much as may wait for it.
func (c *Conn) read(ended chan struct{}) {
	defer close(ended)
	for c.in.Buffered() < c.server.ahead() {
		n, err := c.net.Read(c.in.Space())
		c.in.Filled(n)
		if n == 0 && err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				c.cancel()
			}
			return
		}
	}
}

// unwatch ends what Wait began.
func (c *Call) unwatch() {
	if c.watch == nil {
		return
	}
	conn := c.Conn
	conn.mu.Lock()
	conn.waking = true
	_ = conn.net.SetReadDeadline(time.Unix(1, 0))
	conn.mu.Unlock()
	<-c.watch
	c.watch = nil
	conn.mu.Lock()
	conn.waking = false
	_ = conn.net.SetReadDeadline(conn.until)
	conn.held = true
	conn.mu.Unlock()
}

// survive ends a connection whose command panics, and nothing else: others share its goroutine.
func (c *Conn) survive() {
	if said := recover(); said != nil {
		c.panicked(said)
	}
}

func (c *Conn) panicked(said any) {
	c.server.config.Log.Error("a command panicked",
		"from", c.net.RemoteAddr(), "panic", said, "stack", string(debug.Stack()))
	c.ending = true
	c.end()
}
