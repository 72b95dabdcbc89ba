//go:build linux

package etcd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestKV(t *testing.T) {
	compare(t, func(w *world) {
		c, ctx := w.client, w.ctx
		get := func(what, key string, options ...clientv3.OpOption) {
			answer, err := c.Get(ctx, key, options...)
			if err != nil {
				w.failed("get "+what, err)
				return
			}
			w.say("get %s: %s more %v count %d", what, kvs(answer.Kvs), answer.More, answer.Count)
		}
		put := func(key, value string, options ...clientv3.OpOption) int64 {
			answer, err := c.Put(ctx, key, value, options...)
			if err != nil {
				w.failed("put "+key[:min(8, len(key))], err)
				return 0
			}
			w.say("put %s: before %s", key, kv(answer.PrevKv))
			return answer.Header.Revision
		}
		first := put("a/1", "one")
		put("a/3", "c", clientv3.WithPrevKV())
		put("a/2", "b")
		put("a/1", "again", clientv3.WithPrevKV())
		last := put("b", "")
		get("one", "a/1")
		get("none", "nothing")
		get("prefix", "a/", clientv3.WithPrefix())
		get("range", "a/2", clientv3.WithRange("b"))
		get("from", "a/3", clientv3.WithFromKey())
		get("backwards", "b", clientv3.WithRange("a"))
		get("limit", "a/", clientv3.WithPrefix(), clientv3.WithLimit(2))
		get("limit of all", "a/", clientv3.WithPrefix(), clientv3.WithLimit(3))
		get("count", "a/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		get("keys", "a/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		get("old", "a/", clientv3.WithPrefix(), clientv3.WithRev(first))
		get("old one", "a/1", clientv3.WithRev(first))
		get("before all", "a/1", clientv3.WithRev(1))
		get("future", "a/1", clientv3.WithRev(last+1000))
		get("negative", "a/1", clientv3.WithRev(-1))
		for _, target := range []clientv3.SortTarget{clientv3.SortByKey, clientv3.SortByVersion, clientv3.SortByCreateRevision,
			clientv3.SortByModRevision, clientv3.SortByValue} {
			for _, order := range []clientv3.SortOrder{clientv3.SortNone, clientv3.SortAscend, clientv3.SortDescend} {
				get("sorted", "a/", clientv3.WithPrefix(), clientv3.WithSort(target, order))
				get("the first", "a/", clientv3.WithPrefix(), clientv3.WithSort(target, order), clientv3.WithLimit(1))
			}
		}
		get("min mod", "a/", clientv3.WithPrefix(), clientv3.WithMinModRev(first+1))
		get("max mod", "a/", clientv3.WithPrefix(), clientv3.WithMaxModRev(first+2))
		get("min create", "a/", clientv3.WithPrefix(), clientv3.WithMinCreateRev(first+1), clientv3.WithLimit(1))
		get("max create", "a/", clientv3.WithPrefix(), clientv3.WithMaxCreateRev(first))
		get("max create 1", "a/", clientv3.WithPrefix(), clientv3.WithMaxCreateRev(1))
		get("last create", "a/", append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(first+1))...)
		put("a/1", "", clientv3.WithIgnoreValue())
		put("a/1", "x", clientv3.WithIgnoreLease())
		put("nothing", "", clientv3.WithIgnoreValue())
		put("nothing", "x", clientv3.WithIgnoreLease())
		put("", "x")
		put(strings.Repeat("k", 2<<20), "x")
		get("after", "a/", clientv3.WithPrefix())
		del := func(key string, options ...clientv3.OpOption) {
			answer, err := c.Delete(ctx, key, options...)
			if err != nil {
				w.failed("delete "+key, err)
				return
			}
			w.say("deleted %d: %s", answer.Deleted, kvs(answer.PrevKvs))
		}
		del("nothing", clientv3.WithPrevKV())
		del("a/1", clientv3.WithPrevKV())
		put("a/1", "new")
		get("again", "a/1")
		del("a/", clientv3.WithPrefix(), clientv3.WithPrevKV())
		del("", clientv3.WithPrefix())
		del("")
		now := put("z", "1")
		put("z", "2")
		_, err := c.Compact(ctx, now)
		w.must(err)
		_, err = c.Compact(ctx, now)
		w.failed("compact again", err)
		_, err = c.Compact(ctx, now+1000)
		w.failed("compact the future", err)
		get("compacted", "z", clientv3.WithRev(now-1))
		get("at the compacted", "z", clientv3.WithRev(now))
	})
}

