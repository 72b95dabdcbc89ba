package etcd

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// onShared serves at the port that doors share, with access on, in a bubble of virtual time. begin begins a call: what
// it sends goes to the body, and what is read of that is counted.
func onShared(t *testing.T, story func(begin func(path, token string) *half)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := memory.Start(engine.NewGoClock())
		allow(t, e)
		b := door.NewBackend(e, door.Options{})
		host := door.NewHost(b, door.HostConfig{}, New(b, Config{}).Door())
		pipe := doortest.NewPipe()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- host.Serve(ctx, pipe) }()
		transport := &http.Transport{Protocols: new(http.Protocols),
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return pipe.Dial(ctx, network, address)
			}}
		transport.Protocols.SetUnencryptedHTTP2(true)
		story(func(path, token string) *half {
			body, out := io.Pipe()
			r, _ := http.NewRequestWithContext(ctx, "POST", "http://localhost"+path, body)
			r.Header.Set("Content-Type", "application/grpc")
			r.Header.Set("Token", token)
			h := &half{out: out, answer: make(chan *http.Response, 1)}
			go func() {
				answer, _ := transport.RoundTrip(r)
				h.answer <- answer
			}()
			return h
		})
		stop()
		transport.CloseIdleConnections()
		<-ended
		_ = e.Close()
	})
}

// A half is a call of which the client has sent only so much.
type half struct {
	out    *io.PipeWriter
	answer chan *http.Response // which nobody reads before the call is to end
	sent   int
}

// send sends bytes for a while, and returns how many were taken.
func (h *half) send(b []byte, times int) int {
	go func() {
		for range times {
			n, err := h.out.Write(b)
			if h.sent += n; err != nil {
				return
			}
		}
	}()
	synctest.Wait()
	return h.sent
}

// ends returns the status of a call that ends by itself; empty: it does not.
func (h *half) ends(within time.Duration) string {
	code := make(chan string, 1)
	go func() {
		answer := <-h.answer
		if answer == nil {
			code <- "none"
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		code <- answer.Header.Get("Grpc-Status") + answer.Trailer.Get("Grpc-Status")
	}()
	select {
	case code := <-code:
		return code
	case <-time.After(within):
		_ = h.out.Close()
		return ""
	}
}

func frame(m proto.Message) []byte {
	b, _ := proto.Marshal(m)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

// userEmpty is the status of a call without a credential, as etcd has it.
var userEmpty = strconv.Itoa(int(codes.InvalidArgument))

// A call of gRPC whose request does not come holds nothing on the port that doors share: who has not said who it is
// gets its answer before, and all others after a while.
func TestHalfCallsOnTheSharedPort(t *testing.T) {
	onShared(t, func(begin func(path, token string) *half) {
		for _, path := range []string{"/etcdserverpb.KV/Range", "/etcdserverpb.KV/Put", "/etcdserverpb.Watch/Watch",
			"/etcdserverpb.Lease/LeaseKeepAlive", "/v3electionpb.Election/Observe"} {
			if got := begin(path, "").ends(time.Second); got != userEmpty {
				t.Errorf("%s without a credential: %q", path, got)
			}
		}
		for path, token := range map[string]string{
			"/etcdserverpb.KV/Range": memberSecret, "/v3electionpb.Election/Observe": memberSecret,
			"/etcdserverpb.Auth/Authenticate": "", "/grpc.health.v1.Health/Check": "", "/grpc.health.v1.Health/Watch": "",
		} {
			h := begin(path, token)
			h.send([]byte{0, 0, 0, 0, 9, 1}, 1)
			if got := h.ends(door.ReadTime + time.Second); got == "" || got == "0" {
				t.Errorf("half a request of %s: %q", path, got)
			}
		}
		h := begin("/etcdserverpb.Auth/Authenticate", "")
		h.send(binary.BigEndian.AppendUint32([]byte{0}, maxAnonymous+1), 1)
		if got := h.ends(time.Second); got != "8" {
			t.Errorf("a long request of somebody who has not said who it is: %q, want %d", got, codes.ResourceExhausted)
		}
	})
}

// What a client sends in a call is read only as fast as it is taken.
func TestEndlessCallsOnTheSharedPort(t *testing.T) {
	onShared(t, func(begin func(path, token string) *half) {
		renewals := bytes.Repeat(frame(&pb.LeaseKeepAliveRequest{ID: 1 << 40}), 1000)
		h := begin("/etcdserverpb.Lease/LeaseKeepAlive", memberSecret)
		// Renewals wait for their turn: the client takes no answer.
		h.send(frame(&pb.LeaseKeepAliveRequest{ID: 7}), 1)
		if n := h.send(renewals, 2000); n == 0 || n > 8<<20 {
			t.Errorf("%d bytes were read", n)
		}
		_ = h.out.Close()
	})
}

// A lock is waited for as long as its client wants, over HTTP/2, too.
func TestGatewayWaitsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		pipe := doortest.NewPipe()
		host := door.MustHost(e, door.HostConfig{}, Kind)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- host.Serve(ctx, pipe) }()
		transport := &http.Transport{DialContext: pipe.Dial, Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		ask := func(path, body string) string {
			lines, err := post(&http.Client{Transport: transport}, "http://server/v3/"+path, body)
			return fmt.Sprint(lines, err)
		}
		for _, lease := range []string{"5", "6"} {
			ask("lease/grant", `{"ID":"`+lease+`","TTL":"600"}`)
		}
		ask("lock/lock", `{"name":"YQ==","lease":"5"}`)
		time.AfterFunc(90*time.Second, func() { ask("lease/revoke", `{"ID":"5"}`) })
		began := time.Now()
		if got := ask("lock/lock", `{"name":"YQ==","lease":"6"}`); !strings.Contains(got, `"key"`) ||
			time.Since(began) < 90*time.Second {
			t.Errorf("after %v it is answered %s", time.Since(began), got)
		}
		synctest.Wait()
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
