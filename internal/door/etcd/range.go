package etcd

import (
	"cmp"
	"context"
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

type kvServer struct {
	pb.UnimplementedKVServer
	*Door
}

// Range shows keys.
func (s kvServer) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	callOf(ctx).about(string(r.Key), "")
	if r.Serializable {
		ctx = s.local(ctx)
	}
	found, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}
	answer := found.answer(r)
	answer.Header = s.header(found.now)
	return answer, nil
}

func checkRange(r *pb.RangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	_, order := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]
	_, target := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]
	if !order || !target {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

// found is what a range has, before it is filtered and sorted.
type found struct {
	records []*leasehold.Record
	count   int
	now     leasehold.Revision // of the namespace
}

// find reads a range. A state is read a page at a time, so that nobody waits long for it: what follows the first page
// is read as it was then. If that is gone from history by then, all is read anew.
func (d *Door) find(ctx context.Context, r *pb.RangeRequest) (f found, err error) {
	for range door.MaxLooks {
		err = d.calmly(ctx, func() (err error) {
			f, err = d.findOnce(ctx, r)
			return err
		})
		if !errors.Is(err, errMoved) {
			return f, err
		}
	}
	return f, status.Error(codes.Unavailable, "the range is changed faster than it can be read: ask with a limit")
}

var errMoved = errors.New("the rest of the range is gone from history")

// findOnce reads the first page at one revision, which the pages after it keep to.
func (d *Door) findOnce(ctx context.Context, r *pb.RangeRequest) (f found, err error) {
	keys, some := spanOf(r.Key, r.RangeEnd)
	if !some {
		keys.from = keys.to // the revision is looked at all the same, of no keys
	}
	q := core.RecordQuery{From: keys.from, To: keys.end(), Count: counts(r), Most: firstPage(r),
		KeysOnly: r.KeysOnly && r.SortTarget != pb.RangeRequest_VALUE, Revision: internal(r.Revision)}
	page, err := d.firstOf(ctx, max(0, r.Revision), q, &f.now)
	if err != nil || !some || r.Revision == 1 {
		return f, err
	}
	f.count = page.Count
	bytes := 0
	for {
		f.records = append(f.records, page.Records...)
		for _, record := range page.Records {
			bytes += len(record.Path) + len(record.Value)
		}
		if err := callOf(ctx).grown(bytes); err != nil {
			return f, err
		}
		switch {
		case !page.More || r.CountOnly || enough(r, len(f.records)):
			if !counts(r) {
				f.count = len(f.records)
			}
			if c := callOf(ctx); c != nil {
				c.shown += bytes
			}
			return f, nil
		}
		q.From, q.Revision, q.Count, q.Most = page.Next()+"\x00", page.Revision, false, 0
		if page, err = d.pageAt(ctx, q); err != nil {
			return f, err
		}
	}
}

// counts reports whether the records of a range have to be counted, because not all of them are read.
func counts(r *pb.RangeRequest) bool { return r.CountOnly || r.Limit > 0 && byKey(r) }

// firstPage is how many records are read at first.
func firstPage(r *pb.RangeRequest) int {
	switch {
	case r.CountOnly:
		return 1
	case r.Limit > 0 && r.Limit < leasehold.MaxPage && byKey(r):
		return int(r.Limit) + 1 // whether there is more is told with it
	}
	return 0
}

// enough reports whether as many records were read as an answer needs.
func enough(r *pb.RangeRequest, n int) bool { return r.Limit > 0 && byKey(r) && int64(n) > r.Limit }

// byKey reports whether the first records of a range are those of its answer: it is neither sorted nor filtered. As in
// etcd a target without an order is no order: what is found first is sorted then.
func byKey(r *pb.RangeRequest) bool {
	return (r.SortOrder == pb.RangeRequest_NONE ||
		r.SortTarget == pb.RangeRequest_KEY && r.SortOrder == pb.RangeRequest_ASCEND) &&
		r.MinModRevision == 0 && r.MaxModRevision == 0 && r.MinCreateRevision == 0 && r.MaxCreateRevision == 0
}

// firstOf reads the first page of a range, and the revision of the namespace. Whether a revision that is asked for can
// be read is decided by that.
func (d *Door) firstOf(
	ctx context.Context, at int64, q core.RecordQuery, now *leasehold.Revision,
) (page core.RecordPage, err error) {
	var failure *leasehold.Error
	var compacted int64
	err = d.read(ctx, func(v core.View) {
		history := v.History(d.config.Namespace)
		*now = history.Revision
		if at == 0 {
			page, failure = v.Records(d.config.Namespace, q)
			return
		}
		compacted = horizon(history)
	})
	switch {
	case err != nil:
		return page, err
	case failure != nil:
		return page, failure
	case at == 0:
		return page, nil
	case at < compacted:
		return page, rpctypes.ErrGRPCCompacted
	case at > shown(*now):
		return page, rpctypes.ErrGRPCFutureRev
	}
	if compacted, err = d.compacted(ctx); err != nil || at < compacted {
		return page, cmp.Or(err, rpctypes.ErrGRPCCompacted)
	}
	if at == 1 {
		return page, nil
	}
	page, err = d.pageAt(ctx, q)
	if errors.Is(err, errMoved) {
		err = rpctypes.ErrGRPCCompacted
	}
	return page, err
}

// pageAt reads a page as it was at a revision. What that needs of history is worked out between two looks at the
// state, so that no command waits for it.
func (d *Door) pageAt(ctx context.Context, q core.RecordQuery) (page core.RecordPage, err error) {
	var history core.History
	if err := d.read(ctx, func(v core.View) { history = v.History(d.config.Namespace) }); err != nil {
		return page, err
	}
	q.Past = history.Past(q)
	var failure *leasehold.Error
	err = d.read(ctx, func(v core.View) { page, failure = v.Records(d.config.Namespace, q) })
	switch {
	case err != nil:
		return page, err
	case failure != nil && failure.Code == leasehold.Lost:
		return page, errMoved
	case failure != nil:
		return page, failure
	}
	return page, nil
}

// answer filters and sorts what was found. Its count is that of all, as etcd's is.
func (f *found) answer(r *pb.RangeRequest) *pb.RangeResponse {
	answer := &pb.RangeResponse{Count: int64(f.count)}
	if r.CountOnly {
		return answer
	}
	records := slices.DeleteFunc(f.records, func(record *leasehold.Record) bool { return !passes(r, record) })
	if r.Limit > 0 && byKey(r) {
		records = records[:min(int64(len(records)), r.Limit+1)]
	}
	sortRecords(records, r)
	if r.Limit > 0 && int64(len(records)) > r.Limit {
		records, answer.More = records[:r.Limit], true
	}
	answer.Kvs = make([]*mvccpb.KeyValue, len(records))
	for i, record := range records {
		answer.Kvs[i] = keyValue(record, r.KeysOnly)
	}
	return answer
}

// passes reports whether a record is within the revisions that a request names.
func passes(r *pb.RangeRequest, record *leasehold.Record) bool {
	within := func(n leasehold.Revision, least, most int64) bool {
		return shown(n) >= least && (most == 0 || shown(n) <= most)
	}
	return within(record.Mod, r.MinModRevision, r.MaxModRevision) &&
		within(record.Create, r.MinCreateRevision, r.MaxCreateRevision)
}

// sortRecords puts records, which are sorted by key, in the order that a request wants.
func sortRecords(records []*leasehold.Record, r *pb.RangeRequest) {
	order := r.SortOrder
	if r.SortTarget != pb.RangeRequest_KEY && order == pb.RangeRequest_NONE {
		order = pb.RangeRequest_ASCEND
	}
	if order == pb.RangeRequest_NONE || r.SortTarget == pb.RangeRequest_KEY && order == pb.RangeRequest_ASCEND {
		return
	}
	compare := func(a, b *leasehold.Record) int { return cmp.Compare(a.Path, b.Path) }
	switch r.SortTarget {
	case pb.RangeRequest_VERSION:
		compare = func(a, b *leasehold.Record) int { return cmp.Compare(a.Version, b.Version) }
	case pb.RangeRequest_CREATE:
		compare = func(a, b *leasehold.Record) int { return cmp.Compare(a.Create, b.Create) }
	case pb.RangeRequest_MOD:
		compare = func(a, b *leasehold.Record) int { return cmp.Compare(a.Mod, b.Mod) }
	case pb.RangeRequest_VALUE:
		compare = func(a, b *leasehold.Record) int { return cmp.Compare(a.Value, b.Value) }
	}
	slices.SortStableFunc(records, func(a, b *leasehold.Record) int {
		if order == pb.RangeRequest_DESCEND {
			return compare(b, a)
		}
		return compare(a, b)
	})
}
