package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var resource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// seen is what an informer was told of, in order.
type seen struct {
	mu   sync.Mutex
	list []string
}

func (s *seen) add(what string, o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	name := ""
	switch l := o.(type) {
	case *v1.Lease:
		name = l.Name
		if l.Spec.HolderIdentity != nil {
			name += " " + *l.Spec.HolderIdentity
		}
	case *unstructured.Unstructured:
		who, _, _ := unstructured.NestedString(l.Object, "spec", "holderIdentity")
		name = l.GetName() + " " + who
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, what+" "+name)
}

func (s *seen) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.add("added", o) },
		UpdateFunc: func(_, o any) { s.add("changed", o) },
		DeleteFunc: func(o any) { s.add("deleted", o) },
	}
}

func (s *seen) has(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.list {
		if line == what {
			return true
		}
	}
	return false
}

func (s *seen) await(t testing.TB, what string) {
	t.Helper()
	await(t, what, func() bool { return s.has(what) })
}

// lease is one with a holder.
func lease(name, holder string, seconds int32) *v1.Lease {
	return &v1.Lease{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: v1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds,
		RenewTime: new(meta.NowMicro())}}
}

func mustCreate(t testing.TB, c coordination.LeaseInterface, l *v1.Lease) *v1.Lease {
	t.Helper()
	made, err := c.Create(t.Context(), l, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestInformers(t *testing.T) {
	s := startServer(t)
	follow(t, s.config())
}

// follow starts informers of every kind, and sees that each is told of everything.
func follow(t *testing.T, c *rest.Config) {
	client, err := coordination.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	apps := client.Leases("apps")
	mustCreate(t, apps, lease("before", "ann", 3600))
	typed, labelled, generic := &seen{}, &seen{}, &seen{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	run := func(i cache.SharedIndexInformer, to *seen) {
		if _, err := i.AddEventHandler(to.handler()); err != nil {
			t.Fatal(err)
		}
		running.Go(func() { i.Run(ctx.Done()) })
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			t.Fatal("the informer does not sync")
		}
	}
	run(newInformer(client, "apps", ""), typed)
	run(newInformer(client, "apps", "watched=yes"), labelled)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped(t, c), 0, "apps", nil)
	run(factory.ForResource(resource).Informer(), generic)
	for _, to := range []*seen{typed, generic} {
		to.await(t, "added before ann")
	}
	l := mustCreate(t, apps, lease("later", "bob", 3600))
	l.Spec.HolderIdentity = new("eve")
	if l, err = apps.Update(t.Context(), l, meta.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, yes := range []string{"yes", "no"} {
		l.Labels = map[string]string{"watched": yes}
		if l, err = apps.Update(t.Context(), l, meta.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := apps.Delete(t.Context(), "later", meta.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []*seen{typed, generic} {
		for _, what := range []string{"added later bob", "changed later eve", "deleted later eve"} {
			to.await(t, what)
		}
	}
	labelled.await(t, "added later eve")
	labelled.await(t, "deleted later eve")
	if labelled.has("added before ann") {
		t.Errorf("an informer with labels was told of %q", labelled.list)
	}
	// Metadata alone.
	meta1, err := metadata.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	list, err := meta1.Resource(resource).Namespace("apps").List(t.Context(), meta.ListOptions{})
	if err != nil || len(list.Items) == 0 || list.Items[0].Name != "before" {
		t.Errorf("a list of metadata: %+v, %v", list, err)
	}
}

func newInformer(client *coordination.CoordinationV1Client, namespace, labels string) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o meta.ListOptions) (list runtime.Object, err error) {
			o.LabelSelector = labels
			return client.Leases(namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
			o.LabelSelector = labels
			return client.Leases(namespace).Watch(ctx, o)
		},
	}, client), &v1.Lease{}, 0, cache.Indexers{})
}

// The end of a lease by time is an event of its own, at a version of its own.
func TestExpiryIsWatched(t *testing.T) {
	s := startServer(t)
	apps := leases(t, s.config(), "apps")
	made := mustCreate(t, apps, lease("short", "ann", 1))
	w, err := apps.Watch(t.Context(), meta.ListOptions{ResourceVersion: made.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case e := <-w.ResultChan():
		l, ok := e.Object.(*v1.Lease)
		if !ok || e.Type != watch.Modified || *l.Spec.HolderIdentity != "" || l.ResourceVersion == made.ResourceVersion ||
			*l.Spec.LeaseDurationSeconds != 1 || l.Annotations["leasehold/token"] != "" {
			t.Errorf("the event is %+v", e)
		}
	case <-time.After(patience):
		t.Fatal("nobody is told that the lease has ended")
	}
}

// A watch goes on where it was, on another server, while one of three is killed: nothing is missing and nothing
// comes twice.
func TestWatchGoesOnElsewhere(t *testing.T) {
	cluster := startCluster(t)
	writer := leases(t, cluster[0].config(), "apps")
	var begin string
	await(t, "a Lease can be made", func() bool {
		l, err := writer.Create(t.Context(), lease("first", "ann", 3600), meta.CreateOptions{})
		if err == nil {
			begin = l.ResourceVersion
		}
		return err == nil
	})
	const most = 200
	go func() {
		for i := range most {
			name := fmt.Sprintf("n%03d", i)
			for try := 0; try < 100; try++ {
				_, err := leases(t, cluster[try%2].config(), "apps").Create(context.Background(), lease(name, "ann", 3600), meta.CreateOptions{})
				if err == nil || apierrors.IsAlreadyExists(err) {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if i == most/2 {
				cluster[2].End(9)
			}
		}
	}()
	got := map[string]int{}
	version := begin
	for turn := 0; len(got) < most && turn < 400; turn++ {
		seconds := int64(1)
		w, err := leases(t, cluster[turn%3].config(), "apps").Watch(t.Context(), meta.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds})
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		taken := 0
		for e := range w.ResultChan() {
			l, ok := e.Object.(*v1.Lease)
			if !ok {
				t.Fatalf("the watch was told %+v", e)
			}
			got[l.Name]++
			version = l.ResourceVersion
			if taken++; taken == 7 {
				break // as if the connection was lost
			}
		}
		w.Stop()
	}
	for i := range most {
		if n := got[fmt.Sprintf("n%03d", i)]; n != 1 {
			t.Errorf("n%03d was seen %d times", i, n)
		}
	}
}
