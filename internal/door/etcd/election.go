package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
)

type electionServer struct {
	v3electionpb.UnsafeElectionServer
	*Door
}

// withdrawTime is how long a candidate is tried to be taken back.
const withdrawTime = 5 * time.Second

// What etcd says, word for word.
var (
	errMissingLeader = status.Error(codes.Unknown, `"leader" field must be provided`)
	errNotLeader     = status.Error(codes.Unknown, "election: not leader")
	errNoLeaderYet   = status.Error(codes.Unknown, "election: no leader")
)

// Campaign stands for an election, and waits until it is won.
func (s electionServer) Campaign(
	ctx context.Context, r *v3electionpb.CampaignRequest,
) (*v3electionpb.CampaignResponse, error) {
	c, err := s.stand(ctx, &candidate{name: string(r.Name), lease: r.Lease, value: string(r.Value), keeps: true})
	if err != nil {
		return nil, err
	}
	return &v3electionpb.CampaignResponse{Header: s.header(c.seen),
		Leader: &v3electionpb.LeaderKey{Name: r.Name, Key: []byte(c.key), Rev: c.created, Lease: r.Lease}}, nil
}

// Proclaim changes the value of a leader.
func (s electionServer) Proclaim(
	ctx context.Context, r *v3electionpb.ProclaimRequest,
) (*v3electionpb.ProclaimResponse, error) {
	if r.Leader == nil {
		return nil, errMissingLeader
	}
	header, err := s.proclaim(ctx, string(r.Leader.Key), string(r.Value), r.Leader.Rev, r.Leader.Lease)
	if err != nil {
		return nil, err
	}
	return &v3electionpb.ProclaimResponse{Header: header}, nil
}

// proclaim changes the value of a key that was created at a revision.
func (d *Door) proclaim(ctx context.Context, key, value string, rev, lease int64) (*pb.ResponseHeader, error) {
	answer, err := kvServer{Door: d}.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{createdAt(key, rev)},
		Success: []*pb.RequestOp{opPut(&pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease})},
	})
	if err != nil {
		return nil, err
	}
	if !answer.Succeeded {
		return nil, errNotLeader
	}
	return answer.Header, nil
}

// Resign gives an election back.
func (s electionServer) Resign(
	ctx context.Context, r *v3electionpb.ResignRequest,
) (*v3electionpb.ResignResponse, error) {
	if r.Leader == nil {
		return nil, errMissingLeader
	}
	key := r.Leader.Key
	answer, err := kvServer{Door: s.Door}.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{createdAt(string(key), r.Leader.Rev)},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}},
	})
	if err != nil {
		return nil, err
	}
	return &v3electionpb.ResignResponse{Header: answer.Header}, nil
}

// Leader tells who has won.
func (s electionServer) Leader(
	ctx context.Context, r *v3electionpb.LeaderRequest,
) (*v3electionpb.LeaderResponse, error) {
	leader, now, err := s.first(ctx, string(r.Name))
	switch {
	case err != nil:
		return nil, err
	case leader == nil:
		return nil, errNoLeaderYet
	}
	return &v3electionpb.LeaderResponse{Header: s.header(now), Kv: leader}, nil
}

// Observe tells who has won, now and whenever that is another, or proclaims something else.
func (s electionServer) Observe(
	r *v3electionpb.LeaderRequest, stream grpc.ServerStreamingServer[v3electionpb.LeaderResponse],
) error {
	leave, err := s.backend.StayAs(stream.Context(), s.backend.Metrics().Watches)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := s.staying(stream.Context())
	defer cancel()
	filter := s.filter()
	filter.Prefix = string(r.Name) + "/"
	watcher, err := engine.Watch(ctx, s.backend.Engine(), filter, nil)
	if err == nil {
		err = s.observe(ctx, string(r.Name), stream, watcher)
	}
	return s.streamEnded(ctx, err)
}

// observe sends all that leaders proclaim, in order.
func (s electionServer) observe(
	ctx context.Context, name string, stream grpc.ServerStreamingServer[v3electionpb.LeaderResponse],
	watcher *engine.Watcher,
) error {
	var leader *mvccpb.KeyValue
	var seen leasehold.Revision // what happened up to there, the leader that was found shows
	find := func() (err error) {
		if leader, seen, err = s.first(ctx, name); err == nil && leader != nil {
			err = stream.Send(&v3electionpb.LeaderResponse{Header: s.header(seen), Kv: leader})
		}
		return err
	}
	for err := find(); ; {
		if err != nil {
			return err
		}
		var events []*leasehold.Event
		events, err = watcher.Next(ctx)
		for _, e := range events {
			switch {
			case err != nil || e.Revision <= seen:
			case leader == nil, e.Resource == string(leader.Key) && e.Kind == leasehold.RecordDeleted:
				err = find()
			case e.Resource == string(leader.Key):
				proclaimed := keyValue(e.Record, false)
				err = stream.Send(&v3electionpb.LeaderResponse{Header: s.header(e.Revision), Kv: proclaimed})
			}
		}
	}
}