func TestTxn(t *testing.T) {
	compare(t, func(w *world) {
		c, ctx := w.client, w.ctx
		var say func(succeeded bool, responses []*pb.ResponseOp, in string)
		say = func(succeeded bool, responses []*pb.ResponseOp, in string) {
			w.say("%ssucceeded %v", in, succeeded)
			for _, one := range responses {
				switch {
				case one.GetResponsePut() != nil:
					w.say("%s put before %s", in, kv(one.GetResponsePut().PrevKv))
				case one.GetResponseDeleteRange() != nil:
					w.say("%s deleted %d %s", in, one.GetResponseDeleteRange().Deleted, kvs(one.GetResponseDeleteRange().PrevKvs))
				case one.GetResponseRange() != nil:
					r := one.GetResponseRange()
					w.say("%s found %s more %v count %d", in, kvs(r.Kvs), r.More, r.Count)
				case one.GetResponseTxn() != nil:
					say(one.GetResponseTxn().Succeeded, one.GetResponseTxn().Responses, in+"  ")
				}
			}
		}
		txn := func(what string, t clientv3.Txn) int64 {
			answer, err := t.Commit()
			if err != nil {
				w.failed(what, err)
				return 0
			}
			w.say("txn %s at %s", what, rev(answer.Header.Revision))
			say(answer.Succeeded, answer.Responses, "")
			return answer.Header.Revision
		}
		first := txn("create", c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision("a"), "=", 0)).
			Then(clientv3.OpPut("a", "1"), clientv3.OpGet("a"), clientv3.OpPut("b", "2")).Else(clientv3.OpGet("a")))
		txn("create again", c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision("a"), "=", 0)).
			Then(clientv3.OpPut("a", "1")).Else(clientv3.OpGet("a"), clientv3.OpGet("", clientv3.WithPrefix())))
		for _, compares := range [][]clientv3.Cmp{
			{clientv3.Compare(clientv3.Value("a"), "=", "1")}, {clientv3.Compare(clientv3.Value("a"), ">", "0")},
			{clientv3.Compare(clientv3.Value("a"), "<", "0")}, {clientv3.Compare(clientv3.Value("none"), "!=", "0")},
			{clientv3.Compare(clientv3.Version("a"), "=", 1)}, {clientv3.Compare(clientv3.Version("none"), "=", 0)},
			{clientv3.Compare(clientv3.Version("a"), ">", -1)}, {clientv3.Compare(clientv3.Version("a"), "<", 0)},
			{clientv3.Compare(clientv3.ModRevision("a"), "=", first)}, {clientv3.Compare(clientv3.ModRevision("a"), "<", first+1)},
			{clientv3.Compare(clientv3.ModRevision("a"), ">", first)}, {clientv3.Compare(clientv3.ModRevision("none"), "<", 1)},
			{clientv3.Compare(clientv3.CreateRevision("none"), "=", 1)}, {clientv3.Compare(clientv3.CreateRevision("a"), ">", 1)},
			{clientv3.Compare(clientv3.CreateRevision("a"), "!=", 1)}, {clientv3.Compare(clientv3.CreateRevision("a"), "!=", 0)},
			{clientv3.Compare(clientv3.LeaseValue("a"), "=", 0)}, {clientv3.Compare(clientv3.LeaseValue("a"), "!=", 77)},
			{clientv3.Compare(clientv3.LeaseValue("none"), "=", 0)}, {clientv3.Compare(clientv3.LeaseValue("none"), "<", 77)},
			{clientv3.Compare(clientv3.LeaseValue("none"), "!=", 0)}, {clientv3.Compare(clientv3.LeaseValue("none"), ">", 0)},
			{clientv3.Compare(clientv3.Version("a"), "=", 1), clientv3.Compare(clientv3.Value("b"), "=", "3")},
			{clientv3.Compare(clientv3.Version("a"), "=", 1).WithRange("c")}, {clientv3.Compare(clientv3.Version("x"), "=", 0).WithPrefix()},
			{clientv3.Compare(clientv3.Value(""), ">", "1").WithPrefix()},
		} {
			txn("compare", c.Txn(ctx).If(compares...))
		}
		txn("write", c.Txn(ctx).Then(clientv3.OpPut("a", "2", clientv3.WithPrevKV()), clientv3.OpDelete("b", clientv3.WithPrevKV()),
			clientv3.OpGet("", clientv3.WithPrefix()), clientv3.OpGet("a", clientv3.WithRev(first)),
			clientv3.OpGet("", clientv3.WithPrefix(), clientv3.WithCountOnly())))
		txn("nested", c.Txn(ctx).If(clientv3.Compare(clientv3.Value("a"), "=", "2")).Then(
			clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Version("q"), "=", 0)},
				[]clientv3.Op{clientv3.OpPut("q", "1"), clientv3.OpGet("q"),
					clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("r", "1")}, nil)},
				[]clientv3.Op{clientv3.OpPut("q", "2")}),
			clientv3.OpGet("", clientv3.WithPrefix())))
		txn("reads", c.Txn(ctx).Then(clientv3.OpGet("", clientv3.WithPrefix(), clientv3.WithLimit(2)),
			clientv3.OpGet("", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend), clientv3.WithLimit(1))))
		txn("nothing", c.Txn(ctx))
		txn("twice", c.Txn(ctx).Then(clientv3.OpPut("a", "1"), clientv3.OpPut("a", "2")))
		txn("twice by delete", c.Txn(ctx).Then(clientv3.OpPut("ab", "1"), clientv3.OpDelete("a", clientv3.WithPrefix())))
		_, err := c.Txn(ctx).Then(clientv3.OpPut("a", "1"), clientv3.OpDelete("zz", clientv3.WithFromKey()), clientv3.OpPut("zzz", "1")).Commit()
		w.differs("twice from a key on", "%v", err)
		txn("either", c.Txn(ctx).Then(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("a", "1")}, []clientv3.Op{clientv3.OpPut("a", "2")})))
		txn("either and then", c.Txn(ctx).Then(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("a", "1")}, nil), clientv3.OpPut("a", "2")))
		var many []clientv3.Op
		for range 129 {
			many = append(many, clientv3.OpGet("a"))
		}
		txn("many", c.Txn(ctx).Then(many...))
		txn("empty key", c.Txn(ctx).Then(clientv3.OpPut("", "1")))
		txn("no lease", c.Txn(ctx).Then(clientv3.OpPut("a", "1", clientv3.WithLease(77))))
		txn("keep nothing", c.Txn(ctx).Then(clientv3.OpPut("none", "", clientv3.WithIgnoreValue())))
		txn("future", c.Txn(ctx).Then(clientv3.OpGet("a", clientv3.WithRev(1<<40)), clientv3.OpPut("a", "f")))
	})
}

