package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// What servers ask each other.
const (
	askBegin    byte = iota + 1 // who are you, and did you begin already?
	askJoin                     // take me in
	askStatus                   // how do you do?
	askChange                   // change the members
	askTransfer                 // give the lead away
	askSum                      // what is the hash of your state at an index?
	askHasValue                 // do you have a large value? keep it for a while
	askValue                    // send me a large value
	askMember                   // does this server belong to the cluster? Unknown to v0.1.0
)

// A network is a server's end of the mesh. It is there before the server knows its
// cluster, to find it.
type network struct {
	mesh *peer.Mesh
	dir  *storage.Dir
	log  *slog.Logger

	ctx     context.Context // ends when the server stops
	cancel  context.CancelFunc
	workers sync.WaitGroup

	// engine is nil until the server knows its cluster.
	engine atomic.Pointer[Engine]
	// opening is what others may learn before that.
	opening opening

	strangers strangers
	applied   atomic.Uint64 // how far this server has come

	receiving sync.Mutex // one snapshot at a time

	mu     sync.Mutex // guards what follows
	roster *replica.Roster
	// places is where the others are. Whoever was removed is not among them; whoever the
	// roster does not have yet may be: a server that reads its log again, or joins, comes by
	// all rosters that there ever were, and must not leave its leader for that.
	places map[uint64]peer.Peer
	health map[uint64]heardHealth
}

type heardHealth struct {
	health
	at time.Time
}

// openNetwork listens for other servers; or only prepares to, if this one has no address
// for them.
func openNetwork(c Config, dir *storage.Dir) (*network, error) {
	n := &network{dir: dir, log: c.Log, roster: &replica.Roster{}, places: map[uint64]peer.Peer{}, health: map[uint64]heardHealth{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if err := dir.RemoveParts(); err != nil {
		return nil, err
	}
	listener, err := c.listenPeers()
	if err != nil {
		return nil, err
	}
	n.mesh = peer.New(peer.Config{
		Listener: listener, Handler: n, Log: c.Log, TLS: c.PeerTLS, Dial: c.dialPeer(), Gates: c.Gates,
		Self: peer.Identity{
			Name: c.Name, Dir: dir.Name, Address: c.peerAddress(listener),
			OldestLevel: uint64(replica.KnownLevels.Oldest), NewestLevel: uint64(replica.KnownLevels.Newest),
		},
	})
	n.mesh.Start()
	return n, nil
}

// listenPeers takes the address for other servers; nil: there is none.
func (c Config) listenPeers() (net.Listener, error) {
	if c.peerListener != nil {
		return c.peerListener, nil
	}
	if c.PeerListen == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", c.PeerListen)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with --peer-listen", err)
	}
	if c.PeerTLS == nil && !c.mayBePlain(listener.Addr()) {
		_ = listener.Close()
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
			"traffic between servers on %s needs certificates: give them, or, on one machine alone, use a loopback address and --insecure", listener.Addr())}
	}
	return listener, nil
}

// mayBePlain tells whether traffic with an address needs no certificates.
func (c Config) mayBePlain(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return c.Insecure && ok && tcp.IP.IsLoopback()
}

// dialPeer is how to connect to another server: plainly only within this machine.
func (c Config) dialPeer() func(context.Context, string) (net.Conn, error) {
	if c.peerDial != nil || c.PeerTLS != nil {
		return c.peerDial
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil && !c.mayBePlain(conn.RemoteAddr()) {
			_ = conn.Close()
			return nil, errors.New("it is not on this machine, and there are no certificates")
		}
		return conn, err
	}
}

// peerAddress is where others are told to find this server.
func (c Config) peerAddress(listener net.Listener) string {
	switch {
	case c.PeerAdvertise != "":
		return c.PeerAdvertise
	case listener != nil:
		return listener.Addr().String()
	}
	return ""
}

func (n *network) close() {
	n.cancel()
	n.mesh.Close()
	n.workers.Wait()
}

// attach lets the others talk to a node that is about to run.
func (n *network) attach(e *Engine) {
	self := n.mesh.Self()
	self.Cluster, self.ID = n.dir.Cluster, e.id
	n.mesh.SetSelf(self)
	n.engine.Store(e)
	n.changed(e.node.Roster())
}

// post gives an event to the node, unless that is gone.
func (n *network) post(e replica.Event) {
	if engine := n.engine.Load(); engine != nil {
		engine.disk.Send(e)
	}
}

// changed hears of another roster.
func (n *network) changed(r *replica.Roster) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note(r)
	n.roster = r
	n.keepName()
	n.tellMesh()
}

// note learns from a roster where the others are. What one of them said itself counts
// until the roster has something new of it. The caller has n.mu.
func (n *network) note(r *replica.Roster) {
	for _, m := range r.Peers() {
		place, known := n.places[m.ID]
		// A snapshot from before it said where it is, such as that of a restore, takes
		// nothing away: it could never be told that the snapshot has come.
		if old, _ := n.roster.Peer(m.ID); m.Peer != "" && (!known || old.Peer != m.Peer) {
			place.Address = m.Peer
		}
		place.Name = m.Name
		n.places[m.ID] = place
	}
	for _, id := range r.Removed {
		delete(n.places, id)
	}
}

