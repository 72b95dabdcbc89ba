package sim

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// A network carries what servers send each other, if it does.
type network struct {
	world *World
	deaf  time.Duration // until when answers to clients are lost, mostly
}

// loses tells whether an answer to a client is lost.
func (n *network) loses() bool {
	w := n.world
	return !w.quiet && (n.deaf > w.now && w.chance(70) || w.random.IntN(200) == 0)
}

// Send carries raft's messages.
func (n *network) Send([]*raftpb.Message) {}

func (n *network) heal() {}
