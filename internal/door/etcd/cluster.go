package etcd

import (
	"context"
	"hash/fnv"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// An identity is how the headers of answers name this server and its cluster.
type identity struct {
	cluster, member uint64
	term            *atomic.Uint64 // as it was when somebody last looked
}

// identityTime is how long an answer waits to know who gives it.
const identityTime = time.Second

// identity returns who answers. It is found out once; a server that cannot yet says that it is nobody.
func (d *Door) identity() *identity {
	if who := d.who.Load(); who != nil {
		return who
	}
	d.whoOnce.Lock()
	defer d.whoOnce.Unlock()
	if who := d.who.Load(); who != nil {
		return who
	}
	ctx, cancel := context.WithTimeout(engine.WithAsker(context.Background(), &access.System), identityTime)
	defer cancel()
	outlook, err := d.outlook(ctx)
	if err != nil {
		return &identity{term: new(atomic.Uint64)}
	}
	who := &identity{cluster: clusterID(outlook.Cluster), member: outlook.Self, term: new(atomic.Uint64)}
	who.term.Store(outlook.Term)
	d.who.Store(who)
	return who
}

// clusterID makes a number of the name of a cluster.
func clusterID(name string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // it never fails
	return hash.Sum64()
}

// outlook tells how the servers do. An engine without others is a cluster of one.
func (d *Door) outlook(ctx context.Context) (engine.Outlook, error) {
	if d.backend.Cluster() == nil {
		return engine.Outlook{Self: 1, Leader: 1, Term: 1, Confirmed: true,
			Servers: []engine.Server{{ID: 1, Name: "leasehold", Voter: true}}}, nil
	}
	outlook, err := d.backend.Cluster().Outlook(ctx)
	if who := d.who.Load(); err == nil && who != nil && outlook.Term != 0 {
		who.term.Store(outlook.Term)
	}
	return outlook, err
}

type clusterServer struct {
	pb.UnimplementedClusterServer
	*Door
}

// MemberList lists the servers.
func (s clusterServer) MemberList(ctx context.Context, _ *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	outlook, err := s.outlook(ctx)
	if err != nil {
		return nil, err
	}
	answer := &pb.MemberListResponse{Header: s.header(s.known())}
	for _, server := range outlook.Servers {
		m := &pb.Member{ID: server.ID, Name: server.Name, IsLearner: !server.Voter}
		if server.Peer != "" {
			m.PeerURLs = []string{"http://" + server.Peer}
		}
		m.ClientURLs = s.clientURLs(server, outlook.Self)
		answer.Members = append(answer.Members, m)
	}
	return answer, nil
}

// clientURLs returns where clients of etcd reach a server. Each speaks etcd at the address at which it serves all
// clients; of a port for etcd alone, a server knows its own.
func (d *Door) clientURLs(server engine.Server, self uint64) []string {
	if server.Client == "" {
		return nil
	}
	all, err := url.Parse(server.Client)
	if err != nil || server.ID != self {
		return []string{server.Client}
	}
	for _, e := range d.backend.Entrances() {
		if e.Kind.Name != doorName || e.Own == "" || loopback(e.Own) && !loopback(all.Host) {
			continue
		}
		return []string{all.Scheme + "://" + e.At(server.Client)}
	}
	return []string{server.Client}
}

// loopback reports whether an address is one that only this machine reaches.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

type maintenanceServer struct {
	pb.UnimplementedMaintenanceServer
	*Door
}

// Status tells how this server does. Its version is that of etcd's API which it speaks: clients decide by it what they
// may ask.
func (s maintenanceServer) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	outlook, err := s.outlook(ctx)
	if err != nil {
		return nil, err
	}
	var revision leasehold.Revision
	if revision, err = s.revision(ctx); err != nil {
		revision = s.known()
	}
	// There is no database whose size could be told, and etcdctl divides by it.
	answer := &pb.StatusResponse{Header: s.header(revision), Version: version.Version,
		StorageVersion: clusterVersion, Leader: outlook.Leader, RaftTerm: outlook.Term, DbSize: 1, DbSizeInUse: 1}
	if err != nil || !outlook.Confirmed {
		answer.Errors = append(answer.Errors, "etcdserver: no leader")
	}
	for _, server := range outlook.Servers {
		if server.ID == outlook.Self {
			answer.RaftIndex, answer.RaftAppliedIndex, answer.IsLearner = server.Applied, server.Applied, !server.Voter
		}
	}
	return answer, nil
}

// Alarm lists alarms. Those that etcd knows, a full disk and a damaged store, end a server of ours or stand among its
// own alarms, so there are none to list.
func (s maintenanceServer) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	if r.Action != pb.AlarmRequest_GET {
		return nil, status.Error(codes.Unimplemented,
			"alarms are raised by the servers, and acknowledged with leasehold alarms")
	}
	if err := s.read(ctx, func(v core.View) { v.Quarantine() }); err != nil { // as in etcd, the cluster has to work
		return nil, err
	}
	return &pb.AlarmResponse{Header: s.header(s.known())}, nil
}
