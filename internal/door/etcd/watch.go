package etcd

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

type watchServer struct {
	pb.UnsafeWatchServer
	*Door
}

const (
	// noWatch is the id in answers that are about no watch, or about all of a stream.
	noWatch = -1
	// maxWatches is how many watches a stream can have.
	maxWatches = 16384
	// progressTime is how often a quiet watch says how far it is, if its client wants to know.
	progressTime = 10 * time.Minute
	// A stream pauses between two looks at history for this long for each stream that there is, so that all of them
	// together wake up at a bounded rate.
	pauseEach = 20 * time.Microsecond
)

// What etcd says of a watch that cannot be, word for word.
const (
	emptyRange  = "mvcc: watcher range is empty"
	duplicateID = "mvcc: duplicate watch ID provided on the WatchStream"
)

// A watchStream is the watches of one stream. One goroutine looks at history and writes; a second one takes requests.
//
// Nothing is queued for a client: a stream reads the history that all share, at the pace at which its client takes what
// it is sent. One that is too slow finds one day that its place is gone, and its watches are told that it was
// compacted.
type watchStream struct {
	*Door
	ctx    context.Context
	stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]
	slow   *time.Timer // closes the connection of a client that does not take what it is sent

	all    map[int64]*watched
	next   int64 // id to try for a watch that names none
	group  group
	behind []*watched // that still have to catch up with the group

	asked    bool               // for progress
	askedAt  leasehold.Revision // that was the newest then
	progress *time.Timer        // nil: nobody wants it
}

// A watched is one watch.
type watched struct {
	id       int64
	keys     span
	after    engine.Position // what is not later was sent, or is not wanted
	noPut    bool
	noDelete bool
	previous bool
	fragment bool
	progress bool // it says from time to time how far it is
	quiet    bool // nothing was sent since it last did

	reader *reader            // while it catches up; nil: it is in the group
	cancel context.CancelFunc // ends the reader
	batch  []*leasehold.Event // to be sent
}

// wants reports whether a watch shows an event.
func (w *watched) wants(e *leasehold.Event) bool {
	if e.Revision < w.after.Revision || e.Revision == w.after.Revision && e.N <= w.after.N {
		return false
	}
	if e.Kind == leasehold.RecordDeleted {
		return !w.noDelete
	}
	return !w.noPut
}

// Watch serves a stream of watches.
func (s watchServer) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]) error {
	leave, err := s.backend.StayAs(stream.Context(), s.backend.Metrics().Watches)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := s.staying(stream.Context())
	defer cancel()
	s.streams.Add(1)
	defer s.streams.Add(-1)
	// A watch is complete whatever the server that has it knows when it begins.
	w := &watchStream{Door: s.Door, ctx: s.local(ctx), stream: stream, all: map[int64]*watched{}}
	w.slow = time.AfterFunc(slowTime, w.cut)
	w.slow.Stop()
	err = s.streamEnded(ctx, w.run())
	if errors.Is(err, context.Canceled) && stream.Context().Err() != nil {
		return rpctypes.ErrGRPCWatchCanceled
	}
	return err
}

// cut closes the connection of a client that does not take what it is sent: there is no other way to end a write that
// waits for it. A client whose program runs takes everything, and comes back where it was if it is cut off by mistake.
func (s *watchStream) cut() {
	s.backend.Metrics().Cut.Inc()
	if c := connOf(s.ctx); c != nil {
		_ = c.Close()
	}
}

// send sends an answer.
func (s *watchStream) send(r *pb.WatchResponse) error {
	s.slow.Reset(slowTime)
	defer s.slow.Stop()
	return s.stream.Send(r)
}

