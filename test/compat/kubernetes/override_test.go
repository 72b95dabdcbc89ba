//go:build linux

package kubernetes

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/test/process"
)

var full = flag.Bool("full", false, "heartbeats through a kube-apiserver for ten minutes, not for half of one")

// A kube-apiserver keeps the Leases of its cluster in three servers, through their etcd door. Nodes send heartbeats, an
// operator leads, and kubectl lists; meanwhile the server that leads is killed. No Lease is lost, and nobody loses the
// lead.
func TestLeasesOfAClusterAreKept(t *testing.T) {
	var endpoints []string
	cluster := startClusterWith(t, func() []string {
		address := process.Reserve(t)
		endpoints = append(endpoints, "http://"+address)
		return []string{"--etcd-listen", address}
	})
	k := peer.StartKubernetes(t, "--etcd-servers-overrides=coordination.k8s.io/leases#"+strings.Join(endpoints, ";"))
	c := &rest.Config{Host: k.URL(), BearerToken: k.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAFile: k.CAFile()},
		QPS: 1000, Burst: 1000}
	const nodes = 20
	lasts := 30 * time.Second
	if *full {
		lasts = 10 * time.Minute
	}
	admin := untyped(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), lasts+patience)
	defer cancel()
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	apps := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "apps"}}}
	if _, err := admin.Resource(namespaces).Create(ctx, apps, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "there is the namespace of nodes", func() bool {
		_, err := admin.Resource(namespaces).Get(ctx, "kube-node-lease", meta.GetOptions{})
		return err == nil
	})
	until := time.Now().Add(lasts)
	ann := campaign(t, c, "operator", "ann", true)
	elected(t, ann)
	var running sync.WaitGroup
	all := make([]*kubelet, nodes)
	for i := range all {
		all[i] = &kubelet{name: fmt.Sprint("node-", i), leases: leases(t, c, "kube-node-lease")}
		running.Go(func() { all[i].run(ctx, t, until) })
	}
	time.Sleep(lasts / 3)
	leader(t, cluster).End(syscall.SIGKILL)
	killed := time.Now()
	running.Wait()
	select {
	case <-ann.lost:
		t.Error("ann lost the lead")
	default:
	}
	kept, err := leases(t, c, "kube-node-lease").List(ctx, meta.ListOptions{})
	if err != nil || len(kept.Items) != nodes {
		t.Fatalf("%d Leases of %d are there: %v", len(kept.Items), nodes, err)
	}
	beats, failed := 0, 0
	for _, node := range all {
		beats, failed = beats+node.beats, failed+node.failed
		if node.last.Before(killed) {
			t.Errorf("%s had no heartbeat after the server was killed", node.name)
		}
	}
	t.Logf("%d heartbeats in %v, %d of which had to be repeated", beats, lasts, failed)
	terminal := newTerminal(t, c)
	terminal.run("", "get leases -A", "node-0", "operator", "ann")
	var kv struct{ Items []struct{ Path string } }
	rest := cluster[0]
	if !rest.Runs() {
		rest = cluster[1]
	}
	rest.native("GET", "/v1/records?prefix=/registry/leases/kube-node-lease/", "", &kv)
	if len(kv.Items) != nodes {
		t.Errorf("Leasehold has %d of the Leases", len(kv.Items))
	}
}

// A kubelet keeps the Lease of a node, as kubelets do: it writes what it got last, and reads when that is not the newest.
type kubelet struct {
	name          string
	leases        coordination.LeaseInterface
	beats, failed int
	last          time.Time // of a heartbeat that was accepted
}

func (k *kubelet) run(ctx context.Context, t *testing.T, until time.Time) {
	l := lease(k.name, k.name, 40)
	made, err := k.leases.Create(ctx, l, meta.CreateOptions{})
	if err != nil {
		t.Errorf("%s: %v", k.name, err)
		return
	}
	uid := made.UID
	for time.Now().Before(until) {
		made.Spec.RenewTime = new(meta.NowMicro())
		written, err := k.leases.Update(ctx, made, meta.UpdateOptions{})
		if err != nil {
			k.failed++
			if written, err = k.leases.Get(ctx, k.name, meta.GetOptions{}); err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
		} else {
			k.beats++
			k.last = time.Now()
		}
		if made = written; made.UID != uid {
			t.Errorf("the Lease of %s was lost: its uid is %s, and was %s", k.name, made.UID, uid)
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}
