// Package agent has the commands for people who let agents work: mcp joins an agent to a server, setup and prime tell
// agents of it, guard keeps commits out of what others have leased.
//
// An agent that is told of no server uses one that all agents of its user share. locate.go finds or starts it; a file
// lock sees to it that there is one.
package agent
