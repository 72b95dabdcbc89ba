package etcd

import (
	"cmp"
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Txn carries out a transaction. It is one command: what it compares, reads and writes is of one moment.
func (s kvServer) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := cmp.Or(checkTxn(r, leasehold.MaxOps), writesOnce(r)); err != nil {
		return nil, err
	}
	if proto.Size(r) > leasehold.MaxTxn {
		return nil, tooLarge()
	}
	t := &translation{door: s.Door, ctx: ctx}
	command, err := t.txn(r)
	if err != nil {
		return nil, err
	}
	command.Namespace = s.config.Namespace
	if err := callOf(ctx).grown(command.MostShown()); err != nil {
		return nil, err
	}
	answer, err := s.do(ctx, command)
	if core.Crowded(err) {
		answer, err = s.doCalmly(ctx, command)
	}
	if err != nil {
		return nil, t.refused(err)
	}
	t.now = answer.Txn.Revision
	callOf(ctx).shows(answer.Txn.Shown())
	told, err := t.answer(r, answer.Txn)
	if err != nil {
		return nil, err
	}
	told.Header = s.header(t.now)
	return told, nil
}

// doCalmly tries a command again that was refused because very many leases have just ended.
func (s kvServer) doCalmly(ctx context.Context, command core.Command) (answer core.Answer, err error) {
	err = s.calmly(ctx, func() (err error) {
		answer, err = s.do(ctx, command)
		return err
	})
	return answer, err
}

// A translation makes a command of a request, and an answer of what that came to.
type translation struct {
	door *Door
	ctx  context.Context
	now  leasehold.Revision

	keeps bool                                   // a put keeps what is there, so that it has to be there
	binds bool                                   // a put names a lease
	past  map[*pb.RangeRequest]*pb.RangeResponse // of ranges at a revision; nil: there are none
}

// refused tells why a transaction was not carried out.
func (t *translation) refused(err error) error {
	missing := errors.Is(err, leasehold.ErrNotFound) || errors.Is(err, leasehold.ErrLost)
	switch {
	case errors.Is(err, leasehold.ErrLimited): // there are several limits: which one it was is for the client to know
		return status.Error(codes.ResourceExhausted, err.Error())
	case missing && t.keeps && !t.binds:
		return rpctypes.ErrGRPCKeyNotFound
	case missing && t.binds:
		return rpctypes.ErrGRPCLeaseNotFound
	}
	return err
}

// checkTxn checks what etcd checks, in its order. most is how many operations there may be.
func checkTxn(r *pb.TxnRequest, most int) error {
	n := max(len(r.Compare), len(r.Success), len(r.Failure))
	if n > most {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if err := checkKey(c.Key); err != nil {
			return err
		}
	}
	for _, list := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range list {
			if err := checkOp(op, most-n); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp, most int) error {
	switch op := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(op.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(op.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkKey(op.RequestDeleteRange.Key)
	case *pb.RequestOp_RequestTxn:
		return checkTxn(op.RequestTxn, most)
	}
	return rpctypes.ErrGRPCKeyNotFound
}

// txn translates a transaction, or one that is nested in another.
func (t *translation) txn(r *pb.TxnRequest) (*core.Txn, error) {
	command := &core.Txn{}
	if len(r.Compare) > 0 {
		command.If = make([]core.Compare, len(r.Compare))
	}
	for i, c := range r.Compare {
		command.If[i] = compareOf(c)
	}
	var err error
	if command.Then, err = t.list(r.Success, r.Compare); err == nil {
		command.Else, err = t.list(r.Failure, nil)
	}
	return command, err
}

// list translates the operations of one list. known is what holds when it is done.
func (t *translation) list(from []*pb.RequestOp, known []*pb.Compare) (list []core.Op, err error) {
	if len(from) == 0 {
		return nil, nil
	}
	list = make([]core.Op, len(from))
	for i, op := range from {
		if list[i], err = t.op(op, known); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// op translates an operation.
func (t *translation) op(op *pb.RequestOp, known []*pb.Compare) (core.Op, error) {
	switch op := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		return t.put(op.RequestPut, known), nil
	case *pb.RequestOp_RequestDeleteRange:
		return deleteOf(op.RequestDeleteRange), nil
	case *pb.RequestOp_RequestTxn:
		nested, err := t.txn(op.RequestTxn)
		return core.Op{Do: core.Nested, Txn: nested}, err
	}
	return t.get(op.GetRequestRange())
}

// get translates a range. One at a revision is read beforehand: it is the same whatever the transaction does.
func (t *translation) get(r *pb.RangeRequest) (core.Op, error) {
	if r.Revision > 0 {
		found, err := t.door.find(t.ctx, r)
		if err != nil {
			return core.Op{}, err
		}
		if t.past == nil {
			t.past = map[*pb.RangeRequest]*pb.RangeResponse{}
		}
		t.past[r] = found.answer(r)
		return core.Op{Do: core.Get, Path: string(r.Key), Most: 1, KeysOnly: true}, nil
	}
	keys, some := spanOf(r.Key, r.RangeEnd)
	op := core.Op{Do: core.Get, Count: !keys.one, Select: selectionOf(r),
		KeysOnly: r.KeysOnly && r.SortTarget != pb.RangeRequest_VALUE}
	op.Path, op.To, op.Range = keys.asked(some)
	switch {
	case r.CountOnly:
		op.Most, op.KeysOnly = 1, true
	case r.Limit > 0 && r.Limit < leasehold.MaxPage && byKey(r):
		op.Most = int(r.Limit) + 1
	case r.Limit > 0 && r.Limit < leasehold.MaxPage:
		op.Most = int(r.Limit)
	}
	return op, nil
}

func deleteOf(r *pb.DeleteRangeRequest) core.Op {
	keys, some := spanOf(r.Key, r.RangeEnd)
	op := core.Op{Do: core.Delete, Before: r.PrevKv}
	op.Path, op.To, op.Range = keys.asked(some)
	return op
}

// answer translates what a transaction came to.
func (t *translation) answer(r *pb.TxnRequest, from *core.TxnAnswer) (*pb.TxnResponse, error) {
	told := &pb.TxnResponse{Succeeded: from.Succeeded}
	ops := r.Success
	if !from.Succeeded {
		ops = r.Failure
	}
	if len(ops) > 0 {
		told.Responses = make([]*pb.ResponseOp, len(ops))
	}
	var err error
	for i, op := range ops {
		if told.Responses[i], err = t.result(op, &from.Results[i]); err != nil {
			return nil, err
		}
	}
	return told, nil
}

// header is that of an answer within another: it has a revision and nothing else.
func (t *translation) header() *pb.ResponseHeader { return &pb.ResponseHeader{Revision: shown(t.now)} }

func (t *translation) result(op *pb.RequestOp, r *core.TxnResult) (*pb.ResponseOp, error) {
	switch op := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		return t.putResult(op.RequestPut, r), nil
	case *pb.RequestOp_RequestDeleteRange:
		return t.deleteResult(r), nil
	case *pb.RequestOp_RequestTxn:
		nested, err := t.answer(op.RequestTxn, r.Txn)
		if err == nil {
			nested.Header = t.header()
		}
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: nested}}, err
	}
	found, err := t.rangeResult(op.GetRequestRange(), r)
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: found}}, err
}

