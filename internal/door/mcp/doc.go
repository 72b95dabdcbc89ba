// Package mcp is the door of agents: the Model Context Protocol at /mcp, as streamable HTTP without sessions. Any
// server answers any call, and what an agent holds is found again by who it is: its principal and the name that it
// gives itself.
//
// What an agent asks for with one lease_acquire is one session of ours, whose id is derived from the agent and from
// the request. The leases, or the places in queues, are bound to it. So a repeated request finds what the first one
// got, one renewal renews all of it, and all of it ends together. A ticket is such a session whose claims still wait:
// nobody has to keep a call open for it.
//
// A call goes through the files in one direction: door.go reads it and finds out who asks, call.go does what the
// tool is for, after agent.go has renewed what the agent holds; operations.go lists the tools, and texts.go has
// what agents read of them; acquire.go, check.go, release.go, list.go, ask.go and break.go let the engine decide,
// and answer.go says what came of it, with what to do next. confirm.go puts a break to the person behind an agent.
//
// What agents and their people see of it is in docs/agents.md.
package mcp