// run serves until the client leaves, or the server drains.
func (s *watchStream) run() error {
	requests, ended := make(chan *pb.WatchRequest), make(chan error, 1)
	go func() { ended <- s.receive(requests) }()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		more, err := s.pump()
		if err != nil {
			return err
		}
		var again, tick <-chan time.Time
		if more == nil && len(s.all) > 0 {
			pause.Reset(time.Duration(s.streams.Load()) * pauseEach)
			again = pause.C
		}
		if s.progress != nil {
			tick = s.progress.C
		}
		select {
		case r := <-requests:
			err = s.take(r)
		case err = <-ended:
			ended = nil // nothing more is asked; what is watched goes on
		case <-tick:
			err = s.tell()
		case <-more:
		case <-again:
		case <-s.ctx.Done():
			err = s.ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// receive takes requests until there are no more.
func (s *watchStream) receive(requests chan<- *pb.WatchRequest) error {
	for {
		r, err := s.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case requests <- r:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
}

// take carries out a request.
func (s *watchStream) take(r *pb.WatchRequest) error {
	switch r := r.RequestUnion.(type) {
	case *pb.WatchRequest_CreateRequest:
		if r.CreateRequest != nil {
			return s.create(r.CreateRequest)
		}
	case *pb.WatchRequest_CancelRequest:
		if r.CancelRequest != nil && s.all[r.CancelRequest.WatchId] != nil {
			return s.end(s.all[r.CancelRequest.WatchId], &pb.WatchResponse{})
		}
	case *pb.WatchRequest_ProgressRequest:
		newest, err := s.revision(s.ctx)
		s.asked, s.askedAt = true, max(newest, s.askedAt)
		return err
	}
	return nil
}

// create begins a watch.
func (s *watchStream) create(r *pb.WatchCreateRequest) error {
	if len(r.Key) == 0 {
		r.Key = []byte{0} // the smallest key
	}
	keys, some := spanOf(r.Key, r.RangeEnd)
	// The group begins before the revision is read: a watch that joins it misses nothing in between.
	if err := s.begin(); err != nil {
		return err
	}
	var history core.History
	if err := s.read(s.ctx, func(v core.View) { history = v.History(s.config.Namespace) }); err != nil {
		return err
	}
	refused := ""
	switch permit, err := s.backend.Permit(s.ctx); {
	case err != nil:
		return err
	case r.StartRevision < 0:
		refused = rpctypes.ErrCompacted.Error()
	case permit != nil && !mayFollow(permit, s.config.Namespace, keys):
		refused = rpctypes.ErrGRPCPermissionDenied.Error()
	case !some:
		refused = emptyRange
	case s.all[r.WatchId] != nil && r.WatchId != 0:
		refused = duplicateID
	case len(s.all) >= maxWatches:
		refused = "as many watches are on this stream as there can be: open another one"
	}
	if refused != "" {
		return s.send(&pb.WatchResponse{Header: s.header(history.Revision), WatchId: noWatch, Created: true,
			Canceled: true, CancelReason: refused})
	}
	w := s.add(r, keys)
	err := s.send(&pb.WatchResponse{Header: s.header(history.Revision), WatchId: w.id, Created: true})
	if err != nil {
		return err
	}
	return s.place(w, r.StartRevision, history)
}

// mayFollow reports whether there is anything in a range that somebody may read.
func mayFollow(permit *access.Permit, namespace string, keys span) bool {
	to := keys.end()
	for _, part := range permit.Parts(access.RecordRead, namespace, "") {
		end := part.End()
		if (to == "" || part.Path < to) && (end == "" || keys.from < end) {
			return permit.MaySomewhere(access.Watch, namespace)
		}
	}
	return false
}

// add gives a watch its id.
func (s *watchStream) add(r *pb.WatchCreateRequest, keys span) *watched {
	w := &watched{id: r.WatchId, keys: keys, previous: r.PrevKv, fragment: r.Fragment, progress: r.ProgressNotify,
		quiet: true}
	if w.id == 0 {
		for s.all[s.next] != nil {
			s.next++
		}
		w.id = s.next
		s.next++
	}
	for _, f := range r.Filters {
		w.noPut = w.noPut || f == pb.WatchCreateRequest_NOPUT
		w.noDelete = w.noDelete || f == pb.WatchCreateRequest_NODELETE
	}
	if w.progress && s.progress == nil {
		s.progress = time.NewTimer(progressTime + rand.N(progressTime/10))
	}
	s.all[w.id] = w
	return w
}

// place lets a watch begin where its client wants: now, later, or at a revision that history still has.
func (s *watchStream) place(w *watched, start int64, history core.History) error {
	w.after = engine.Position{Revision: history.Revision, N: core.AllOf}
	if start == 0 {
		s.group.join(w)
		return nil
	}
	w.after = before(start)
	if w.after.Revision >= history.Revision {
		s.group.join(w)
		return nil
	}
	compacted, err := s.compacted(s.ctx)
	if err != nil {
		return err
	}
	if start < compacted {
		return s.end(w, &pb.WatchResponse{CompactRevision: compacted})
	}
	ctx, cancel := context.WithCancel(s.ctx)
	follow, err := engine.Watch(ctx, s.backend.Engine(), s.filter(), &w.after)
	if err != nil {
		cancel()
		return s.lost(w, err)
	}
	w.reader, w.cancel = &reader{watcher: follow}, cancel
	s.behind = append(s.behind, w)
	return nil
}

// lost ends a watch whose place is no longer known. Any other error ends the stream.
func (s *watchStream) lost(w *watched, err error) error {
	var gone *engine.GoneError
	if !errors.As(err, &gone) {
		return err
	}
	return s.end(w, &pb.WatchResponse{CompactRevision: shown(gone.Oldest.Revision) + 1})
}

// end ends a watch, with some last words.
func (s *watchStream) end(w *watched, last *pb.WatchResponse) error {
	s.group.leave(w)
	if w.cancel != nil {
		w.cancel()
	}
	delete(s.all, w.id)
	last.Header, last.WatchId, last.Canceled = s.header(s.group.at()), w.id, true
	return s.send(last)
}

// tell says how far the watches are whose clients want to know, unless they have seen it by an event.
func (s *watchStream) tell() error {
	s.progress.Reset(progressTime)
	for _, w := range s.all {
		if w.progress && w.quiet && w.reader == nil {
			err := s.send(&pb.WatchResponse{Header: s.header(s.group.at()), WatchId: w.id})
			if err != nil {
				return err
			}
		}
		w.quiet = true
	}
	return nil
}
