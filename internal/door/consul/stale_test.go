package consul

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Of the seven requests of consul/api for a lock and its end, only those that look at the key ask other servers what
// they know, once each.
func TestALockAsksOtherServersThrice(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		s := b.open(short)
		b.ask("GET /v1/kv/a?wait=15000ms", "").expect(404)
		b.ask("PUT /v1/kv/a?acquire="+s, "").is("true")
		index := b.ask("GET /v1/kv/a?consistent=", "").expect(200, s).index()
		wait := b.later("GET /v1/kv/a?consistent=&index=" + index)
		synctest.Wait()
		b.ask("PUT /v1/kv/a?release="+s, "").is("true")
		(<-wait).expect(200)
		b.ask("PUT /v1/session/destroy/"+s, "").is("true")
		if n := f.asked.Load(); n != 3 {
			t.Errorf("other servers were asked %d times", n)
		}
	})
}

// A server that is behind has not heard of a session, or does not know that it is over. What it answers is true all the
// same.
func TestAServerThatIsBehind(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		f.behind = newBench(t, Config{}).engine
		s, other := b.open(short), b.open(short)
		b.ask("PUT /v1/kv/a?acquire="+s, "1").is("true")
		b.ask("PUT /v1/kv/a?acquire="+s, "2").is("true") // it has the lock already
		b.ask("PUT /v1/kv/a?acquire="+other, "3").is("false")
		if e := b.get("a"); e.Session != s || string(e.Value) != "2" {
			t.Errorf("the key is %+v", e)
		}
		for _, id := range []string{s, other} {
			_, err := f.behind.Do(context.Background(), &core.OpenSession{Namespace: leasehold.DefaultNamespace,
				ID: id, TTL: minTTL})
			if err != nil {
				t.Fatal(err)
			}
		}
		b.ask("PUT /v1/kv/a?acquire="+s, "4").is("true")
		b.ask("PUT /v1/session/destroy/"+s, "").is("true")
		b.ask("PUT /v1/session/destroy/"+s, "").is("true")
		b.ask("PUT /v1/kv/b?acquire="+s, "").expect(500, "invalid session")
		b.ask("PUT /v1/session/destroy/never", "").is("true")
		b.ask("GET /v1/session/info/"+s, "").is("[]")
		if n := b.status("b").Holding; n != 0 {
			t.Errorf("%d hold", n)
		}
	})
}