// putResult shows what a put came to. The messages of an answer are in one piece of memory, here and below.
func (t *translation) putResult(put *pb.PutRequest, r *core.TxnResult) *pb.ResponseOp {
	if r.Txn != nil { // it was one of two, by whether the key was there
		r = &r.Txn.Results[0]
	}
	var told struct {
		op     pb.ResponseOp
		is     pb.ResponseOp_ResponsePut
		put    pb.PutResponse
		header pb.ResponseHeader
	}
	told.op.Response, told.is.ResponsePut, told.put.Header = &told.is, &told.put, &told.header
	told.header.Revision = shown(t.now)
	if put.PrevKv && len(r.Before) > 0 {
		told.put.PrevKv = previous(r.Before[0])
	}
	return &told.op
}

// deleteResult shows what a delete came to.
func (t *translation) deleteResult(r *core.TxnResult) *pb.ResponseOp {
	var told struct {
		op      pb.ResponseOp
		is      pb.ResponseOp_ResponseDeleteRange
		deleted pb.DeleteRangeResponse
		header  pb.ResponseHeader
	}
	told.op.Response, told.is.ResponseDeleteRange, told.deleted.Header = &told.is, &told.deleted, &told.header
	told.header.Revision, told.deleted.Deleted = shown(t.now), int64(r.Deleted)
	for _, record := range r.Before {
		told.deleted.PrevKvs = append(told.deleted.PrevKvs, keyValue(record, false))
	}
	return &told.op
}

// rangeResult shows a page. What a transaction cannot show at once is read afterwards, as it was then.
func (t *translation) rangeResult(r *pb.RangeRequest, result *core.TxnResult) (answer *pb.RangeResponse, err error) {
	if past, ok := t.past[r]; ok {
		past.Header = t.header()
		return past, nil
	}
	page := result.Page
	if page.More && !r.CountOnly && (r.Limit == 0 || r.Limit > int64(len(page.Records))) {
		rest := &pb.RangeRequest{Key: r.Key, RangeEnd: r.RangeEnd, Limit: r.Limit, Revision: shown(t.now),
			SortOrder: r.SortOrder, SortTarget: r.SortTarget, KeysOnly: r.KeysOnly,
			MinModRevision: r.MinModRevision, MaxModRevision: r.MaxModRevision,
			MinCreateRevision: r.MinCreateRevision, MaxCreateRevision: r.MaxCreateRevision}
		found, err := t.door.find(t.ctx, rest)
		answer = found.answer(rest)
		answer.Header = t.header()
		return answer, err
	}
	count := page.Count
	if len(r.RangeEnd) == 0 { // one key is not counted
		count = len(page.Records)
	}
	answer = (&found{records: page.Records, count: count}).answer(r)
	answer.Header, answer.More = t.header(), cmp.Or(answer.More, page.More && !r.CountOnly)
	return answer, nil
}
