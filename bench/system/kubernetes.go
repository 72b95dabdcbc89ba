//go:build linux

package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
	"github.com/leasehold/leasehold/internal/peer"
)

func startKubernetes(on *stage.Stage, _ Config) *Server {
	k := peer.StartKubernetes(on)
	etcd := &k.Etcd.Members[0].Server
	return &Server{
		Version: versionOf(k.Binary(), "--version"), Setup: "with an etcd that does not sync",
		Addresses: []string{k.URL()}, Nodes: []*peer.Server{&k.Server, etcd}, kubernetes: k,
	}
}

// A kubelet keeps Leases of Kubernetes, as nodes do: it creates one, and from then on writes it whole, in
// protobuf, with the version that it got last.
type kubelet struct {
	*http.Client
	url   string // of all Leases of a namespace
	token string
}

func dialLeaseholdKubernetes(_ context.Context, s *Server, d Dialing) (Client, error) {
	t := &http.Transport{MaxIdleConnsPerHost: max(2, d.Users)}
	return newKubelet(&http.Client{Transport: t}, s.first(d)[0], ""), nil
}

func dialKubernetes(_ context.Context, s *Server, d Dialing) (Client, error) {
	return newKubelet(s.kubernetes.Client(), s.first(d)[0], s.kubernetes.AdminToken), nil
}

func newKubelet(client *http.Client, server, token string) *kubelet {
	return &kubelet{client, server + "/apis/coordination.k8s.io/v1/namespaces/default/leases", token}
}

// Close closes the connections.
func (k *kubelet) Close() { k.CloseIdleConnections() }

// Acquire creates a Lease, which is renewed by hand alone.
func (k *kubelet) Acquire(ctx context.Context, r Request) (Hold, error) {
	if r.Wait || !r.ByHand {
		return nil, errors.ErrUnsupported
	}
	name := strings.ReplaceAll(r.Name, "/", "-")
	l := &object.Lease{Meta: object.Meta{Name: name, Namespace: "default"},
		Spec: object.Spec{Holder: &name, DurationSeconds: new(int32(seconds(r.TTL)))}}
	h := &nodeLease{kubelet: k, lease: l}
	return h, h.send(ctx, http.MethodPost, k.url)
}

// A nodeLease is a Lease as the server answered it last.
type nodeLease struct {
	*kubelet
	lease *object.Lease
}

// Renew writes the Lease again.
func (h *nodeLease) Renew(ctx context.Context) error {
	return h.send(ctx, http.MethodPut, h.url+"/"+h.lease.Meta.Name)
}

// Release deletes the Lease.
func (h *nodeLease) Release(ctx context.Context) error {
	_, err := h.ask(ctx, http.MethodDelete, h.url+"/"+h.lease.Meta.Name, nil)
	return err
}

// send writes the Lease with the time of now, and takes what is answered in its place.
func (h *nodeLease) send(ctx context.Context, method, url string) error {
	h.lease.Spec.RenewTime = object.MicroTime{Time: time.Now()}
	answer, err := h.ask(ctx, method, url, object.Envelope(object.APIVersion, object.Kind, h.lease.Marshal()))
	if err != nil {
		return err
	}
	_, _, message, err := object.Open(answer)
	if err != nil {
		return err
	}
	h.lease = &object.Lease{}
	return h.lease.Unmarshal(message)
}

func (k *kubelet) ask(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header["Content-Type"], r.Header["Accept"] = []string{object.Protobuf}, []string{object.Protobuf}
	if k.token != "" {
		r.Header["Authorization"] = []string{"Bearer " + k.token}
	}
	response, err := k.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %.200q", method, url, response.Status, answer)
	}
	return answer, err
}
