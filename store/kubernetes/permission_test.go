//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

const rolesPath = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"

// allow gives the user verbs on Leases, and takes all others.
func (r *rig) allow(t testing.TB, verbs ...string) {
	t.Helper()
	r.do(t, http.MethodDelete, rolesPath+"roles/leasehold", nil)
	role := map[string]any{"metadata": map[string]any{"name": "leasehold"}, "rules": []any{map[string]any{
		"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "verbs": verbs,
	}}}
	if status, text := r.do(t, http.MethodPost, rolesPath+"roles", role); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	binding := map[string]any{"metadata": map[string]any{"name": "leasehold"},
		"subjects": []any{map[string]any{"kind": "User", "name": "user", "apiGroup": "rbac.authorization.k8s.io"}},
		"roleRef":  map[string]any{"kind": "Role", "name": "leasehold", "apiGroup": "rbac.authorization.k8s.io"}}
	status, text := r.do(t, http.MethodPost, rolesPath+"rolebindings", binding)
	if status != http.StatusCreated && status != http.StatusConflict {
		t.Fatalf("%d %s", status, text)
	}
	r.awaitRole(t, verbs)
}

// awaitRole waits until the API server judges by the new role.
func (r *rig) awaitRole(t testing.TB, verbs []string) {
	t.Helper()
	for _, verb := range []string{"get", "list", "watch", "create", "update"} {
		review := map[string]any{"spec": map[string]any{"user": "user", "resourceAttributes": map[string]string{
			"namespace": "default", "group": "coordination.k8s.io", "resource": "leases", "verb": verb}}}
		want := `"allowed":false`
		if slices.Contains(verbs, verb) {
			want = `"allowed":true`
		}
		for range 100 {
			_, text := r.do(t, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
			if strings.Contains(string(text), want) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// everything does what needs permissions, and returns the first error.
func everything(t testing.TB, s *Store, id string) error {
	ref := store.Ref{Resource: "role", ID: id}
	ctx := t.Context()
	if _, err := s.Acquire(ctx, store.Request{Resource: ref.Resource, ID: id, TTL: time.Minute}); err != nil {
		return err
	}
	if renewals, err := s.Renew(ctx, ref); err != nil || renewals[0].Err != nil {
		return errors.Join(err, renewals[0].Err)
	}
	if _, err := s.List(ctx, store.Query{}); err != nil {
		return err
	}
	if _, err := s.Break(ctx, store.BreakRequest{Ref: ref, By: "ann"}); err != nil {
		return err
	}
	return s.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{ref}})
}

// The role of the documentation is enough, and each of its verbs is needed and named if it is missing.
func roles(t *testing.T, r *rig) {
	c := configOf(t, r.Kubernetes)
	c.TokenFile = tokenFile(t, r.UserToken)
	s := openWith(t, c)
	all := []string{"get", "list", "watch", "create", "update"}
	for _, missing := range []string{"create", "get", "update", "list"} {
		r.allow(t, slices.DeleteFunc(slices.Clone(all), func(verb string) bool { return verb == missing })...)
		err := everything(t, s, "without-"+missing)
		if !errors.Is(err, leasehold.ErrDenied) || !strings.Contains(err.Error(), "verb "+missing+" on") ||
			!strings.Contains(err.Error(), "leases.coordination.k8s.io in the namespace default") {
			t.Errorf("without %s: %v", missing, err)
		}
		r.do(t, http.MethodDelete, leasesPath+"/role", nil)
		s = openWith(t, c)
	}
	r.allow(t, all...)
	if err := everything(t, s, "with-all"); err != nil {
		t.Errorf("with the role of the documentation: %v", err)
	}
	r.allow(t, "get", "list", "create", "update")
	acquire(t, s, "role", "held")
	_, err := s.Acquire(t.Context(), store.Request{Resource: "role", ID: "polls", TTL: time.Second, Wait: time.Minute})
	if err != nil {
		t.Errorf("a waiter without watch: %v", err)
	}
}

// opened opens the store by an address, and uses it.
func opened(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := store.Open(ctx, address, store.Settings{})
	if err != nil {
		t.Errorf("%s: %v", address, err)
		return
	}
	defer func() { _ = s.Close() }()
	if _, err := s.Read(ctx, "r"); err != nil {
		t.Errorf("%s: %v", address, err)
	}
}

// The three ways to say where the API server is.
func addresses(t *testing.T, r *rig) {
	q := url.Values{"token": {tokenFile(t, r.AdminToken)}, "ca": {r.CAFile()}}
	opened(t, "kubernetes://"+r.Address+"/default?"+q.Encode())
	file := r.Kubeconfig(r.AdminToken)
	opened(t, "kubernetes:///default?kubeconfig="+file)
	t.Setenv("KUBECONFIG", file)
	opened(t, "kubernetes:")

	// As in a pod.
	t.Setenv("KUBECONFIG", "")
	host, port, _ := strings.Cut(r.Address, ":")
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	dir := t.TempDir()
	certificate, err := os.ReadFile(r.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ca.crt": string(certificate), "token": r.AdminToken, "namespace": "kube-system",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer func(before string) { accountDir = before }(accountDir)
	accountDir = dir
	opened(t, "kubernetes:")
	s := openWith(t, Config{})
	if s.space != "kube-system" {
		t.Errorf("the namespace of the pod is %q", s.space)
	}
	// Its token is replaced.
	s.token.text = "expired"
	if _, err := s.Read(t.Context(), "r"); err != nil {
		t.Errorf("with a token that has expired, and a new one in the file: %v", err)
	}

	c := configOf(t, r.Kubernetes)
	c.TokenFile = tokenFile(t, "secret-and-wrong")
	if _, err := Open(t.Context(), c); !errors.Is(err, leasehold.ErrDenied) || strings.Contains(err.Error(), "secret") {
		t.Errorf("with a wrong token: %v", err)
	}
	c.CAFile = ""
	if _, err := Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "?ca=FILE") {
		t.Errorf("with a certificate that is not trusted: %v", err)
	}
}
