package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// How a server finds its cluster. What is in its data directory takes precedence over anything
// that it is told; otherwise it joins a cluster, begins one with others, or is one alone.
//
// To begin with others, all of them have to be up. The first of them by name asks each for the
// name of its data directory, and fixes the list with all those names; the others take it from
// the first server that has it, if their own directory is in it. From then on the list is in
// the log, and a server that comes with another directory has lost what it voted for, and is
// refused in its old place. If two servers fixed lists, or if a list had no directories, a
// server that lost its data could vote twice.

// How often a server asks the ones that it waits for, and logs which they are.
const (
	askEvery  = 250 * time.Millisecond
	askWithin = 3 * time.Second
	sayEvery  = 5 * time.Second
)

// beginQuestion asks a server whether it begins the same cluster.
type beginQuestion struct {
	Name string `json:"name"`
	List string `json:"list"` // the servers to begin with, as all of them must have it
}

// beginAnswer says who a server is, and, if it has begun, with whom.
type beginAnswer struct {
	Member  replica.Member   `json:"member"`
	Cluster string           `json:"cluster,omitempty"`
	Begin   []replica.Member `json:"begin,omitempty"`
}

// joinAnswer is the answer to a server that is taken in.
type joinAnswer struct {
	Cluster string          `json:"cluster"`
	Member  replica.Member  `json:"member"`
	Roster  *replica.Roster `json:"roster"`
}

// opening is what a server tells others that want to begin.
type opening struct {
	mu      sync.Mutex
	self    replica.Member
	list    string // empty: it does not begin with others
	cluster string // empty: it has none yet
	begin   []replica.Member
}

func (o *opening) set(self replica.Member, list string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.self, o.list = self, list
}

func (o *opening) settled(d *storage.Dir) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cluster, o.begin = d.Cluster, d.Begin
}

// answer answers a server that wants to begin.
func (o *opening) answer(q beginQuestion) (beginAnswer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.cluster == "" && o.list == "":
		return beginAnswer{}, engine.Unavailable("this server has no cluster yet, and was not configured to begin one")
	case o.cluster == "" && o.list != q.List:
		return beginAnswer{}, engine.Refused("server %s is to begin a cluster of %s, and server %s one of %s: give "+
			"--initial-cluster the same list on all of them", o.self.Name, o.list, q.Name, q.List)
	}
	return beginAnswer{Member: o.self, Cluster: o.cluster, Begin: o.begin}, nil
}

// find finds the cluster of a server.
func (n *network) find(ctx context.Context, c Config) (err error) {
	self := n.member(c)
	n.opening.set(self, "")
	switch {
	case n.dir.Decided():
		if ignored := c.beginnings(); len(ignored) > 0 {
			n.log.Info("this server already belongs to a cluster", "data", n.dir.Path, "ignored", ignored)
		}
	case len(c.Join) > 0:
		err = n.join(ctx, c.Join, self)
	case len(c.InitialCluster) > 0:
		err = n.beginTogether(ctx, c.InitialCluster, self)
	default:
		self.ID = n.dir.Node
		n.dir.Begin = []replica.Member{self}
		err = n.dir.Save()
	}
	if err == nil {
		n.opening.settled(n.dir)
	}
	return err
}

// beginnings are the settings that say how a server without data comes to its cluster.
func (c Config) beginnings() (given []string) {
	if len(c.InitialCluster) > 0 {
		given = append(given, "initial-cluster")
	}
	if len(c.Join) > 0 {
		given = append(given, "join")
	}
	return given
}

// member is this server as it describes itself.
func (n *network) member(c Config) replica.Member {
	return replica.Member{Name: c.Name, Peer: n.mesh.Self().Address, Client: c.ClientAdvertise, Version: c.Version,
		Dir: n.dir.Name, Levels: c.known()}
}

// listed writes a list of servers, as all of them must have it.
func listed(members []replica.Member) string {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = m.Name + "=" + m.Peer
	}
	return strings.Join(parts, ",")
}

