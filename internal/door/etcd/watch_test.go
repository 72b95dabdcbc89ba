package etcd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/internal/door"
)

// follow begins a watch on a stream of its own.
func (w *world) follow(client pb.WatchClient, r *pb.WatchCreateRequest) pb.Watch_WatchClient {
	w.Helper()
	stream, err := client.Watch(w.ctx)
	w.must(err)
	w.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}))
	answer, err := stream.Recv()
	w.must(err)
	if !answer.Created || answer.Canceled {
		w.Fatalf("the watch begins with %v", answer)
	}
	return stream
}

// A quiet watch says now and then how far it is, if its client wants that: so the client need not begin long ago when
// it comes back. One that shows events says it by these.
func TestProgressNotify(t *testing.T) {
	inWorld(t, func(w *world) {
		quiet := w.follow(w.watch, &pb.WatchCreateRequest{Key: []byte("quiet"), ProgressNotify: true})
		began := time.Now()
		newest := w.put("elsewhere", "", 0).Header.Revision
		for range 3 {
			answer, err := quiet.Recv()
			w.must(err)
			if len(answer.Events) != 0 || answer.Header.Revision != newest || answer.WatchId != 0 {
				t.Errorf("it says %v, want revision %d", answer, newest)
			}
		}
		if took := time.Since(began); took < 2*progressTime || took > 3*progressTime+progressTime/5 {
			t.Errorf("it said it three times in %v", took)
		}
		newest = w.put("quiet", "", 0).Header.Revision
		answer, err := quiet.Recv()
		w.must(err)
		if len(answer.Events) != 1 || answer.Header.Revision != newest {
			t.Errorf("it shows %v", answer)
		}
	})
}

// A watch from a revision that is long past has caught up once it has shown what happened since: it says how far it is
// when its client asks, and whenever it wants to know, also if nothing happens any more.
func TestProgressOfWatchFromThePast(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.put("k", "1", 0).Header.Revision
		w.put("k", "2", 0)
		newest := w.put("elsewhere", "", 0).Header.Revision
		stream := w.follow(w.watch, &pb.WatchCreateRequest{Key: []byte("k"), StartRevision: first, ProgressNotify: true})
		answer, err := stream.Recv()
		w.must(err)
		if len(answer.Events) != 2 {
			t.Fatalf("it begins with %v", answer)
		}
		w.settle()
		asked := time.Now()
		w.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
			ProgressRequest: &pb.WatchProgressRequest{}}}))
		for _, id := range []int64{noWatch, 0} {
			answer, err = stream.Recv()
			w.must(err)
			if len(answer.Events) != 0 || answer.WatchId != id || answer.Header.Revision != newest {
				t.Errorf("after %v it says %v, want that watch %d is at revision %d", time.Since(asked), answer, id, newest)
			}
		}
	})
}

// What happened at one revision comes in several messages, if it is much and the client wants it so: all but the last
// say that more follows. Other clients get it in one.
func TestFragments(t *testing.T) {
	inWorld(t, func(w *world) {
		const keys = 60
		value := strings.Repeat("v", 60<<10)
		for i := range keys {
			w.put(fmt.Sprintf("f/%02d", i), value, 0)
		}
		all := pb.WatchCreateRequest{Key: []byte("f/"), RangeEnd: prefixEnd("f/"), PrevKv: true}
		parts := w.follow(w.watch, &pb.WatchCreateRequest{Key: all.Key, RangeEnd: all.RangeEnd, PrevKv: true, Fragment: true})
		whole := w.follow(w.watch, &all)
		deleted, err := w.kv.DeleteRange(w.ctx, &pb.DeleteRangeRequest{Key: all.Key, RangeEnd: all.RangeEnd})
		w.must(err)
		messages, events := 0, 0
		for more := true; more; messages++ {
			answer, err := parts.Recv()
			w.must(err)
			if size := proto.Size(answer); size > maxMessage+1024 || answer.Header.Revision != deleted.Header.Revision {
				t.Errorf("a part has %d bytes, at revision %d", size, answer.Header.Revision)
			}
			for _, e := range answer.Events {
				if want := fmt.Sprintf("f/%02d", events); string(e.Kv.Key) != want || len(e.PrevKv.GetValue()) != len(value) {
					t.Fatalf("event %d is about %s", events, e.Kv.Key)
				}
				events++
			}
			more = answer.Fragment
		}
		if messages < 3 || events != keys {
			t.Errorf("%d events came in %d parts", events, messages)
		}
		answer, err := whole.Recv()
		w.must(err)
		if len(answer.Events) != keys || answer.Fragment {
			t.Errorf("the other watch has %d events at once, more to follow: %v", len(answer.Events), answer.Fragment)
		}
	})
}

