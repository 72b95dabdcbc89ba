package cluster

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/wire"
)

// offerCaps proposes the caps of this node's settings while it leads a state in which nobody
// has set any. If another node's were first, nothing comes of it.
func (n *Node) offerCaps() {
	if n.Caps == (leasehold.Caps{}) || n.offering || !n.lead.serving || n.State.Level() < core.Level4 || n.State.HasCaps() {
		return
	}
	command := &core.SetCaps{Caps: n.Caps, IfUnset: true, Reason: "from the settings of the server that led first"}
	n.offering = true
	n.inbox = append(n.inbox, Call{Bytes: must(wire.AppendCommand(nil, command)), Done: func(core.Answer, error) { n.offering = false }})
}

// firstCaps returns what is to be proposed of the settings: nothing if they say what holds
// without them.
func firstCaps(settings leasehold.Caps) leasehold.Caps {
	if settings.Or(leasehold.DefaultCaps()) == leasehold.DefaultCaps() {
		return leasehold.Caps{}
	}
	return settings
}
