package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Ask answers a question of another server. A server without a cluster may ask only how to get
// one.
func (n *network) Ask(ctx context.Context, from peer.Identity, kind byte, body []byte) ([]byte, error) {
	if kind == askBegin {
		return answer(body, func(q beginQuestion) (beginAnswer, error) { return n.opening.answer(q) })
	}
	e := n.engine.Load()
	if e == nil {
		return nil, engine.Unavailable("this server has no cluster yet: try again in a moment")
	}
	switch {
	case kind == askJoin:
		return answer(body, func(m replica.Member) (joinAnswer, error) { return e.takeIn(ctx, from, m) })
	case from.ID == 0 || from.Cluster != n.dir.Cluster:
		return nil, &leasehold.Error{Code: leasehold.Denied, Message: "only members of the cluster may ask this"}
	}
	switch kind {
	case askStatus:
		return answer(body, func(struct{}) (status, error) { return e.status(ctx) })
	case askChange:
		return answer(body, func(c replica.Change) (changeAnswer, error) { return e.changeHere(ctx, c) })
	case askTransfer:
		return answer(body, func(to uint64) (uint64, error) { return e.transferHere(ctx, to) })
	case askSum:
		return answer(body, func(index uint64) (string, error) { return e.sums.at(ctx, index) })
	case askHasValue:
		return answer(body, func(v valueName) (bool, error) { return e.hasValue(v) })
	case askMember:
		return answer(body, func(who peer.Identity) (bool, error) { return knows(n.current(), who), nil })
	case askValue:
		return answer(body, func(v valueName) (bool, error) { return e.sendValue(ctx, from.ID, v) })
	}
	return nil, &leasehold.Error{Code: leasehold.Invalid,
		Message: fmt.Sprintf("unknown question %d: the other server runs a newer version", kind)}
}

// answer reads a question, and writes the answer to it.
func answer[Q, A any](body []byte, fn func(Q) (A, error)) ([]byte, error) {
	var q Q
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: "the question is damaged"}
	}
	a, err := fn(q)
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// question writes a question, asks it, and reads the answer.
func question[Q, A any](q Q, ask func(body []byte) ([]byte, error)) (a A, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	body, err = ask(body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return a, engine.Undecided("the answer is damaged")
	}
	return a, nil
}

// askServer asks a member.
func askServer[Q, A any](ctx context.Context, n *network, to uint64, kind byte, q Q) (A, error) {
	return question[Q, A](q, func(body []byte) ([]byte, error) { return n.mesh.Ask(ctx, to, kind, body) })
}

// askAddress asks the server at an address.
func askAddress[Q, A any](ctx context.Context, n *network, address string, kind byte, q Q) (A, error) {
	return question[Q, A](q, func(body []byte) ([]byte, error) { return n.mesh.AskAt(ctx, address, kind, body) })
}
