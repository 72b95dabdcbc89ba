package etcd

import (
	"context"
	"errors"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// History forgets its oldest events by itself. A client that compacts says that it no longer needs those before a
// revision, and others rely on it that nobody can read them: so what was compacted is kept, as a record, in a namespace
// of its own, where no client of etcd sees it.
const compactions = "etcd compactions"

// horizon returns the oldest revision that history still has, as it is shown; 0: it has all of them.
func horizon(h core.History) int64 {
	lost, n := h.Oldest()
	if lost == 0 && n == 0 {
		return 0
	}
	return shown(lost) + 1
}

// compacted returns the revision to which clients have compacted; 0: they never have.
func (d *Door) compacted(ctx context.Context) (revision int64, err error) {
	record, err := d.compaction(ctx)
	if record != nil {
		revision, _ = strconv.ParseInt(record.Value, 10, 64)
	}
	return revision, err
}

func (d *Door) compaction(ctx context.Context) (record *leasehold.Record, err error) {
	err = d.read(engine.WithAsker(ctx, &access.System), func(v core.View) {
		record, _ = v.Record(compactions, d.config.Namespace, 0)
	})
	return record, err
}

// Compact hides what was before a revision. It takes the right to administer the whole namespace: others may still
// need it.
func (s kvServer) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	permit, err := s.backend.Permit(ctx)
	if err != nil {
		return nil, err
	}
	if permit != nil && !permit.MayAll(access.RecordWrite, s.config.Namespace) {
		return nil, &leasehold.Error{Code: leasehold.Denied, Message: permit.Asker.Principal + " may not compact the " +
			"history of namespace " + s.config.Namespace + ": that needs the verb " + access.RecordWrite.String() +
			" for all of it; ask an admin"}
	}
	var now leasehold.Revision
	err = door.Decide(ctx, rpctypes.ErrGRPCRequestTooManyRequests, func(bool) (bool, error) {
		now, err = s.compactOnce(ctx, r.Revision)
		moved := errors.Is(err, leasehold.ErrRefused)
		if moved {
			err = nil
		}
		return !moved, err
	})
	if err != nil {
		return nil, err
	}
	return &pb.CompactionResponse{Header: s.header(now)}, nil
}

// compactOnce compacts unless somebody else does at the same time.
func (d *Door) compactOnce(ctx context.Context, to int64) (now leasehold.Revision, err error) {
	var oldest int64
	err = d.read(ctx, func(v core.View) {
		history := v.History(d.config.Namespace)
		now, oldest = history.Revision, horizon(history)
	})
	if err != nil {
		return now, err
	}
	last, err := d.compaction(ctx)
	if err != nil {
		return now, err
	}
	command := &core.PutRecord{Namespace: compactions, Path: d.config.Namespace, Value: strconv.FormatInt(to, 10),
		IfAbsent: last == nil}
	if last != nil {
		command.IfRevision = last.Mod
		already, _ := strconv.ParseInt(last.Value, 10, 64)
		oldest = max(oldest, already)
	}
	switch {
	case to <= oldest:
		return now, rpctypes.ErrGRPCCompacted
	case to > shown(now):
		return now, rpctypes.ErrGRPCFutureRev
	}
	_, err = d.do(engine.WithAsker(ctx, &access.System), command)
	return now, err
}