func TestLease(t *testing.T) {
	compare(t, func(w *world) {
		c, ctx := w.client, w.ctx
		g, err := c.Grant(ctx, 60)
		w.must(err)
		w.say("granted %s ttl %d", lease(int64(g.ID)), g.TTL)
		g2, err := c.Grant(ctx, 600)
		w.must(err)
		short, err := c.Grant(ctx, 1)
		w.must(err)
		w.differs("least ttl", "%d", short.TTL)
		_, err = c.Revoke(ctx, short.ID)
		w.must(err)
		_, err = c.Grant(ctx, 9_000_000_001)
		w.failed("too long", err)
		long, err := c.Grant(ctx, 9_000_000_000)
		w.must(err)
		w.differs("largest ttl", "%d", long.TTL)
		_, err = c.Revoke(ctx, long.ID)
		w.must(err)
		for _, key := range []string{"l/2", "l/1", "l/3"} {
			_, err = c.Put(ctx, key, "v", clientv3.WithLease(g.ID))
			w.must(err)
		}
		_, err = c.Put(ctx, "l/3", "moved", clientv3.WithLease(g2.ID))
		w.must(err)
		_, err = c.Put(ctx, "l/4", "none", clientv3.WithLease(1234567))
		w.failed("put with a lease that is not there", err)
		ttl := func(id clientv3.LeaseID) {
			left, err := c.TimeToLive(ctx, id, clientv3.WithAttachedKeys())
			w.must(err)
			keys := make([]string, len(left.Keys))
			for i, key := range left.Keys {
				keys[i] = string(key)
			}
			slices.Sort(keys)
			w.say("%s granted %d near %v keys %q", lease(int64(left.ID)), left.GrantedTTL, left.TTL >= left.GrantedTTL-5, keys)
		}
		ttl(g.ID)
		ttl(g2.ID)
		ttl(1234567)
		alive, err := c.KeepAliveOnce(ctx, g.ID)
		w.must(err)
		w.say("kept alive %s ttl %d", lease(int64(alive.ID)), alive.TTL)
		_, err = c.KeepAliveOnce(ctx, 1234567)
		w.failed("keep alive what is not there", err)
		all, err := c.Leases(ctx)
		w.must(err)
		for _, l := range all.Leases {
			w.say("listed %s", lease(int64(l.ID)))
		}
		_, err = c.Revoke(ctx, g.ID)
		w.must(err)
		_, err = c.Revoke(ctx, g.ID)
		w.failed("revoke again", err)
		got, err := c.Get(ctx, "l/", clientv3.WithPrefix())
		w.must(err)
		w.say("left %s", kvs(got.Kvs))
		_, err = c.Put(ctx, "l/3", "free")
		w.must(err)
		_, err = c.Revoke(ctx, g2.ID)
		w.must(err)
		got, err = c.Get(ctx, "l/", clientv3.WithPrefix())
		w.must(err)
		w.say("left %s", kvs(got.Kvs))
	})
}

