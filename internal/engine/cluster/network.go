package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// What servers ask each other. The numbers are shared by versions that run side by side during
// an upgrade: add at the end only.
const (
	askBegin    byte = iota + 1 // who are you, and did you begin already?
	askJoin                     // take me in
	askStatus                   // how do you do?
	askChange                   // change the members
	askTransfer                 // give the lead away
	askSum                      // what is the hash of your state at an index?
	askHasValue                 // do you have a large value? keep it for a while
	askValue                    // send me a large value
	askMember                   // does this server belong to the cluster?
)

// A network is a server's end of the mesh. It exists before the server knows its cluster,
// because it is how the server finds it.
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

	receiving receiving

	mu     sync.Mutex // guards what follows
	roster *replica.Roster
	took   *replica.Roster // of the cluster when it took this server in; nil: that was before this start
	// places is where the others are. A server that was removed is not in it; one that the
	// roster does not have yet may be: a server that replays its log, or joins, passes through
	// all rosters that there ever were, and must not lose its leader's address on the way.
	places map[uint64]peer.Peer
	health map[uint64]heardHealth
}

type heardHealth struct {
	health
	at time.Time
}

// openNetwork listens for other servers, or only prepares to if this one has no address for
// them.
func openNetwork(c Config, dir *storage.Dir) (*network, error) {
	n := &network{dir: dir, log: c.Log, roster: &replica.Roster{}, places: map[uint64]peer.Peer{},
		health: map[uint64]heardHealth{}}
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
			OldestLevel: uint64(c.known().Oldest), NewestLevel: uint64(c.known().Newest),
		},
	})
	n.mesh.Start()
	return n, nil
}

// close ends all connections, and waits for the goroutines that work on them.
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

// note learns from a roster where the others are. What a server said itself counts until the
// roster has something new about it. The caller holds n.mu.
func (n *network) note(r *replica.Roster) {
	for _, m := range r.Peers() {
		place, known := n.places[m.ID]
		// A snapshot from before it announced its address, such as that of a restore, takes
		// nothing away: otherwise it could never be told that the snapshot has arrived.
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

// keepName gives this server the name that the others know it by, and that its certificate has
// to have.
func (n *network) keepName() {
	self := n.mesh.Self()
	m, _ := n.roster.Member(self.ID)
	if len(n.roster.Members) < 2 || m.Name == "" {
		return
	}
	if m.Name != self.Name {
		n.log.Warn("the cluster knows this server by another name, which it keeps", "name", m.Name, "given", self.Name)
		self.Name = m.Name
		n.mesh.SetSelf(self)
	}
	if self.Address == "" {
		n.workers.Go(func() { n.post(replica.Expelled{Err: errNoAddress}) })
	}
}

var errNoAddress = &leasehold.Error{Code: leasehold.Invalid, Message: "this server belongs to a cluster of several, " +
	"and has no address for the others: give --peer-listen"}

// tellMesh tells the mesh where the others are. The caller holds n.mu.
func (n *network) tellMesh() {
	peers := maps.Clone(n.places)
	delete(peers, n.mesh.Self().ID)
	n.mesh.SetPeers(peers)
}

// learn hears from a server itself where it is: it may have moved, or have come before the log
// entry by which this server would know it.
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

// current returns who belongs to the cluster, as far as this server has come in the log.
func (n *network) current() *replica.Roster {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.roster
}

// joinedTo returns who belonged to the cluster when this server was taken in; nil: it is not known any more.
func (n *network) joinedTo() *replica.Roster {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.took
}

// Reached hears that messages get through to a server.
func (n *network) Reached(uint64) {}

// Lost hears that messages do not get through to a server.
func (n *network) Lost(id uint64) { n.post(replica.Unreachable{ID: id}) }

// Message takes a message of another server.
func (n *network) Message(from uint64, kind byte, body []byte) {
	event, err := n.decode(from, kind, body)
	if err != nil {
		n.log.Warn("a message from another server cannot be read", "server", n.nameOf(from), "kind", kind, "err", err)
		return
	}
	if event != nil {
		n.post(event)
	}
}

// decode turns a message into an event for the node; nil: it is not for the node.
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

// decodeRaft reads a message of raft. No server can send one in another's name, and a snapshot
// has to come with its file, by Stream.
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
		return fmt.Errorf("unknown kind of file %d: the other server runs a newer version", kind)
	}
	m := &raftpb.Message{}
	if err := proto.Unmarshal(head, m); err != nil {
		return err
	}
	if m.GetFrom() != from.ID || m.GetType() != raftpb.MsgSnap {
		return errMessage
	}
	ctx, end, err := n.receiving.begin(ctx, m.GetTerm())
	if err != nil {
		return err
	}
	defer end()
	start := time.Now()
	meta := m.GetSnapshot().GetMetadata()
	e := n.engine.Load()
	if e == nil {
		return engine.Unavailable("this server has no cluster yet: try again in a moment")
	}
	s, err := e.disk.ReceiveState(meta.GetIndex(), meta.GetTerm(), body, ctx.Done())
	if err != nil {
		return cmp.Or(overtaken(ctx), err)
	}
	n.log.Info("received a snapshot from another server", "server", from.Name, "index", meta.GetIndex(), "took",
		time.Since(start))
	e.fetcher.recheck(meta.GetIndex())
	// Only now that the file is durable: raft confirms the snapshot as soon as it has installed
	// it.
	n.post(replica.Received{Message: m, State: s.State, Roster: s.Roster})
	return nil
}

// receiving lets one snapshot in at a time: a state takes memory and disk while it arrives, and raft asks again for
// what was refused. One of a later leader ends that of an earlier one, which would be of no use, and may take hours.
type receiving struct {
	mu   sync.Mutex
	term uint64 // of the leader whose snapshot arrives; 0: none does
	end  context.CancelCauseFunc
	done chan struct{}
}

var errLaterLeader = errors.New("a later leader sends a snapshot")

// begin waits for its turn. The snapshot must not be received beyond the end of the context that it returns.
func (r *receiving) begin(ctx context.Context, term uint64) (context.Context, func(), error) {
	for {
		r.mu.Lock()
		if r.term == 0 {
			break
		}
		if term <= r.term {
			r.mu.Unlock()
			return nil, nil, errors.New("another snapshot is being received")
		}
		r.end(errLaterLeader)
		done := r.done
		r.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	defer r.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	r.term, r.end, r.done = term, cancel, done
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		r.term = 0
		r.mu.Unlock()
		close(done)
	}, nil
}

// overtaken returns why a snapshot was not received to its end, if that was for a later leader's.
func overtaken(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errLaterLeader) {
		return cause
	}
	return nil
}

func (n *network) heardHealth(from uint64, h health) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.health[from] = heardHealth{h, time.Now()}
}
