package kubernetes

import (
	"context"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A candidate is an elector of client-go. It ends without a word when its context does.
type candidate struct {
	leads  chan struct{}
	lost   chan struct{}
	stop   context.CancelFunc
	closed chan struct{}
}

// campaign starts an elector with the durations that client-go suggests.
func campaign(t testing.TB, c *rest.Config, name, identity string, release bool) *candidate {
	t.Helper()
	client, err := coordination.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	e := &candidate{leads: make(chan struct{}), lost: make(chan struct{}), closed: make(chan struct{})}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: meta.ObjectMeta{Namespace: "apps", Name: name}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity}},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(e.leads) }, OnStoppedLeading: func() { close(e.lost) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	go func() {
		defer close(e.closed)
		elector.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-e.closed })
	return e
}

// elected waits until a candidate leads, and returns how long that took.
func elected(t testing.TB, e *candidate) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-e.leads:
	case <-time.After(patience):
		t.Fatal("nobody was elected")
	}
	return time.Since(began)
}

// holder reads who holds a Lease, and its token.
func holder(t testing.TB, c *rest.Config, name string) (who, token string) {
	t.Helper()
	l, err := leases(t, c, "apps").Get(t.Context(), name, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Spec.HolderIdentity != nil {
		who = *l.Spec.HolderIdentity
	}
	return who, l.Annotations["leasehold/token"]
}

// Two candidates; the leader gives up in good order, and then one dies without a word.
func TestElectors(t *testing.T) {
	s := startServer(t)
	ann := campaign(t, s.config(), "operator", "ann", true)
	elected(t, ann)
	who, first := holder(t, s.config(), "operator")
	if who != "ann" || first == "" {
		t.Fatalf("%q holds it, with the token %q", who, first)
	}
	bob := campaign(t, s.config(), "operator", "bob", false)
	var shown struct{ Holders []struct{ Holder string } }
	s.native("GET", "/v1/resources/kubernetes/apps/operator", "", &shown)
	if len(shown.Holders) != 1 || shown.Holders[0].Holder != "ann" {
		t.Errorf("our own API shows %+v", shown)
	}
	ann.stop()
	<-ann.lost
	t.Logf("after a release the next leads in %v", elected(t, bob))
	who, second := holder(t, s.config(), "operator")
	if who != "bob" || second <= first {
		t.Fatalf("%q holds it, with the token %s after %s", who, second, first)
	}
	bob.stop() // it does not release: for the others it has died
	<-bob.closed
	eve := campaign(t, s.config(), "operator", "eve", true)
	t.Logf("after a death the next leads in %v", elected(t, eve))
	if who, third := holder(t, s.config(), "operator"); who != "eve" || third <= second {
		t.Errorf("%q holds it, with the token %s after %s", who, third, second)
	}
}

// A holder that died long ago keeps nobody waiting: the server knows that its lease is over.
func TestColdStart(t *testing.T) {
	s := startServer(t)
	ann := campaign(t, s.config(), "cold", "ann", false)
	elected(t, ann)
	ann.stop()
	<-ann.closed
	await(t, "the lease of ann has ended", func() bool { who, _ := holder(t, s.config(), "cold"); return who == "" })
	bob := campaign(t, s.config(), "cold", "bob", true)
	took := elected(t, bob)
	t.Logf("bob leads after %v", took)
	// Against an API server this takes the whole duration of 15 s and more.
	if took > 10*time.Second {
		t.Errorf("a cold start took %v", took)
	}
}

// A break through our own API ends the holder's lease for electors, too.
func TestBreakIsSeenByElectors(t *testing.T) {
	s := startServer(t)
	ann := campaign(t, s.config(), "broken", "ann", false)
	elected(t, ann)
	ann.stop()
	<-ann.closed
	_, token := holder(t, s.config(), "broken")
	s.native("POST", "/v1/break", `{"resource":"kubernetes/apps/broken","token":`+token+`,"period":"0s","reason":"test"}`, nil)
	if who, _ := holder(t, s.config(), "broken"); who != "" {
		t.Errorf("%q still holds it", who)
	}
	elected(t, campaign(t, s.config(), "broken", "bob", true))
}
