package mcp

import (
	"net/url"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// tools are what this door is for. A header has the name, since an HTTP client has no process that could give it one.
var tools = []door.Tool{{ID: "mcp", Name: "Agents (MCP)",
	What: "Tools by which Claude, Codex, Cursor and other agents take leases before they change things.",
	Text: func(p door.Place) string {
		return door.Lines(
			"# An agent on this machine needs no address: leasehold setup claude",
			"{",
			`  "mcpServers": {`,
			`    "leasehold": {`,
			`      "type": "http",`,
			`      "url": "`+p.Origin+"/mcp"+query(p)+`",`,
			`      "headers": {`+door.If(p.Access, ` "Authorization": "Bearer lh_…",`)+
				` "`+AgentHeader+`": "A-NAME-OF-ITS-OWN" }`,
			"    }",
			"  }",
			"}")
	}}}

// query says the namespace where it is not the usual one.
func query(p door.Place) string {
	if p.Namespace == leasehold.DefaultNamespace {
		return ""
	}
	return "?namespace=" + url.QueryEscape(p.Namespace)
}
