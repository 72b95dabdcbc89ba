package server

import (
	"context"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/resp"
)

// What clients of Redis send by themselves, with what they get.
func TestBuiltins(t *testing.T) {
	b := newBench(Config{Version: "1.2.3", Info: func() []string { return []string{"# Leases", "leases:7"} }})
	c := b.start(t, t.Context())
	for _, test := range []struct{ command, want string }{
		{"PING", "PONG"},
		{"ping hi", "hi"},
		{"PING a b", "-ERR wrong number of arguments for 'ping' command"},
		{"ECHO hi", "hi"},
		{"ECHO", "-ERR wrong number of arguments for 'echo' command"},
		{"HELLO", "*(server leasehold version 1.2.3 proto 2 id 1 mode standalone role master modules *())"},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"HELLO x", "-ERR Protocol version is not an integer or out of range"},
		{"HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'"},
		{"HELLO 3 SETNAME a", "%(server leasehold version 1.2.3 proto 3 id 1 mode standalone role master modules *())"},
		{"HELLO", "%(server leasehold version 1.2.3 proto 3 id 1 mode standalone role master modules *())"},
		{"CLIENT GETNAME", "a"},
		{"CLIENT SETNAME b", "OK"},
		{"CLIENT SETNAME b\x01", "-ERR Client names cannot contain spaces, newlines or special characters."},
		{"CLIENT GETNAME", "b"},
		{"CLIENT SETINFO lib-name go-redis(,go1.26)", "OK"},
		{"CLIENT SETINFO LIB-VER 9.23.0", "OK"},
		{"CLIENT SETINFO NOPE x", "-ERR Unrecognized option 'NOPE'"},
		{"CLIENT ID", "1"},
		{"CLIENT INFO", "id=1 addr=pipe laddr=pipe name=b db=0 resp=3 lib-name=go-redis(,go1.26) lib-ver=9.23.0\n"},
		{"CLIENT LIST", "id=1 addr=pipe laddr=pipe name=b db=0 resp=3 lib-name=go-redis(,go1.26) lib-ver=9.23.0\n"},
		{"CLIENT NO-EVICT on", "OK"},
		{"CLIENT NO-TOUCH maybe", "-ERR syntax error"},
		{"CLIENT TRACKING off", "OK"},
		{"CLIENT TRACKING on", "-ERR client-side caching is not supported"},
		{"CLIENT MAINT_NOTIFICATIONS ON", "-ERR maintenance notifications are not supported"},
		{"SELECT 0", "OK"},
		{"SELECT 1", "-ERR DB index is out of range: there is only database 0"},
		{"AUTH x", "-ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?"},
		{"COMMAND COUNT", "17"},
		{"COMMAND INFO now nope", "*(*(now -2 *(readonly) 0 0 0 *() *() *() *()) null)"},
		{"COMMAND INFO noun", "*(*(noun -1 *(readonly) 0 0 0 *() *() *() " +
			"*(*(noun|hot -3 *(readonly) 0 0 0 *() *() *() *()) *(noun|run -2 *(readonly) 0 0 0 *() *() *() *()))))"},
		{"COMMAND DOCS now nope", "%(now %(summary  group generic))"},
		{"COMMAND GETKEYS x", "-ERR unknown subcommand 'GETKEYS' of COMMAND; known subcommands: COUNT, DOCS, INFO, LIST"},
		{"RESET", "RESET"},
		{"CLIENT GETNAME", "null"},
		{"HELLO 2", "*(server leasehold version 1.2.3 proto 2 id 1 mode standalone role master modules *())"},
		{"QUIT", "OK"},
	} {
		if got := c.ask(test.command); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.command, got, test.want)
		}
	}
	c.expect("EOF")
	<-c.ended
}

func TestLists(t *testing.T) {
	b := newBench(Config{Version: "1.2.3", Info: func() []string { return []string{"# Leases", "leases:7"} }})
	c := b.start(t, t.Context())
	for command, part := range map[string]string{
		"INFO":         "loading:0\r\n",
		"INFO server":  "# Leases\r\nleases:7\r\n",
		"COMMAND":      "*(hot -1 *(write)",
		"COMMAND DOCS": "subcommands *(noun|hot *(summary",
		"COMMAND LIST": "hello hot info noun now ping quit",
	} {
		if got := c.ask(command); !strings.Contains(got, part) {
			t.Errorf("%s: %s", command, got)
		}
	}
}

func TestLogin(t *testing.T) {
	b := newBench(Config{Login: func(_ context.Context, c *Conn, user, secret string) error {
		if secret != "right" {
			return &resp.Failure{Code: "WRONGPASS", Text: "invalid username-password pair or user is disabled."}
		}
		c.State = user
		return nil
	}})
	c := b.start(t, t.Context())
	wrong := "-WRONGPASS invalid username-password pair or user is disabled."
	for _, test := range []struct{ command, want, user string }{
		{"AUTH", "-ERR wrong number of arguments for 'auth' command", ""},
		{"AUTH wrong", wrong, ""},
		{"AUTH right", "OK", "default"},
		{"AUTH anna wrong", wrong, "default"},
		{"AUTH anna right", "OK", "anna"},
		{"HELLO 3 AUTH ben wrong", wrong, "anna"},
	} {
		got := c.ask(test.command)
		user, _ := b.connOf(t).State.(string)
		if got != test.want || user != test.user {
			t.Errorf("%s: %s, as %q", test.command, got, user)
		}
	}
	if got := c.ask("HELLO"); !strings.HasPrefix(got, "*(") {
		t.Error("a refused HELLO changed the version:", got)
	}
	if got := c.ask("HELLO 3 AUTH ben right SETNAME x"); !strings.HasPrefix(got, "%(") || b.connOf(t).State != "ben" {
		t.Error(got, b.connOf(t).State)
	}
}

func TestAllow(t *testing.T) {
	b := newBench(Config{})
	c := b.start(t, t.Context())
	c.send("HOT 1", "RESTRICT", "HOT 2", "PING", "NOW 3", "RUN 4", "RESET", "HOT 5")
	c.expect("*(1)", "OK", "-NOAUTH HOT is not allowed", "PONG", "*(3)", "-NOAUTH RUN is not allowed", "RESET", "*(5)")
}

func TestOpenRefuses(t *testing.T) {
	b := newBench(Config{Open: func(*Conn) error { return &resp.Failure{Code: "DENIED", Text: "not you"} }})
	b.start(t, t.Context()).expect("-DENIED not you", "EOF")
	if b.closed.Load() != 0 {
		t.Error("what was not opened was closed")
	}
}
