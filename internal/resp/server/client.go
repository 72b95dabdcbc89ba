package server

import (
	"fmt"
	"strings"
)

// validName reports whether a name can be shown in a list, and answers if not.
func (c *Conn) validName(name []byte) bool {
	if len(name) > 128 {
		c.out.Error("ERR", "Client names cannot be longer than 128 bytes")
		return false
	}
	if !graphic(name) {
		c.out.Error("ERR", "Client names cannot contain spaces, newlines or special characters.")
		return false
	}
	return true
}

func graphic(text []byte) bool {
	for _, b := range text {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func (c *Conn) clientSetName(args [][]byte) {
	if c.expect(args, "client|setname", 1, 1) && c.validName(args[0]) {
		c.name = string(args[0])
		c.out.OK()
	}
}

func (c *Conn) clientGetName([][]byte) {
	if c.name == "" {
		c.out.Null()
		return
	}
	c.out.String(c.name)
}

// clientSetInfo is CLIENT SETINFO LIB-NAME|LIB-VER text.
func (c *Conn) clientSetInfo(args [][]byte) {
	if !c.expect(args, "client|setinfo", 2, 2) {
		return
	}
	which := -1
	switch strings.ToUpper(string(args[0])) {
	case "LIB-NAME":
		which = 0
	case "LIB-VER":
		which = 1
	default:
		c.out.Error("ERR", fmt.Sprintf("Unrecognized option '%s'", clip(args[0])))
		return
	}
	if !graphic(args[1]) || len(args[1]) > 128 {
		c.out.Error("ERR", fmt.Sprintf("%s cannot contain spaces, newlines or special characters.",
			strings.ToLower(string(args[0]))))
		return
	}
	c.library[which] = string(args[1])
	if named := c.server.config.Named; named != nil {
		named(c.net, strings.Trim(c.library[0]+"/"+c.library[1], "/"))
	}
	c.out.OK()
}

func (c *Conn) clientID([][]byte) { c.out.Int(c.id) }

// clientInfo is CLIENT INFO, and CLIENT LIST: of this connection alone.
func (c *Conn) clientInfo([][]byte) {
	c.out.String(fmt.Sprintf("id=%d addr=%s laddr=%s name=%s db=0 resp=%d lib-name=%s lib-ver=%s\n",
		c.id, c.net.RemoteAddr(), c.net.LocalAddr(), c.name, c.out.Version, c.library[0], c.library[1]))
}

// clientSwitch is what means nothing here: CLIENT NO-EVICT on|off, CLIENT NO-TOUCH on|off.
func (c *Conn) clientSwitch(args [][]byte) {
	if !c.expect(args, "client", 1, 1) {
		return
	}
	if word := strings.ToLower(string(args[0])); word != "on" && word != "off" {
		c.out.Error("ERR", "syntax error")
		return
	}
	c.out.OK()
}

func (c *Conn) clientTracking(args [][]byte) {
	if len(args) == 0 || !strings.EqualFold(string(args[0]), "off") {
		c.out.Error("ERR", "client-side caching is not supported")
		return
	}
	c.out.OK()
}

// clientNotices is what newer clients ask for if they can have it.
func (c *Conn) clientNotices(args [][]byte) {
	if len(args) == 0 || !strings.EqualFold(string(args[0]), "off") {
		c.out.Error("ERR", "maintenance notifications are not supported")
		return
	}
	c.out.OK()
}
