package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Txn carries out a transaction.
func (s kvServer) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	command := &core.Txn{Namespace: s.config.Namespace}
	for _, c := range r.Compare {
		compare, err := compareOf(c)
		if err != nil {
			return nil, err
		}
		command.If = append(command.If, compare)
	}
	var err error
	if command.Then, err = opsOf(r.Success); err != nil {
		return nil, err
	}
	if command.Else, err = opsOf(r.Failure); err != nil {
		return nil, err
	}
	answer, err := s.do(ctx, command)
	if err != nil {
		return nil, noLease(err)
	}
	txn := answer.Txn
	told := &pb.TxnResponse{Header: s.header(txn.Revision), Succeeded: txn.Succeeded}
	ops := r.Success
	if !txn.Succeeded {
		ops = r.Failure
	}
	for i, op := range ops {
		told.Responses = append(told.Responses, resultOf(op, &txn.Results[i], txn.Revision))
	}
	return told, nil
}

func compareOf(c *pb.Compare) (out core.Compare, err error) {
	if err := checkKey(c.Key); err != nil {
		return out, err
	}
	out.Path = string(c.Key)
	switch c.Result {
	case pb.Compare_EQUAL:
		out.Is = core.Equal
	case pb.Compare_GREATER:
		out.Is = core.Greater
	case pb.Compare_LESS:
		out.Is = core.Less
	case pb.Compare_NOT_EQUAL:
		out.Is = core.NotEqual
	}
	switch c.Target {
	case pb.Compare_VERSION:
		out.What, out.Number = core.RecordVersion, uint64(c.GetVersion())
	case pb.Compare_CREATE:
		out.What, out.Number = core.RecordCreate, uint64(internal(c.GetCreateRevision()))
	case pb.Compare_MOD:
		out.What, out.Number = core.RecordMod, uint64(internal(c.GetModRevision()))
	case pb.Compare_VALUE:
		out.What, out.Text = core.RecordValue, string(c.GetValue())
	case pb.Compare_LEASE:
		out.What, out.Text = core.RecordSession, sessionOf(c.GetLease())
	}
	return out, nil
}

func opsOf(list []*pb.RequestOp) (ops []core.Op, err error) {
	for _, op := range list {
		switch op := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			if err := checkPut(op.RequestPut); err != nil {
				return nil, err
			}
			if p := op.RequestPut; p.PrevKv || p.IgnoreLease || p.IgnoreValue {
				return nil, status.Error(codes.Unimplemented, "a put cannot answer or keep what was there yet")
			}
			ops = append(ops, core.Op{Do: core.Put, Path: string(op.RequestPut.Key), Value: string(op.RequestPut.Value),
				Session: sessionOf(op.RequestPut.Lease)})
		case *pb.RequestOp_RequestDeleteRange:
			if op.RequestDeleteRange.PrevKv {
				return nil, status.Error(codes.Unimplemented, "a delete cannot answer what was there yet")
			}
			keys, _ := spanOf(op.RequestDeleteRange.Key, op.RequestDeleteRange.RangeEnd)
			o := core.Op{Do: core.Delete, Path: keys.from, To: keys.to, Range: !keys.one}
			if keys.one {
				o.To = ""
			}
			ops = append(ops, o)
		case *pb.RequestOp_RequestRange:
			keys, _ := spanOf(op.RequestRange.Key, op.RequestRange.RangeEnd)
			ops = append(ops, core.Op{Do: core.Get, Path: keys.from, To: keys.to, Range: true, Count: true})
		case *pb.RequestOp_RequestTxn:
			return nil, status.Error(codes.Unimplemented, "transactions cannot be nested yet")
		default:
			return nil, rpctypes.ErrGRPCKeyNotFound
		}
	}
	return ops, nil
}

func resultOf(op *pb.RequestOp, r *core.TxnResult, now leasehold.Revision) *pb.ResponseOp {
	header := &pb.ResponseHeader{Revision: shown(now)}
	switch op := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{Header: header}}}
	case *pb.RequestOp_RequestDeleteRange:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{
			ResponseDeleteRange: &pb.DeleteRangeResponse{Header: header, Deleted: int64(r.Deleted)}}}
	case *pb.RequestOp_RequestRange:
		f := found{records: r.Page.Records, count: r.Page.Count}
		answer := f.answer(op.RequestRange)
		answer.Header = header
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: answer}}
	}
	return nil
}
