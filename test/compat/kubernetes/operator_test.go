package kubernetes

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// An operator's manager whose election, and nothing else, is pointed at Leasehold.
func TestManager(t *testing.T) {
	log.SetLogger(zap.New(zap.UseDevMode(false)))
	s := startServer(t)
	nowhere := &rest.Config{Host: "http://127.0.0.1:1"} // where its own API server would be
	m, err := manager.New(nowhere, manager.Options{
		Scheme: runtime.NewScheme(), Metrics: metrics.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "my-operator",
		LeaderElectionNamespace: "apps", LeaderElectionConfig: s.config(), LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	leads := make(chan struct{})
	err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		close(leads)
		<-ctx.Done()
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	select {
	case <-leads:
	case err := <-ended:
		t.Fatalf("the manager ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the manager does not lead")
	}
	if who, token := holder(t, s.config(), "my-operator"); who == "" || token == "" {
		t.Errorf("%q holds it with the token %q", who, token)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v", err)
	}
	if who, _ := holder(t, s.config(), "my-operator"); who != "" {
		t.Errorf("%q did not give it back", who)
	}
}