// keepName calls this server by the name that the others know it by, and that its
// certificate has to have for them.
func (n *network) keepName() {
	self := n.mesh.Self()
	m, _ := n.roster.Member(self.ID)
	if len(n.roster.Members) < 2 || m.Name == "" {
		return
	}
	if m.Name != self.Name {
		n.log.Warn("the cluster knows this server by another name, which stays", "name", m.Name, "given", self.Name)
		self.Name = m.Name
		n.mesh.SetSelf(self)
	}
	if self.Address == "" {
		n.workers.Go(func() { n.post(replica.Expelled{Err: errNoAddress}) })
	}
}

var errNoAddress = &leasehold.Error{Code: leasehold.Invalid, Message: "this server belongs to a cluster of several, and has no address for the others: give --peer-listen"}

// tellMesh says where the others are. The caller has n.mu.
func (n *network) tellMesh() {
	peers := maps.Clone(n.places)
	delete(peers, n.mesh.Self().ID)
	n.mesh.SetPeers(peers)
}

// learn hears from a server itself where it is: it may have moved, or come before the
// entry of the log by which this one would know it.
func (n *network) learn(from peer.Identity) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if place := n.places[from.ID]; from.Address != "" && from.Address != place.Address {
		n.places[from.ID] = peer.Peer{Name: from.Name, Address: from.Address}
		n.tellMesh()
	}
}

func (n *network) nameOf(id uint64) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.places[id].Name
}

func (n *network) current() *replica.Roster {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.roster
}

// Admit tells whether a server may talk to this one.
func (n *network) Admit(from peer.Identity, question bool) *peer.Refusal {
	self, roster := n.mesh.Self(), n.current()
	switch {
	case from.ID == 0 && question:
		return nil // it has no cluster yet, and may ask for one
	case self.Cluster == "" && question && from.Cluster != "":
		return nil // it has one, and may look whether we are to be of it
	case self.Cluster == "":
		return &peer.Refusal{Reason: peer.NotReady, Message: fmt.Sprintf("server %q has no cluster yet", self.Name)}
	case from.Cluster != self.Cluster:
		return &peer.Refusal{Reason: peer.OtherCluster, Message: fmt.Sprintf("server %q belongs to the cluster %s, and not to %s", self.Name, self.Cluster, from.Cluster)}
	case from.ID == self.ID:
		return &peer.Refusal{Reason: peer.Replaced, Message: fmt.Sprintf("server %q has the id %d itself", self.Name, self.ID)}
	}
	if refused := admitMember(roster, from); refused != nil {
		return refused
	}
	if !n.isMember(roster, from) {
		return &peer.Refusal{Reason: peer.NotReady, Message: fmt.Sprintf("server %q does not know yet that server %s belongs to the cluster", self.Name, from)}
	}
	if known := levelsOf(from); !known.Has(roster.Active()) {
		return &peer.Refusal{Reason: peer.WrongLevel, Message: fmt.Sprintf(
			"server %q knows %v, and the cluster is at level %d: start it with another version", from.Name, known, roster.Active())}
	}
	if !question {
		n.learn(from)
	}
	return nil
}

// levelsOf returns the levels that a server says it knows. Versions that say nothing know the
// first alone.
func levelsOf(from peer.Identity) replica.Levels {
	if from.NewestLevel == 0 {
		return replica.Levels{Oldest: core.OldestLevel, Newest: core.Level3}
	}
	return replica.Levels{Oldest: core.Level(from.OldestLevel), Newest: core.Level(from.NewestLevel)}
}

// admitMember tells whether a roster speaks against a server.
func admitMember(roster *replica.Roster, from peer.Identity) *peer.Refusal {
	if err := roster.Admit(from.ID, from.Dir); err != nil {
		reason := peer.Replaced
		if _, member := roster.Peer(from.ID); !member {
			reason = peer.Removed
		}
		return &peer.Refusal{Reason: reason, Message: err.Error()}
	}
	if m, ok := roster.Peer(from.ID); ok && m.Name != "" && m.Name != from.Name {
		return &peer.Refusal{Reason: peer.WrongName, Message: fmt.Sprintf("server %d is called %q, and not %q", m.ID, m.Name, from.Name)}
	}
	return nil
}

// Refused hears that another server does not want this one. Some reasons are for good.
func (n *network) Refused(r *peer.Refusal) {
	if self := n.mesh.Self(); !r.Final() || self.Cluster == "" || r.By.Cluster != self.Cluster {
		return
	}
	n.post(replica.Expelled{Err: &leasehold.Error{Code: leasehold.Refused, Message: r.Message}})
}

