package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/internal/door"
)

// Anybody may watch the health of a server, for ever. That takes nobody's place who watches keys or keeps leases alive,
// and who watches keys takes no place of those who keep leases alive.
func TestLeasesAreKeptAliveWhateverOthersWatch(t *testing.T) {
	inWorldWith(t, door.Options{MaxStay: 3}, func(w *world) {
		lease := w.grant(60)
		var refused error
		for range 2000 {
			stream, err := w.health.Watch(w.ctx, &grpc_health_v1.HealthCheckRequest{})
			w.must(err)
			if _, refused = stream.Recv(); refused != nil {
				break
			}
		}
		if status.Code(refused) != codes.ResourceExhausted {
			t.Errorf("2,000 watches of the health end with %v", refused)
		}
		for range 3 {
			stream, err := w.watch.Watch(w.ctx)
			w.must(err)
			w.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
				CreateRequest: &pb.WatchCreateRequest{Key: []byte("a")}}}))
			if _, err = stream.Recv(); err != nil {
				t.Fatalf("keys cannot be watched: %v", err)
			}
		}
		stream, err := w.lease.LeaseKeepAlive(w.ctx)
		w.must(err)
		w.must(stream.Send(&pb.LeaseKeepAliveRequest{ID: lease}))
		if answer, err := stream.Recv(); err != nil || answer.TTL != 60 {
			t.Errorf("the lease is not kept alive: %v, %v", answer, err)
		}
	})
}