// beginTogether begins a cluster with others.
func (n *network) beginTogether(ctx context.Context, members []replica.Member, self replica.Member) error {
	members = slices.SortedFunc(slices.Values(members),
		func(a, b replica.Member) int { return strings.Compare(a.Name, b.Name) })
	at := slices.IndexFunc(members, func(m replica.Member) bool { return m.Name == self.Name })
	if at < 0 {
		return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("server %s is not in the list of "+
			"servers to begin with, %s: give --name one of them, or add it to --initial-cluster", self.Name,
			listed(members))}
	}
	list := listed(members)
	n.opening.set(self, list)
	self.Peer = members[at].Peer
	var begun []replica.Member
	cluster := ""
	err := n.askUntil(ctx, "waiting for the other servers to begin the cluster",
		func(ctx context.Context) ([]string, error) {
			answers, missing, err := n.askOthers(ctx, members, at, list)
			if err != nil {
				return nil, err
			}
			for _, a := range answers {
				if a.Cluster != "" {
					begun, cluster = a.Begin, a.Cluster
					return nil, ownPlace(a, self)
				}
			}
			// Only the first by name may fix the list, and only once all are there.
			if len(missing) == 0 && at == 0 {
				begun = fix(members, answers, self)
				cluster = clusterName(begun)
				return nil, nil
			}
			if len(missing) == 0 {
				missing = []string{members[0].Name}
			}
			return missing, nil
		})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(begun, func(m replica.Member) bool { return m.Name == self.Name })
	n.dir.Node, n.dir.Cluster, n.dir.Begin = begun[i].ID, cluster, begun
	return n.dir.Save()
}

// askOthers asks all others once, and returns their answers by name, and the names of those
// that gave none.
func (n *network) askOthers(ctx context.Context, members []replica.Member, self int,
	list string) (map[string]beginAnswer, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	type told struct {
		name   string
		answer beginAnswer
		err    error
	}
	answers := make(chan told, len(members))
	for i, m := range members {
		if i == self {
			continue
		}
		go func() {
			a, err := askAddress[beginQuestion, beginAnswer](ctx, n, m.Peer, askBegin,
				beginQuestion{members[self].Name, list})
			if err == nil && a.Member.Name != m.Name {
				err = engine.Refused("server %s answers at %s, which --initial-cluster gives to %s: correct the list",
					a.Member.Name, m.Peer, m.Name)
			}
			answers <- told{m.Name, a, err}
		}()
	}
	all, missing := map[string]beginAnswer{}, []string(nil)
	var final error
	for range len(members) - 1 {
		a := <-answers
		switch {
		case a.err == nil:
			all[a.name] = a.answer
		case forGood(a.err):
			final = a.err
		default:
			missing = append(missing, fmt.Sprintf("%s (%v)", a.name, a.err))
		}
	}
	slices.Sort(missing)
	return all, missing, final
}

// ownPlace checks that this server has a place in a cluster that has begun already.
func ownPlace(a beginAnswer, self replica.Member) error {
	for _, m := range a.Begin {
		switch {
		case m.Name != self.Name:
		case m.Dir == self.Dir:
			return nil
		default:
			return engine.Refused("the cluster has begun, and server %s with it, but with another data directory: "+
				"what it voted for is lost. Remove %s from the cluster, and let it join as a new one: leasehold "+
				"cluster remove %s, leasehold cluster add, then --join in place of --initial-cluster",
				self.Name, self.Name, self.Name)
		}
	}
	return engine.Refused("server %s already belongs to a cluster, which server %s did not begin: use --join in "+
		"place of --initial-cluster", a.Member.Name, self.Name)
}

// fix makes the list of members with which all begin.
func fix(members []replica.Member, answers map[string]beginAnswer, self replica.Member) []replica.Member {
	fixed := make([]replica.Member, len(members))
	for i, m := range members {
		fixed[i] = self
		if a, ok := answers[m.Name]; ok {
			fixed[i] = a.Member
		}
		fixed[i].ID, fixed[i].Name, fixed[i].Peer, fixed[i].Voter = uint64(i+1), m.Name, m.Peer, true
	}
	return fixed
}

// clusterName names a cluster after the servers that it begins with. Their directories have
// random names, so no other cluster gets the same name.
func clusterName(members []replica.Member) string {
	b, err := json.Marshal(members)
	if err != nil {
		panic(err) // it has strings and numbers
	}
	sum := sha256.Sum256(b)
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}