// Reached tells that messages get through to a server.
func (n *network) Reached(uint64) {}

// Lost tells that messages do not get through to a server.
func (n *network) Lost(id uint64) { n.post(replica.Unreachable{ID: id}) }

// Message takes a message of another server.
func (n *network) Message(from uint64, kind byte, body []byte) {
	event, err := n.decode(from, kind, body)
	if err != nil {
		n.log.Warn("a message of another server can not be read", "server", n.nameOf(from), "kind", kind, "err", err)
		return
	}
	if event != nil {
		n.post(event)
	}
}

func (n *network) decode(from uint64, kind byte, body []byte) (replica.Event, error) {
	switch kind {
	case messageRaft:
		m, err := decodeRaft(from, body)
		return replica.Received{Message: m}, err
	case messageRelay:
		r, err := decodeRelay(body)
		return replica.Relayed{From: from, Relay: r}, err
	case messagePlaces:
		places, err := decodePlaces(body)
		return replica.Placed(places), err
	case messageHealth:
		h, err := decodeHealth(body)
		n.heardHealth(from, h)
		return nil, err
	}
	return nil, nil // a newer version's: it does not count on being understood
}

// decodeRaft reads a message of raft. Nobody can send one in the name of another, and a
// snapshot comes with its file.
func decodeRaft(from uint64, body []byte) (*raftpb.Message, error) {
	m := &raftpb.Message{}
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, err
	}
	if m.GetFrom() != from || m.GetType() == raftpb.MsgSnap {
		return nil, errMessage
	}
	return m, nil
}

// Stream takes a large file of another server.
func (n *network) Stream(ctx context.Context, from peer.Identity, kind byte, head []byte, body io.Reader) error {
	if kind == streamValue {
		e := n.engine.Load()
		if e == nil {
			return engine.Unavailable("this server has no cluster yet: try again in a moment")
		}
		return e.takeValue(ctx, from, head, body)
	}
	if kind != streamSnapshot {
		return fmt.Errorf("this version does not know what a file of kind %d is", kind)
	}
	m := &raftpb.Message{}
	if err := proto.Unmarshal(head, m); err != nil {
		return err
	}
	if m.GetFrom() != from.ID || m.GetType() != raftpb.MsgSnap {
		return errMessage
	}
	if !n.receiving.TryLock() {
		return errors.New("another snapshot is just arriving")
	}
	defer n.receiving.Unlock()
	start := time.Now()
	meta := m.GetSnapshot().GetMetadata()
	if e := n.engine.Load(); e != nil {
		e.disk.MakeRoom()
	}
	s, err := n.dir.ReceiveState(meta.GetIndex(), meta.GetTerm(), body, ctx.Done())
	if err != nil {
		return err
	}
	n.log.Info("a snapshot of another server arrived", "server", from.Name, "index", meta.GetIndex(), "took", time.Since(start))
	if e := n.engine.Load(); e != nil && s.State.HasValues() {
		e.hunt.doubt(meta.GetIndex())
	}
	n.post(replica.Received{Message: m, State: s.State, Roster: s.Roster})
	return nil
}

// Ask answers a question of another server.
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
	return nil, &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("this version does not know question %d", kind)}
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

// askAddress asks whoever is at an address.
func askAddress[Q, A any](ctx context.Context, n *network, address string, kind byte, q Q) (A, error) {
	return question[Q, A](q, func(body []byte) ([]byte, error) { return n.mesh.AskAt(ctx, address, kind, body) })
}

func (n *network) heardHealth(from uint64, h health) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.health[from] = heardHealth{h, time.Now()}
}

// healths returns how the others do, as they said lately.
func (n *network) healths() map[uint64]health {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[uint64]health{}
	for id, h := range n.health {
		if time.Since(h.at) <= healthFor {
			all[id] = h.health
		}
	}
	return all
}

// heardAgo is how long ago others said how they do, in nanoseconds.
func (n *network) heardAgo() map[uint64]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[uint64]int64{}
	for id, h := range n.health {
		all[id] = int64(time.Since(h.at))
	}
	return all
}

// diedFull reports whether the last that was heard of a server is that its disk is full.
func (n *network) diedFull(id uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health[id].lowRoom
}

// isFull tells whether a server said lately that it has hardly any room.
func (n *network) isFull(id uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.health[id]
	return h.lowRoom && time.Since(h.at) <= healthFor
}

// missing returns the names of those to whom there is no connection.
func (n *network) missing() (names []string) {
	peers := n.mesh.Peers()
	for _, m := range n.current().Members {
		if m.ID != n.mesh.Self().ID && !peers[m.ID].Connected {
			names = append(names, m.Name)
		}
	}
	return names
}

// tellHealth says to all others how this server does.
func (n *network) tellHealth(h health) {
	n.applied.Store(h.applied)
	body := appendHealth(nil, h)
	for id := range n.mesh.Peers() {
		n.mesh.SendUrgent(id, messageHealth, body)
	}
}
