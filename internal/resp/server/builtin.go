package server

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/internal/resp"
)

// The connection commands of Redis that clients send by themselves, or that people try first.
var builtins map[string]entry

func init() {
	builtins = map[string]entry{
		"HELLO":  {builtin: (*Conn).hello, blocks: true, always: true},
		"AUTH":   {builtin: (*Conn).auth, blocks: true, always: true},
		"PING":   {builtin: (*Conn).ping},
		"ECHO":   {builtin: (*Conn).echo},
		"QUIT":   {builtin: (*Conn).quit, always: true},
		"RESET":  {builtin: (*Conn).reset, blocks: true, always: true},
		"SELECT": {builtin: (*Conn).selectDB},
		"INFO":   {builtin: (*Conn).info},

		"CLIENT SETNAME":             {builtin: (*Conn).clientSetName},
		"CLIENT GETNAME":             {builtin: (*Conn).clientGetName},
		"CLIENT SETINFO":             {builtin: (*Conn).clientSetInfo},
		"CLIENT ID":                  {builtin: (*Conn).clientID},
		"CLIENT INFO":                {builtin: (*Conn).clientInfo},
		"CLIENT LIST":                {builtin: (*Conn).clientInfo}, // nobody sees others
		"CLIENT NO-EVICT":            {builtin: (*Conn).clientSwitch},
		"CLIENT NO-TOUCH":            {builtin: (*Conn).clientSwitch},
		"CLIENT TRACKING":            {builtin: (*Conn).clientTracking},
		"CLIENT MAINT_NOTIFICATIONS": {builtin: (*Conn).clientNotices},

		"COMMAND":       {builtin: (*Conn).command},
		"COMMAND COUNT": {builtin: (*Conn).commandCount},
		"COMMAND DOCS":  {builtin: (*Conn).commandDocs},
		"COMMAND INFO":  {builtin: (*Conn).commandInfo},
		"COMMAND LIST":  {builtin: (*Conn).commandList},
	}
}

// expect reports whether there are as many arguments as a command has, and answers if not.
func (c *Conn) expect(args [][]byte, name string, least, most int) bool {
	if len(args) >= least && len(args) <= most {
		return true
	}
	c.wrongNumber(name)
	return false
}

func (c *Conn) ping(args [][]byte) {
	switch {
	case !c.expect(args, "ping", 0, 1):
	case len(args) == 1:
		c.out.Bulk(args[0])
	default:
		c.out.Simple("PONG")
	}
}

func (c *Conn) echo(args [][]byte) {
	if c.expect(args, "echo", 1, 1) {
		c.out.Bulk(args[0])
	}
}

func (c *Conn) quit([][]byte) {
	c.ending = true
	c.out.OK()
}

func (c *Conn) reset([][]byte) {
	c.setVersion(2)
	c.name, c.allow = "", nil
	if c.server.config.Reset != nil {
		c.server.config.Reset(c)
	}
	c.out.Simple("RESET")
}

func (c *Conn) selectDB(args [][]byte) {
	switch {
	case !c.expect(args, "select", 1, 1):
	case string(args[0]) != "0":
		c.out.Error("ERR", "DB index is out of range: there is only database 0")
	default:
		c.out.OK()
	}
}

func (c *Conn) setVersion(v int) {
	c.mu.Lock() // pushes look at it
	defer c.mu.Unlock()
	c.out.Version = v
}

// auth is AUTH [user] secret.
func (c *Conn) auth(args [][]byte) {
	if !c.expect(args, "auth", 1, 2) {
		return
	}
	user := "default"
	if len(args) == 2 {
		user = string(args[0])
	}
	if c.login(user, string(args[len(args)-1])) {
		c.out.OK()
	}
}

// login reports whether somebody is who they say, and answers if not.
func (c *Conn) login(user, secret string) bool {
	if c.server.config.Login == nil {
		c.out.Error("ERR", "AUTH <password> called without any password configured for the default user. "+
			"Are you sure your configuration is correct?")
		return false
	}
	if err := c.server.config.Login(c.ctx, c, user, secret); err != nil {
		c.server.config.Fail(c, &c.out, err)
		return false
	}
	return true
}

// hello is HELLO [version [AUTH user secret] [SETNAME name]].
func (c *Conn) hello(args [][]byte) {
	version := c.out.Version
	if len(args) > 0 {
		v, err := strconv.Atoi(string(args[0]))
		if err != nil {
			c.out.Error("ERR", "Protocol version is not an integer or out of range")
			return
		}
		if v != 2 && v != 3 {
			c.out.Error("NOPROTO", "unsupported protocol version")
			return
		}
		version, args = v, args[1:]
	}
	var name []byte
	for len(args) > 0 {
		switch option := strings.ToUpper(string(args[0])); {
		case option == "AUTH" && len(args) >= 3:
			if !c.login(string(args[1]), string(args[2])) {
				return
			}
			args = args[3:]
		case option == "SETNAME" && len(args) >= 2:
			if name = args[1]; !c.validName(name) {
				return
			}
			args = args[2:]
		default:
			c.out.Error("ERR", fmt.Sprintf("Syntax error in HELLO option '%s'", clip(args[0])))
			return
		}
	}
	if name != nil {
		c.name = string(name)
	}
	c.setVersion(version)
	c.greeting(&c.out)
}

func (c *Conn) greeting(w *resp.Writer) {
	m := w.OpenMap()
	w.String("server")
	w.String(c.server.config.Name)
	w.String("version")
	w.String(c.server.config.Version)
	w.String("proto")
	w.Int(int64(c.out.Version))
	w.String("id")
	w.Int(c.id)
	w.String("mode")
	w.String("standalone")
	w.String("role")
	w.String("master")
	w.String("modules")
	w.Array(0)
	w.Close(m)
}

// info is INFO [section…]. Clients look here whether the server is loading, and what version
// it has.
func (c *Conn) info([][]byte) {
	k := &c.server.config
	lines := []string{
		"# Server", "server_name:" + k.Name, "server_version:" + k.Version, "redis_mode:standalone",
		"# Persistence", "loading:0", "# Replication", "role:master",
	}
	if k.Info != nil {
		lines = append(lines, k.Info()...)
	}
	c.out.String(strings.Join(lines, "\r\n") + "\r\n")
}
