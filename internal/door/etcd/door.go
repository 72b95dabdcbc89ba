package etcd

import (
	"errors"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/grpcconn"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// doorName is how the journal and the metrics call this door.
const doorName = "etcd"

// The settings.
const (
	listenSetting    = "etcd-listen"
	namespaceSetting = "etcd-namespace"
)

// Kind is this door in the table of a server.
var Kind = door.Kind{Name: doorName, What: "etcd v3: gRPC and JSON", Tools: tools, Settings: []door.Setting{
	{Name: listenSetting, Check: door.CheckAddress,
		Help: "another address for clients of etcd, such as 127.0.0.1:2379, with the certificates of --listen; " +
			"empty: they are served at --listen alone"},
	{Name: namespaceSetting, Default: leasehold.DefaultNamespace, Check: checkNamespace,
		Help: "namespace in which clients of etcd keep their keys"},
}, Open: func(b *door.Backend, s door.Settings) (door.Door, error) {
	d := New(b, Config{Namespace: s[namespaceSetting]})
	opened := d.Door()
	if address := s[listenSetting]; address != "" {
		opened.Port = d.Port(address)
	}
	return opened, nil
}}

func checkNamespace(value string) error {
	if value == "" || len(value) > leasehold.MaxName {
		return errors.New("write the name of a namespace, such as default")
	}
	return nil
}

// Config is what a Door can be told. The zero value is good for tests.
type Config struct {
	Namespace string // of the keys; empty: the default one
}

// A Door answers clients of etcd by asking a backend.
type Door struct {
	backend  *door.Backend
	config   Config
	calls    map[string]*rpc
	services []grpcconn.Service
	own      *grpcconn.Server // of the port of its own; nil: there is none
	shared   *grpc.Server     // of the port that doors share
	talks    map[string]bool  // calls in which a client sends many messages
	coming   *door.Places     // bytes of large messages on their way, on the port that doors share

	newest  atomic.Uint64 // revision that an answer of this server has shown
	who     atomic.Pointer[identity]
	whoOnce sync.Mutex

	streams atomic.Int64 // of watches
	leaders leaders      // the streams that end without one
}

// An rpc is an operation with its account.
type rpc struct {
	operation
	account *telemetry.Verb
}

// New returns a door to a backend.
func New(b *door.Backend, config Config) *Door {
	d := &Door{backend: b, config: config, calls: map[string]*rpc{}}
	door.SetDefault(&d.config.Namespace, leasehold.DefaultNamespace)
	requests := b.Requests(doorName)
	for _, o := range operations {
		d.calls[o.method] = &rpc{o, requests.Verb("etcd-" + o.name)}
	}
	d.services = []grpcconn.Service{
		{Desc: &pb.KV_ServiceDesc, Impl: kvServer{Door: d}},
		{Desc: &pb.Watch_ServiceDesc, Impl: watchServer{Door: d}},
		{Desc: &pb.Lease_ServiceDesc, Impl: leaseServer{Door: d}},
		{Desc: &pb.Cluster_ServiceDesc, Impl: clusterServer{Door: d}},
		{Desc: &pb.Maintenance_ServiceDesc, Impl: maintenanceServer{Door: d}},
		{Desc: &pb.Auth_ServiceDesc, Impl: authServer{Door: d}},
		{Desc: &v3lockpb.Lock_ServiceDesc, Impl: lockServer{Door: d}},
		{Desc: &v3electionpb.Election_ServiceDesc, Impl: electionServer{Door: d}},
		{Desc: &grpc_health_v1.Health_ServiceDesc, Impl: healthServer{Door: d}},
	}
	d.talks = map[string]bool{}
	for _, s := range d.services {
		for _, m := range s.Desc.Streams {
			d.talks["/"+s.Desc.ServiceName+"/"+m.StreamName] = m.ClientStreams
		}
	}
	d.coming = door.NewPlaces(maxComing, maxComing/2, "as many bytes of large messages are on their way as can be, or "+
		"as one client may have: try again in a moment")
	d.shared = d.newShared()
	return d
}

// Door returns what is answered on the port that all doors share.
func (d *Door) Door() door.Door {
	var routes []door.Route
	for _, s := range d.services {
		routes = append(routes, door.Route{Pattern: "/" + s.Desc.ServiceName + "/", Handler: overHTTP{d}})
	}
	routes = append(routes, d.gatewayRoutes()...)
	return door.Door{HTTP: door.HTTP{Routes: routes, Refuse: d.refuse}}
}
