package etcd

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// newStall starts a server at a port of the machine, in real time, for benchmarks. What is measured has the client in it.
func newStall(b *testing.B) doortest.Dialer {
	b.Helper()
	e := memory.Start(engine.NewGoClock())
	backend := door.NewBackend(e, door.Options{})
	host := door.NewOwnHost(backend, door.HostConfig{DrainTimeout: time.Second}, New(backend, Config{}).Port(""))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Serve(ctx, l) }()
	b.Cleanup(func() {
		stop()
		<-ended
		_ = e.Close()
	})
	var dialer net.Dialer
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, l.Addr().String())
	}
}

// BenchmarkLock takes a lock and gives it back, as concurrency.Mutex does: a transaction and a delete.
func BenchmarkLock(b *testing.B) {
	conn := dial(b, newStall(b))
	defer conn.Close()
	kv, ctx := pb.NewKVClient(conn), b.Context()
	granted, err := pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		b.Fatal(err)
	}
	lock, unlock := lockAndUnlock(granted.ID)
	b.ReportAllocs()
	for b.Loop() {
		if answer, err := kv.Txn(ctx, lock); err != nil || !answer.Succeeded {
			b.Fatal(answer, err)
		}
		if _, err := kv.DeleteRange(ctx, unlock); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandlers is BenchmarkLock without the network: what the handlers do, and the engine in memory.
func BenchmarkHandlers(b *testing.B) {
	e := memory.StartSilent(engine.NewGoClock())
	defer e.Close()
	d := New(door.NewBackend(e, door.Options{}), Config{})
	ctx := b.Context()
	granted, err := leaseServer{Door: d}.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		b.Fatal(err)
	}
	kv := kvServer{Door: d}
	lock, unlock := lockAndUnlock(granted.ID)
	b.ReportAllocs()
	for b.Loop() {
		if answer, err := kv.Txn(ctx, lock); err != nil || !answer.Succeeded {
			b.Fatal(answer, err)
		}
		if _, err := kv.DeleteRange(ctx, unlock); err != nil {
			b.Fatal(err)
		}
	}
}

// lockAndUnlock returns the requests of a concurrency.Mutex.
func lockAndUnlock(lease int64) (*pb.TxnRequest, *pb.DeleteRangeRequest) {
	key := fmt.Sprintf("lock/%x", lease)
	get := func(r *pb.RangeRequest) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
	}
	first := &pb.RangeRequest{Key: []byte("lock/"), RangeEnd: prefixEnd("lock/"), Limit: 1,
		SortOrder: pb.RangeRequest_ASCEND, SortTarget: pb.RangeRequest_CREATE}
	return &pb.TxnRequest{
		Compare: []*pb.Compare{absent(key)},
		Success: []*pb.RequestOp{opPut(&pb.PutRequest{Key: []byte(key), Lease: lease}), get(first)},
		Failure: []*pb.RequestOp{get(&pb.RangeRequest{Key: []byte(key)}), get(first)},
	}, &pb.DeleteRangeRequest{Key: []byte(key)}
}

// BenchmarkKeepAlive renews a lease: on a stream that stays, as sessions do, and on one for each time, as
// KeepAliveOnce does.
func BenchmarkKeepAlive(b *testing.B) {
	conn := dial(b, newStall(b))
	defer conn.Close()
	leases, ctx := pb.NewLeaseClient(conn), b.Context()
	granted, err := leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		b.Fatal(err)
	}
	renew := func(stream pb.Lease_LeaseKeepAliveClient) {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: granted.ID}); err != nil {
			b.Fatal(err)
		}
		if answer, err := stream.Recv(); err != nil || answer.TTL != 600 {
			b.Fatal(answer, err)
		}
	}
	open := func(ctx context.Context) pb.Lease_LeaseKeepAliveClient {
		stream, err := leases.LeaseKeepAlive(ctx)
		if err != nil {
			b.Fatal(err)
		}
		return stream
	}
	b.Run("stream", func(b *testing.B) {
		stream := open(ctx)
		b.ReportAllocs()
		for b.Loop() {
			renew(stream)
		}
	})
	b.Run("once", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithCancel(ctx)
			renew(open(ctx))
			cancel()
		}
	})
}
