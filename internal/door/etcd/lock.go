package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// A lock and an election are the same to etcd: each candidate has a key below a name, bound to its lease, and the one
// that was created first has it. The services do for a client what its library would do, in the same keys.

type lockServer struct {
	v3lockpb.UnsafeLockServer
	*Door
}

// Lock takes a lock for a lease, and waits for it.
func (s lockServer) Lock(ctx context.Context, r *v3lockpb.LockRequest) (*v3lockpb.LockResponse, error) {
	c, err := s.stand(ctx, &candidate{name: string(r.Name), lease: r.Lease})
	if err != nil {
		return nil, err
	}
	return &v3lockpb.LockResponse{Header: s.header(c.seen), Key: []byte(c.key)}, nil
}

// Unlock gives a lock back.
func (s lockServer) Unlock(ctx context.Context, r *v3lockpb.UnlockRequest) (*v3lockpb.UnlockResponse, error) {
	answer, err := kvServer{Door: s.Door}.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: r.Key})
	if err != nil {
		return nil, err
	}
	return &v3lockpb.UnlockResponse{Header: answer.Header}, nil
}

// A candidate stands for a lock or an election.
type candidate struct {
	name  string
	lease int64
	value string // of an election
	keeps bool   // a value that is there already is replaced by this one

	key     string
	created int64              // the revision that made the key
	ahead   string             // the key that is just ahead; empty: it is the first
	seen    leasehold.Revision // when that was so
}

// stand puts a candidate's key, and waits until it is the first. A call that ends before takes the key back, as etcd's
// clients do, unless there is no leader: then it stays, as in etcd, and another call with the same lease finds it.
func (d *Door) stand(ctx context.Context, c *candidate) (*candidate, error) {
	c.key = fmt.Sprintf("%s/%x", c.name, c.lease)
	callOf(ctx).about(strings.Trim(c.name, "/"), sessionOf(c.lease))
	if err := d.enroll(ctx, c); err != nil {
		return nil, err
	}
	if won, err := d.won(ctx, c); won || err != nil {
		return c, err
	}
	err := d.await(ctx, c)
	switch {
	case err == nil:
		return c, nil
	case !errors.Is(err, rpctypes.ErrGRPCNoLeader): // else nothing can be taken back: the key ends with its lease
		d.withdraw(ctx, c)
	}
	return nil, err
}

// enroll puts the key of a candidate, unless it is there.
func (d *Door) enroll(ctx context.Context, c *candidate) error {
	server := kvServer{Door: d}
	put := &pb.PutRequest{Key: []byte(c.key), Value: []byte(c.value), Lease: c.lease}
	return d.backend.Patiently(ctx, func() error {
		answer, err := server.Txn(ctx, &pb.TxnRequest{
			Compare: []*pb.Compare{absent(c.key)},
			Success: []*pb.RequestOp{opPut(put)},
			Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{
				RequestRange: &pb.RangeRequest{Key: []byte(c.key)}}}},
		})
		if err != nil {
			return err
		}
		if c.created = answer.Header.Revision; answer.Succeeded {
			return nil
		}
		there := answer.Responses[0].GetResponseRange().Kvs[0]
		if c.created = there.CreateRevision; !c.keeps || string(there.Value) == c.value {
			return nil
		}
		_, err = d.proclaim(ctx, c.key, c.value, c.created, c.lease)
		return err
	})
}

func absent(key string) *pb.Compare { return createdAt(key, 0) }

func createdAt(key string, revision int64) *pb.Compare {
	return &pb.Compare{Key: []byte(key), Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision}}
}

func opPut(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

// won reports whether a candidate's key is the first. It is an error if it is gone: its lease ended, or somebody broke
// it.
func (d *Door) won(ctx context.Context, c *candidate) (bool, error) {
	below := c.name + "/"
	f, err := d.find(ctx, &pb.RangeRequest{Key: []byte(below), RangeEnd: prefixEnd(below), KeysOnly: true})
	if err != nil {
		return false, err
	}
	var own, ahead *leasehold.Record
	for _, r := range f.records {
		if r.Path == c.key {
			own = r
		}
		if shown(r.Create) < c.created && (ahead == nil || r.Create > ahead.Create) {
			ahead = r
		}
	}
	if own == nil || shown(own.Create) != c.created {
		return false, rpctypes.ErrGRPCLeaseNotFound
	}
	if c.seen, c.ahead = f.now, ""; ahead != nil {
		c.ahead = ahead.Path
	}
	return ahead == nil, nil
}

func prefixEnd(prefix string) []byte {
	if end := core.PrefixEnd(prefix); end != "" {
		return []byte(end)
	}
	return []byte{0}
}

// await waits until a candidate has won. It looks again when its own key or the one ahead of it is gone, so that a long
// queue costs little: the others need not look.
func (d *Door) await(ctx context.Context, c *candidate) error {
	call := callOf(ctx)
	call.waited = true
	leave, err := d.backend.Stay(ctx)
	if err != nil {
		return err
	}
	defer leave()
	staying, cancel := d.staying(ctx)
	defer cancel()
	heard, left := engine.Stay(staying, d.backend.Engine())
	defer left()
	err = d.untilWon(heard, c)
	if err != nil && staying.Err() != nil && d.backend.Stopping().Err() == nil {
		call.held = true // for as long as the client waited
	}
	gone := (*engine.GoneError)(nil)
	switch {
	case errors.As(err, &gone):
		err = engine.Undecided(gone.Error())
	case errors.Is(err, leasehold.ErrUnavailable), err != nil && heard.Err() != nil && staying.Err() == nil:
		err = rpctypes.ErrGRPCNoLeader
	}
	return d.streamEnded(staying, err)
}

// untilWon looks whether a candidate has won, each time that it may have.
func (d *Door) untilWon(ctx context.Context, c *candidate) error {
	filter := d.filter()
	filter.Prefix, filter.Kinds = c.name+"/", []leasehold.Kind{leasehold.RecordDeleted}
	watcher, err := engine.Watch(ctx, d.backend.Engine(), filter, nil)
	if err != nil {
		return err
	}
	for {
		if won, err := d.won(ctx, c); won || err != nil {
			return err
		}
		if err := d.next(ctx, watcher, c); err != nil {
			return err
		}
	}
}

// next waits until a candidate has to look again.
func (d *Door) next(ctx context.Context, watcher *engine.Watcher, c *candidate) error {
	for {
		events, err := watcher.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Resource == c.key || e.Resource == c.ahead {
				return nil
			}
		}
	}
}

// withdraw takes back the key of a candidate that waits no longer.
func (d *Door) withdraw(ctx context.Context, c *candidate) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	// If this fails, the key ends with its lease.
	_, _ = kvServer{Door: d}.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{createdAt(c.key, c.created)},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(c.key)}}}},
	})
}

// first returns the key below a name that was created first; nil: there is none.
func (d *Door) first(ctx context.Context, name string) (*mvccpb.KeyValue, leasehold.Revision, error) {
	r := &pb.RangeRequest{Key: []byte(name + "/"), RangeEnd: prefixEnd(name + "/"), Limit: 1,
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_ASCEND}
	f, err := d.find(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	if answer := f.answer(r); len(answer.Kvs) > 0 {
		return answer.Kvs[0], f.now, nil
	}
	return nil, f.now, nil
}