// A short transaction cannot ask for an answer that is longer than one may be.
func TestTransactionsHaveShortAnswers(t *testing.T) {
	inWorld(t, func(w *world) {
		value := strings.Repeat("v", 60<<10)
		for i := range 40 {
			w.put(fmt.Sprintf("large/%05d", i), value, 0)
		}
		all := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{
			Key: []byte("large/"), RangeEnd: prefixEnd("large/")}}}
		some := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{
			Key: []byte("large/"), RangeEnd: prefixEnd("large/"), Limit: 200}}}
		for _, c := range []struct {
			op *pb.RequestOp
			n  int
		}{{all, 32}, {some, 128}} {
			_, err := w.kv.Txn(w.ctx, &pb.TxnRequest{Success: slices.Repeat([]*pb.RequestOp{c.op}, c.n)})
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "limit") {
				t.Errorf("%d ranges of 2.4 MiB are answered %v", c.n, err)
			}
		}
		answer, err := w.kv.Txn(w.ctx, &pb.TxnRequest{Success: []*pb.RequestOp{all}})
		w.must(err)
		if n := len(answer.Responses[0].GetResponseRange().Kvs); n != 40 {
			t.Errorf("the range has %d keys", n)
		}
	})
}

// A range that is too large for one answer is refused with a sentence, and can be asked for in parts.
func TestLargestAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		value := strings.Repeat("v", 60<<10)
		const keys = door.MaxAnswer/(60<<10) + 10
		for i := range keys {
			w.put(fmt.Sprintf("large/%05d", i), value, 0)
		}
		whole := &pb.RangeRequest{Key: []byte("large/"), RangeEnd: prefixEnd("large/")}
		_, err := w.kv.Range(w.ctx, whole)
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "ask with a limit") {
			t.Fatalf("the whole range is answered %v", err)
		}
		count, err := w.kv.Range(w.ctx, &pb.RangeRequest{Key: whole.Key, RangeEnd: whole.RangeEnd, CountOnly: true})
		w.must(err)
		if count.Count != keys {
			t.Errorf("%d keys are counted", count.Count)
		}
		seen := 0
		for from, more := whole.Key, true; more; {
			page, err := w.kv.Range(w.ctx, &pb.RangeRequest{Key: from, RangeEnd: whole.RangeEnd, Limit: 50})
			w.must(err)
			seen += len(page.Kvs)
			from, more = append(page.Kvs[len(page.Kvs)-1].Key, 0), page.More
		}
		if seen != keys {
			t.Errorf("%d keys are in all parts together", seen)
		}
	})
}

// A client that does not take what it is sent is cut off, and costs nobody else anything. It comes back where it was.
func TestSlowWatcher(t *testing.T) {
	inWorld(t, func(w *world) {
		conn := dial(t, w.pipe.Dial)
		defer conn.Close()
		stream := w.follow(pb.NewWatchClient(conn), &pb.WatchCreateRequest{Key: []byte("k"), PrevKv: true})
		const puts = 41
		for range puts - 1 {
			w.put("k", strings.Repeat("v", 60<<10), 0)
		}
		time.Sleep(2 * slowTime)
		w.put("k", "small", 0)
		var last, seen int64
		take := func(stream pb.Watch_WatchClient) (err error) {
			for seen < puts && err == nil {
				var answer *pb.WatchResponse
				answer, err = stream.Recv()
				for _, e := range answer.GetEvents() {
					if seen++; e.Kv.Version != seen {
						t.Fatalf("event %d shows version %d", seen, e.Kv.Version)
					}
					last = e.Kv.ModRevision
				}
			}
			return err
		}
		if err := take(stream); status.Code(err) != codes.Unavailable {
			t.Errorf("the slow stream ends with %v, after %d events", err, seen)
		}
		w.must(take(w.follow(w.watch, &pb.WatchCreateRequest{Key: []byte("k"), StartRevision: last + 1})))
	})
}
