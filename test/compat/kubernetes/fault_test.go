package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// A lossy connection loses the answer to one request: the server has done it, and the client never hears of it.
type lossy struct {
	http.RoundTripper
	lose  int64 // which
	count atomic.Int64
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil && l.count.Add(1) == l.lose {
		_ = response.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return response, err
}

// Whichever answer an elector does not get, it leads in the end, and has not taken the lease from itself.
func TestLostReplies(t *testing.T) {
	s := startServer(t)
	for n := range int64(6) {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			c := s.config()
			c.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return &lossy{RoundTripper: next, lose: n + 1} }
			name := fmt.Sprintf("lost-%d", n+1)
			ann := campaign(t, c, name, "ann", true)
			elected(t, ann)
			who, first := holder(t, s.config(), name)
			if who != "ann" {
				t.Fatalf("%q holds it", who)
			}
			// It renews some times, also past the answer that is lost.
			renewed := func() string {
				l, err := leases(t, s.config(), "apps").Get(t.Context(), name, meta.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return l.Spec.RenewTime.String()
			}
			for range 3 {
				last := renewed()
				await(t, "ann renews", func() bool { return renewed() != last })
			}
			select {
			case <-ann.lost:
				t.Error("ann lost the lead")
			default:
			}
			if who, token := holder(t, s.config(), name); who != "ann" || token != first {
				t.Errorf("%q holds it, with the token %s after %s", who, token, first)
			}
		})
	}
}

// leader waits until one of three servers leads, and returns it.
func leader(t testing.TB, cluster []*server) *server {
	t.Helper()
	var shown struct{ Leader string }
	await(t, "there is a leader", func() bool {
		cluster[0].native("GET", "/v1/cluster", "", &shown)
		return shown.Leader != ""
	})
	return cluster[slices.Index([]string{"one", "two", "three"}, shown.Leader)]
}

// One of three servers dies in an election, the leader among them: whoever leads goes on, and nobody leads beside it.
func TestServerDiesInAnElection(t *testing.T) {
	cluster := startCluster(t)
	dies := leader(t, cluster)
	rest := slices.DeleteFunc(slices.Clone(cluster), func(s *server) bool { return s == dies })
	ann := campaign(t, rest[0].config(), "operator", "ann", true)
	elected(t, ann)
	bob := campaign(t, rest[1].config(), "operator", "bob", true)
	dies.End(syscall.SIGKILL)
	select {
	case <-ann.lost:
		t.Error("ann lost the lead with a server")
	case <-bob.leads:
		t.Error("bob leads beside ann")
	case <-time.After(20 * time.Second):
	}
	if who, _ := holder(t, rest[1].config(), "operator"); who != "ann" {
		t.Errorf("%q holds it", who)
	}
	ann.stop()
	<-ann.closed
	elected(t, bob)
}

// A brittle transport goes to one server after the other, and breaks the body of every watch after some reads.
type brittle struct {
	http.RoundTripper
	servers []*server
	turn    atomic.Int64
	broken  atomic.Int64
}

func (b *brittle) RoundTrip(r *http.Request) (*http.Response, error) {
	s := b.servers[b.turn.Add(1)%int64(len(b.servers))]
	r = r.Clone(r.Context())
	r.URL.Host = strings.TrimPrefix(s.url, "http://")
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		response.Body = &brittleBody{ReadCloser: response.Body, of: b, left: 20}
	}
	return response, err
}

type brittleBody struct {
	io.ReadCloser
	of   *brittle
	left int
}

func (b *brittleBody) Read(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		b.of.broken.Add(1)
		return 0, syscall.ECONNRESET
	}
	return b.ReadCloser.Read(p)
}

// An informer whose connections break again and again, and that finds another server each time, sees every change of a
// Lease, in order.
func TestInformerResumes(t *testing.T) {
	cluster := startCluster(t)
	apps := leases(t, cluster[0].config(), "apps")
	l := mustCreate(t, apps, lease("resumes", "0", 3600))
	b := &brittle{servers: cluster}
	c := cluster[0].config()
	c.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		b.RoundTripper = next
		return b
	}
	client, err := coordination.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	informer, told := newInformer(client, "apps", ""), &seen{}
	if _, err := informer.AddEventHandler(told.handler()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { informer.Run(ctx.Done()) })
	told.await(t, "added resumes 0")
	const changes = 60
	for i := 1; i <= changes; i++ {
		l.Spec.HolderIdentity = new(fmt.Sprint(i))
		if l, err = apps.Update(t.Context(), l, meta.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	told.await(t, fmt.Sprint("changed resumes ", changes))
	told.mu.Lock()
	defer told.mu.Unlock()
	if len(told.list) != changes+1 {
		t.Errorf("it was told %q", told.list)
	}
	for i, line := range told.list[1:] {
		if want := fmt.Sprint("changed resumes ", i+1); line != want {
			t.Fatalf("it was told %q as change %d", line, i+1)
		}
	}
	t.Logf("%d changes, with %d connections broken", changes, b.broken.Load())
	if b.broken.Load() == 0 {
		t.Error("no connection was broken")
	}
}
