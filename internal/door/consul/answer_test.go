package consul

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
)

// A stuck reader takes nothing of an answer until its context ends.
type stuck struct {
	*httptest.ResponseRecorder
	ctx context.Context
}

func (s stuck) Write([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// Large answers are counted until they are sent. Who comes meanwhile waits for its turn; small answers do not.
func TestSlowReadersOfLargeAnswers(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.ask("PUT /v1/kv/small/a", "1").is("true")
		for i := range 3 {
			b.ask(fmt.Sprintf("PUT /v1/kv/large/%d", i), strings.Repeat("x", 40<<10)).is("true")
		}
		slow, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 128 << 20 / (256 << 10) { // as many as one client can have
			all.Go(func() {
				b.door.ServeHTTP(stuck{httptest.NewRecorder(), slow}, httptest.NewRequest("GET", "/v1/kv/large/?recurse", nil))
			})
		}
		synctest.Wait()
		b.ask("GET /v1/kv/small/?recurse", "").expect(200)
		b.ask("GET /v1/kv/large/?keys", "").expect(200)
		b.ask("GET /v1/kv/large/?recurse", "").expect(429)
		wait := b.later("GET /v1/kv/large/?recurse")
		pending(t, wait)
		end()
		all.Wait()
		(<-wait).expect(200)
	})
}

// A client that takes nothing of its answer is cut off in time, and others have their locks meanwhile.
func TestReaderThatTakesNothing(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		b.ask("PUT /v1/kv/a", "v").is("true")
		pipe, ended, port := doortest.NewPipe(), make(chan error, 1), b.door.Port("")
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- door.NewOwnHost(b.backend, door.HostConfig{}, port).Serve(ctx, pipe) }()
		slow, err := pipe.Dial(ctx, "", "")
		if err == nil {
			_, err = io.WriteString(slow, "GET /v1/kv/a HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		id := b.open(`{}`)
		b.ask("PUT /v1/kv/a?acquire="+id, "").is("true")
		b.ask("PUT /v1/kv/a?release="+id, "").is("true")
		time.Sleep(writeTime)
		synctest.Wait()
		if got, err := io.ReadAll(slow); err != nil || len(got) > 0 {
			t.Errorf("after %v it still gets %q, %v", writeTime, got, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A client that announces a body and sends none is refused in time, also if it wants to wait for news.
func TestWaitsDoNotWaitForABody(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		index := b.ask("GET /v1/kv/a", "").index()
		pipe, ended, port := doortest.NewPipe(), make(chan error, 1), b.door.Port("")
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- door.NewOwnHost(b.backend, door.HostConfig{}, port).Serve(ctx, pipe) }()
		for _, path := range []string{"kv/a", "catalog/nodes"} {
			c, err := pipe.Dial(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			go fmt.Fprintf(c, "GET /v1/%s?index=%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", path, index)
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: the answer is %v, %v", path, answer, err)
			}
			_ = c.Close()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A short transaction cannot ask for an answer that is longer than one may be.
func TestTransactionsHaveShortAnswers(t *testing.T) {
	b := newBench(t, Config{})
	for i := range 20 {
		b.ask(fmt.Sprintf("PUT /v1/kv/a/%d", i), strings.Repeat("x", 40<<10)).is("true")
	}
	b.txn(slices.Repeat([]string{"get-tree a/"}, maxOps)...).expect(500, "has more than 67108864 bytes")
	b.txn(slices.Repeat([]string{"get-tree a/"}, 8)...).expect(200)
}

// Lists that wait are not read before there is something new.
func TestListsThatWaitAreReadOnce(t *testing.T) {
	inTrouble(t, func(t *testing.T, b *bench, f *faulty) {
		for i := range 3 {
			for j := range 40 {
				b.ask(fmt.Sprintf("PUT /v1/kv/a/%d/%d", i, j), strings.Repeat("x", 60<<10)).is("true")
			}
		}
		index := b.ask("GET /v1/kv/a/?recurse", "").index()
		f.reads.Store(0)
		b.ask("GET /v1/kv/a/?recurse", "").expect(200)
		whole := f.reads.Swap(0)
		wait := b.later("GET /v1/kv/a/?recurse&index=" + index)
		if n := f.reads.Load(); n >= whole {
			t.Errorf("%d reads were done for a request that waits, and %d are all that there is", n, whole)
		}
		time.Sleep(time.Second)
		b.ask("PUT /v1/kv/a/0/0", "new").is("true")
		(<-wait).expect(200)
	})
}

// Nobody's credential is told again, or kept in the journal.
func TestTokensAreNotRepeated(t *testing.T) {
	b := newBench(t, Config{})
	for _, what := range []string{"PUT /v1/kv/a?cas=1&acquire=x&token=lh_secret", "DELETE /v1/kv/a?cas=1&recurse&token=lh_secret"} {
		if got := b.ask(what, "").expect(400, "Conflicting flags: "); strings.Contains(got.body, "secret") {
			t.Errorf("%s is answered %s", what, got.body)
		}
	}
}
