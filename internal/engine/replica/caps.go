package replica

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/wire"
)

// offerCaps proposes the caps from this node's settings while it leads a state in which nobody
// has set any. They go through the log, because they decide inside Apply: servers with
// different settings would otherwise come to different states. IfUnset lets the first one win.
func (n *Node) offerCaps() {
	if n.config.Caps == (leasehold.Caps{}) || n.offering || !n.lead.serving || n.state.HasCaps() {
		return
	}
	command := &core.SetCaps{Caps: n.config.Caps, IfUnset: true, Reason: "from the settings of the server that led " +
		"first"}
	var bytes []byte
	if n.state.Policy() != nil {
		bytes = wire.AppendAsker(bytes, &access.System)
	}
	n.offering = true
	n.inbox = append(n.inbox,
		Call{Bytes: must(wire.AppendCommand(bytes, command)), Done: func(core.Answer, error) { n.offering = false }})
}