func TestWatch(t *testing.T) {
	compare(t, func(w *world) {
		c, ctx := w.client, w.ctx
		p, err := c.Put(ctx, "w/0", "0")
		w.must(err)
		next := func(what string, ch clientv3.WatchChan) clientv3.WatchResponse {
			select {
			case r := <-ch:
				w.say("%s: created %v canceled %v compacted %v error %v progress %v", what, r.Created, r.Canceled,
					r.CompactRevision != 0, r.Err(), r.IsProgressNotify())
				for _, e := range r.Events {
					w.say(" %s", event(e))
				}
				return r
			case <-time.After(patience):
				w.Fatalf("%s: %s: nothing comes", w.name, what)
			}
			return clientv3.WatchResponse{}
		}
		all := c.Watch(ctx, "w/", clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify())
		next("all", all)
		puts := c.Watch(ctx, "w/", clientv3.WithPrefix(), clientv3.WithFilterDelete(), clientv3.WithRev(p.Header.Revision))
		next("puts", puts)
		deletes := c.Watch(ctx, "w/", clientv3.WithPrefix(), clientv3.WithFilterPut(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify())
		next("deletes", deletes)
		_, err = c.Put(ctx, "w/0", "1")
		w.must(err)
		next("all", all)
		next("puts", puts)
		_, err = c.Txn(ctx).Then(clientv3.OpPut("w/1", "a"), clientv3.OpPut("w/2", "b"), clientv3.OpDelete("w/0"), clientv3.OpPut("x", "y")).Commit()
		w.must(err)
		next("all", all)
		next("puts", puts)
		next("deletes", deletes)
		last, err := c.Delete(ctx, "w/", clientv3.WithPrefix())
		w.must(err)
		next("all", all)
		next("deletes", deletes)
		w.must(c.RequestProgress(ctx))
		if r := next("all", all); r.Header.Revision < last.Header.Revision {
			w.say("the progress is behind")
		}
		past := c.Watch(ctx, "w/1", clientv3.WithRev(1))
		next("past", past)
		future := c.Watch(ctx, "f", clientv3.WithRev(last.Header.Revision+3))
		for range 4 {
			_, err = c.Put(ctx, "f", "f")
			w.must(err)
		}
		next("future", future)
		_, err = c.Compact(ctx, last.Header.Revision)
		w.must(err)
		r := next("compacted", c.Watch(ctx, "w/1", clientv3.WithRev(2)))
		w.say("compacted to where it was %v", r.CompactRevision == last.Header.Revision)
		next("backwards", c.Watch(ctx, "b", clientv3.WithRange("a")))
	})
}

// Much that happened at one revision is one answer to a program, also if it comes in fragments.
func TestFragments(t *testing.T) {
	compare(t, func(w *world) {
		const keys = 60
		value := strings.Repeat("v", 60<<10)
		for i := range keys {
			_, err := w.client.Put(w.ctx, fmt.Sprintf("f/%02d", i), value)
			w.must(err)
		}
		options := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify()}
		for _, fragments := range []bool{true, false} {
			if fragments {
				options = append(options, clientv3.WithFragment())
			}
			events := w.client.Watch(w.ctx, "f/", options...)
			<-events
			_, err := w.client.Delete(w.ctx, "f/", clientv3.WithPrefix())
			w.must(err)
			r := <-events
			w.say("%d events at once, error %v, fragments %v", len(r.Events), r.Err(), fragments)
			for _, e := range r.Events {
				w.say("%s, before %d bytes", e.Kv.Key, len(e.PrevKv.GetValue()))
			}
			_, err = w.client.Put(w.ctx, "f/00", "again")
			w.must(err)
		}
	})
}