// join asks to be taken into a cluster.
func (n *network) join(ctx context.Context, addresses []string, self replica.Member) error {
	if self.Peer == "" {
		return &leasehold.Error{Code: leasehold.Invalid, Message: "to join a cluster, a server needs an address for " +
			"the others: give --peer-listen"}
	}
	return n.askUntil(ctx, "waiting to be taken into the cluster",
		func(ctx context.Context) (missing []string, err error) {
			for _, address := range addresses {
				a, err := askAddress[replica.Member, joinAnswer](ctx, n, address, askJoin, self)
				switch {
				case err == nil:
					return nil, n.joined(a)
				case forGood(err):
					return nil, err
				}
				missing = append(missing, fmt.Sprintf("%s (%v)", address, err))
			}
			return missing, nil
		})
}

// joined writes down which cluster took this server in, before it takes part in anything: after
// a crash it must come back as the same member.
func (n *network) joined(a joinAnswer) error {
	n.log.Info("this server joined a cluster", "cluster", a.Cluster, "id", a.Member.ID)
	n.dir.Node, n.dir.Cluster, n.dir.Joined = a.Member.ID, a.Cluster, true
	n.mu.Lock()
	n.note(a.Roster) // until the log says where the others are
	n.took = a.Roster
	n.mu.Unlock()
	return n.dir.Save()
}

// takeIn gives a server the place in the cluster that was prepared for it, together with the
// data directory that it has. A certificate alone is not enough: any server of the authority
// has one, and an operator decides which take part.
func (e *Engine) takeIn(ctx context.Context, from peer.Identity, m replica.Member) (joinAnswer, error) {
	if m.Name != from.Name || m.Dir != from.Dir || m.Name == "" || m.Peer == "" || m.Dir == "" {
		return joinAnswer{}, &leasehold.Error{Code: leasehold.Invalid, Message: "a server that wants to join has to " +
			"say its name, its address and its data directory"}
	}
	place, err := e.prepared(ctx, m)
	if err != nil {
		return joinAnswer{}, err
	}
	// Once this is in the log, no server with another directory can take the place.
	m.ID, m.Voter = place.ID, false
	a, err := e.change(ctx, replica.Change{Kind: replica.Announce, Member: m})
	if err != nil {
		return joinAnswer{}, err
	}
	return joinAnswer{Cluster: e.network.dir.Cluster, Member: a.Member, Roster: e.network.current()}, nil
}

// prepared returns the place that was prepared for a server. If there is none the server may
// wait: the error goes away when an operator prepares one.
func (e *Engine) prepared(ctx context.Context, m replica.Member) (replica.Member, error) {
	roster, err := e.freshRoster(ctx)
	if err != nil {
		return replica.Member{}, err
	}
	place, ok := roster.Named(m.Name)
	switch {
	case !ok:
		return replica.Member{}, engine.Unavailable(fmt.Sprintf(
			"the cluster has no place for server %s at %s: prepare one with leasehold cluster add %s %s", m.Name,
			m.Peer, m.Name, m.Peer))
	case place.Peer != m.Peer:
		return replica.Member{}, engine.Refused("the place of server %s is at %s, and this one is at %s: start it "+
			"with that address, or remove the place and add another",
			m.Name, place.Peer, m.Peer)
	}
	return place, nil
}

// forGood reports whether an error will not go away by itself.
func forGood(err error) bool {
	var r *peer.Refusal
	if errors.As(err, &r) {
		return r.Final() || r.Reason == peer.WrongName || r.Reason == peer.OtherCluster
	}
	return errors.Is(err, leasehold.ErrRefused) || errors.Is(err, leasehold.ErrInvalid) ||
		errors.Is(err, leasehold.ErrDenied)
}

// askUntil asks again and again until nobody is missing, and logs now and then who is.
func (n *network) askUntil(ctx context.Context, waiting string, ask func(context.Context) ([]string, error)) error {
	said := time.Now().Add(time.Second - sayEvery) // the first time soon
	for {
		missing, err := ask(ctx)
		if err != nil || len(missing) == 0 {
			return err
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			n.log.Info(waiting, "for", missing)
		}
		pause(ctx, askEvery)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
