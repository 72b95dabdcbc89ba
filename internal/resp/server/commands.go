package server

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/internal/resp"
)

// command is COMMAND: all commands.
func (c *Conn) command(args [][]byte) {
	if len(args) > 0 {
		c.unknownSub(turn{entry: c.server.table["COMMAND"], words: [][]byte{[]byte("COMMAND")}, args: args})
		return
	}
	if !c.mayAskMuch() {
		return
	}
	c.constant("COMMAND", func() {
		names := c.server.table.names()
		c.out.Array(len(names))
		for _, name := range names {
			c.server.table[name].describe(&c.out, name)
		}
	})
}

// constant answers what is always the same, in each version of the protocol: it is written once.
func (c *Conn) constant(name string, write func()) {
	key := fmt.Sprint(name, c.out.Version)
	if known, ok := c.server.constants.Load(key); ok {
		c.out.Reset(append(c.out.Bytes(), known.([]byte)...))
		return
	}
	began := c.out.Len()
	write()
	c.server.constants.Store(key, bytes.Clone(c.out.Bytes()[began:]))
}

// fewNames reports whether no more commands are named than there are, and answers if not: the answer would be many
// times as long as what was asked.
func (c *Conn) fewNames(args [][]byte) bool {
	if most := len(c.server.table); len(args) > most {
		c.out.Error("ERR", fmt.Sprintf("%d commands are named: at most %d can be", len(args), most))
		return false
	}
	return c.mayAskMuch()
}

func (c *Conn) commandCount([][]byte) { c.out.Int(int64(len(c.server.table))) }

func (c *Conn) commandList([][]byte) {
	names := c.server.table.names()
	c.out.Array(len(names))
	for _, name := range names {
		c.out.String(strings.ToLower(name))
	}
}

// commandInfo is COMMAND INFO name…
func (c *Conn) commandInfo(args [][]byte) {
	if !c.fewNames(args) {
		return
	}
	c.out.Array(len(args))
	for _, name := range args {
		if e := c.server.table.find(name); e != nil {
			e.describe(&c.out, string(name))
		} else {
			c.out.Null()
		}
	}
}

// describe writes what clients read of a command: its name, how many words it has (negative:
// at least), flags, and where its keys are. Then there are its categories, hints, key
// specifications and subcommands, as in Redis 7.
func (e *entry) describe(w *resp.Writer, name string) {
	w.Array(10)
	w.String(strings.ToLower(name))
	w.Int(int64(e.arity()))
	w.Array(1)
	if e.command != nil && e.command.Write {
		w.Simple("write")
	} else {
		w.Simple("readonly")
	}
	for range 3 {
		w.Int(0) // no keys: a client must not route by them
	}
	for range 3 {
		w.Array(0)
	}
	subs := e.subs.names()
	w.Array(len(subs))
	for _, sub := range subs {
		e.subs[sub].describe(w, name+"|"+sub)
	}
}

func (e *entry) arity() int {
	k := e.command
	if k == nil {
		return -1
	}
	n := k.Min + 1 + strings.Count(k.Name, " ")
	if k.Max > 0 && k.Max == k.Min {
		return n
	}
	return -n
}

// commandDocs is COMMAND DOCS [name…].
func (c *Conn) commandDocs(args [][]byte) {
	if !c.fewNames(args) {
		return
	}
	var names []string
	for _, a := range args {
		if c.server.table.find(a) != nil {
			names = append(names, strings.ToUpper(string(a)))
		}
	}
	if len(args) == 0 {
		c.constant("COMMAND DOCS", func() { c.docs(c.server.table, c.server.table.names(), "") })
		return
	}
	c.docs(c.server.table, names, "")
}

func (c *Conn) docs(t table, names []string, before string) {
	w := &c.out
	w.Map(len(names))
	for _, name := range names {
		e := t[name]
		w.String(strings.ToLower(before + name))
		m := w.OpenMap()
		w.String("summary")
		w.String(e.summary())
		w.String("group")
		w.String(e.group())
		if len(e.subs) > 0 {
			w.String("subcommands")
			c.docs(e.subs, e.subs.names(), before+name+"|")
		}
		w.Close(m)
	}
}

func (e *entry) summary() string {
	if e.command != nil {
		return e.command.Summary
	}
	return "As in Redis."
}

func (e *entry) group() string {
	if e.builtin != nil {
		return "connection"
	}
	return "generic"
}
