package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/leasehold/leasehold"
)

// Put writes a key. All writes are transactions, of which this is one with a single operation.
func (s kvServer) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	one := newSingle()
	one.op.Request = &pb.RequestOp_RequestPut{RequestPut: r}
	answer, err := s.Txn(ctx, &one.txn)
	if err != nil {
		return nil, err
	}
	put := answer.Responses[0].GetResponsePut()
	put.Header = answer.Header
	return put, nil
}

// DeleteRange deletes keys.
func (s kvServer) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	one := newSingle()
	one.op.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}
	answer, err := s.Txn(ctx, &one.txn)
	if err != nil {
		return nil, err
	}
	deleted := answer.Responses[0].GetResponseDeleteRange()
	deleted.Header = answer.Header
	return deleted, nil
}

// A single is a transaction of one operation, in one piece of memory.
type single struct {
	txn  pb.TxnRequest
	list [1]*pb.RequestOp
	op   pb.RequestOp
}

func newSingle() *single {
	one := &single{}
	one.list[0], one.txn.Success = &one.op, one.list[:]
	return one
}

func checkPut(r *pb.PutRequest) error {
	if err := checkKey(r.Key); err != nil {
		return err
	}
	switch {
	case r.IgnoreValue && len(r.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	case len(r.Value) > leasehold.MaxValue:
		return tooLarge()
	}
	return nil
}
