package client_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// A lane is one connection over RESP on a road. Messages take their time side by side and arrive in order, as those of
// a network do. What was sent arrives, also if its sender has hung up.
type lane struct {
	road *road
	near net.Conn // to the client
	far  net.Conn // to the server

	mu      sync.Mutex // guards what follows
	due     []message  // whose replies are to come
	pushing map[string]message
}

// A parcel is what arrives once it has had its time.
type parcel struct {
	ready  chan struct{} // closed then
	data   []byte        // empty: the connection is cut here
	leaves func()        // is called before it is delivered
}

// dial makes a connection on the road.
func (r *road) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r.mu.Lock()
	dead := r.dead
	r.mu.Unlock()
	if host, _, _ := net.SplitHostPort(address); dead != "" && host == dead {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	far, err := r.server.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ours, near := net.Pipe()
	l := &lane{road: r, near: near, far: far, pushing: map[string]message{}}
	there, back := make(chan *parcel, 1024), make(chan *parcel, 1024)
	r.under.Go(func() { l.commands(there) })
	r.under.Go(func() { l.carry(there, far) })
	r.under.Go(func() { l.answers(back) })
	r.under.Go(func() { l.carry(back, near) })
	return ours, nil
}

// send puts something on its way. What it meets there fills the parcel.
func send(way chan<- *parcel, travel func(p *parcel)) {
	p := &parcel{ready: make(chan struct{}), leaves: func() {}}
	way <- p
	go func() {
		travel(p)
		close(p.ready)
	}()
}

// carry delivers in order. It drops what comes after a cut, and what the other end does not take.
func (l *lane) carry(way <-chan *parcel, to net.Conn) {
	defer to.Close()
	cut := false
	for p := range way {
		<-p.ready
		if len(p.data) == 0 && !cut {
			cut = true
			_, _ = l.near.Close(), l.far.Close()
		}
		if !cut {
			p.leaves()
			_, _ = to.Write(p.data)
		}
	}
}

// commands takes commands from the client.
func (l *lane) commands(there chan<- *parcel) {
	defer close(there)
	var in resp.Input
	for {
		n, err := l.near.Read(in.Space())
		if in.Filled(n); err != nil {
			return
		}
		for {
			args, err := in.Next()
			if err != nil || args == nil {
				break
			}
			l.command(args, there)
		}
		in.Release()
	}
}

// command puts one command on its way.
func (l *lane) command(args [][]byte, there chan<- *parcel) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	m := message{verbOfCommand(words), strings.Join(words, " ")}
	now := l.road.hooks(m)
	send(there, func(p *parcel) {
		if now.before != nil {
			now.before(m.verb)
		}
		if now.keep != nil {
			time.Sleep(now.keep(m))
		}
		p.data = resp.AppendCommand(nil, words...)
		if now.refuse != nil {
			if problem := now.refuse(m); problem != "" {
				// A ping has the place of the command, so that replies stay in order.
				m, p.data = message{"refused", problem}, resp.AppendCommand(nil, "PING")
			}
		}
		p.leaves = func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.due = append(l.due, m)
			if i := slices.Index(words, "PUSH"); i > 0 {
				l.pushing[words[i+1]] = m
			}
		}
	})
}

// verbOfCommand names a message over RESP.
func verbOfCommand(words []string) string {
	name := strings.ToLower(strings.TrimPrefix(words[0], "LH."))
	switch {
	case name == "renew":
		return "look"
	case name == "session":
		return strings.ToLower(words[1])
	case name == "record":
		return "records/" + words[2]
	case name == "get":
		return "resources/" + words[1]
	}
	return name
}

// answers takes replies from the server.
func (l *lane) answers(back chan<- *parcel) {
	defer close(back)
	in := resp.NewReader(l.far)
	for {
		v, err := in.Read()
		if err != nil {
			return
		}
		m := l.belongs(v)
		l.road.mu.Lock()
		after, answered := l.road.after, l.road.answered
		without := l.road.without
		l.road.mu.Unlock()
		w := resp.NewWriter(3, nil)
		switch {
		case m.verb == "refused":
			w.Error("LIMITED", m.text)
		default:
			write(w, v, without)
		}
		data := bytes.Clone(w.Bytes())
		granted := v.Kind != resp.Error
		send(back, func(p *parcel) {
			if answered != nil {
				answered(m.verb, granted)
			}
			if after == nil || after(m.verb) == nil {
				p.data = data
			}
		})
	}
}

// belongs returns what a reply answers: "queued" if a push is to follow, which then answers the acquire.
func (l *lane) belongs(v *resp.Value) (m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.Kind == resp.Push {
		tag := string(v.Items[1].Text)
		m = l.pushing[tag]
		delete(l.pushing, tag)
		return m
	}
	m, l.due = l.due[0], l.due[1:]
	for i := 0; v.Kind == resp.Map && i < len(v.Items); i += 2 {
		if string(v.Items[i].Text) == "waiting" && v.Items[i+1].Kind == resp.Boolean {
			return message{verb: "queued"}
		}
	}
	return m
}

// write writes a reply without some fields of it.
func write(w *resp.Writer, v *resp.Value, without []string) {
	items := v.Items
	switch v.Kind {
	case resp.Error:
		w.Error(v.Code())
	case resp.Simple:
		w.Simple(string(v.Text))
	case resp.Integer:
		w.Int(v.Int)
	case resp.Boolean:
		w.Bool(v.Bool())
	case resp.Null:
		w.Null()
	case resp.Double:
		w.Float(v.Float())
	case resp.Map:
		items = nil
		for i := 0; i < len(v.Items); i += 2 {
			if !slices.Contains(without, string(v.Items[i].Text)) {
				items = append(items, v.Items[i:i+2]...)
			}
		}
		w.Map(len(items) / 2)
	case resp.Array, resp.Set:
		w.Array(len(items))
	case resp.Push:
		w.Push(len(items))
	default:
		w.Bulk(v.Text)
	}
	for i := range items {
		write(w, &items[i], without)
	}
}
