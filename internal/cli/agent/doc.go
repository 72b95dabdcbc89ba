// Package agent has the commands for people who let agents work: mcp joins an agent to a server, setup and prime tell
// agents of it, guard keeps commits out of what others have leased.
//
// # One world
//
// An agent that is told of no server uses one that all agents of its user share: two agents with a server each would
// both be told that they hold the same file. locate.go finds or starts that server. It is safe by two locks of the
// kernel, which end with the process that has them, however it ends:
//
//   - start is locked, exclusively, by who looks for a server and starts it if there is none. Agents that come at the
//     same time wait, and find the one that was started.
//   - clients is locked, shared, by every agent for as long as it lives. The server tries to lock it exclusively: if it
//     can, it is alone. When it has been alone for a while it keeps the lock and ends, so that an agent which comes in
//     that moment waits until it is gone, and starts another.
//
// # The bridge
//
// bridge.go passes the calls of an agent on to the door of a server. It has no tool of its own, so that nothing about
// leases is decided here, and agents see the tools of the server that they are joined to. If a server
// has a question to the person behind an agent, confirm.go asks where the agent's program does not do so itself.
//
// # Whose hook is it
//
// Hooks of an agent's program are processes of their own, which nobody told the name of the agent. mine.go finds it by
// kinship: the program that started the hook also started "leasehold mcp", which left a file with both numbers.
package agent
