package server

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/resp"
)

// start serves one connection of a pipe, and returns the client's end of it.
func start(t *testing.T, s *Server, ctx context.Context) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer theirs.Close()
		s.Serve(ctx, theirs)
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		<-ended
	})
	return &client{t: t, Conn: ours, reader: resp.NewReader(ours), ended: ended}
}

type client struct {
	net.Conn
	t      *testing.T
	reader *resp.Reader
	ended  chan struct{}
}

// send sends commands, words divided by spaces, in one piece.
func (c *client) send(commands ...string) {
	c.t.Helper()
	var b []byte
	for _, command := range commands {
		b = resp.AppendCommand(b, strings.Fields(command)...)
	}
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next thing that comes, as a person would write it.
func (c *client) read() string {
	c.t.Helper()
	v, err := c.reader.Read()
	if err != nil {
		return err.Error()
	}
	return show(v)
}

func (c *client) ask(command string) string {
	c.t.Helper()
	c.send(command)
	return c.read()
}

func show(v *resp.Value) string {
	switch v.Kind {
	case resp.Simple, resp.Bulk, resp.Double, resp.Big:
		return string(v.Text)
	case resp.Error:
		return "-" + string(v.Text)
	case resp.Integer:
		return string(resp.AppendBulkInt(nil, v.Int)[4:][:1])
	case resp.Null:
		return "null"
	}
	var items []string
	for i := range v.Items {
		items = append(items, show(&v.Items[i]))
	}
	return string(v.Kind) + "(" + strings.Join(items, " ") + ")"
}

func TestPing(t *testing.T) {
	c := start(t, New(Config{}), t.Context())
	if got := c.ask("PING"); got != "PONG" {
		t.Error(got)
	}
	if got := c.ask("hello 3"); !strings.HasPrefix(got, "%(server leasehold version") {
		t.Error(got)
	}
}
