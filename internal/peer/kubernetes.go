//go:build linux

package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/test/process"
)

// A Kubernetes is a kube-apiserver with an etcd, and nothing else: no node, no controller.
type Kubernetes struct {
	Server
	Etcd *Etcd

	// AdminToken is the bearer token of a user who may do everything.
	AdminToken string

	// UserToken is that of "user", who may do nothing until a role binding allows it.
	UserToken string

	keys string // directory of certificates and of what the server needs to start
}

// StartKubernetes starts a kube-apiserver with more arguments, and waits until it is ready.
func StartKubernetes(t testing.TB, args ...string) *Kubernetes {
	t.Helper()
	binary := find(t, "kube-apiserver", "make peers")
	k := &Kubernetes{
		Etcd: StartEtcd(t, EtcdConfig{}), AdminToken: "admin-token", UserToken: "user-token", keys: t.TempDir(),
	}
	k.Server = Server{Address: process.Reserve(t), name: "kube-apiserver", dir: k.keys, ready: k.answers}
	host, port, _ := net.SplitHostPort(k.Address)
	tokens := k.AdminToken + ",admin,1,system:masters\n" + k.UserToken + ",user,2\n"
	err := errors.Join(os.WriteFile(filepath.Join(k.keys, "tokens.csv"), []byte(tokens), 0o600),
		writeKey(filepath.Join(k.keys, "accounts.key")))
	if err != nil {
		t.Fatal(err)
	}
	k.run = append([]string{
		binary, "--etcd-servers", k.Etcd.Members[0].URL(), "--cert-dir", k.keys,
		"--bind-address", host, "--secure-port", port, "--advertise-address", host,
		"--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.0.0.0/24",
		"--token-auth-file", filepath.Join(k.keys, "tokens.csv"), "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://kubernetes.test",
		"--service-account-key-file", filepath.Join(k.keys, "accounts.key"),
		"--service-account-signing-key-file", filepath.Join(k.keys, "accounts.key"),
		"--disable-admission-plugins", "ServiceAccount",
	}, args...)
	k.start(t)
	return k
}

// writeKey makes the key that the server signs service account tokens with.
func writeKey(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// Binary returns the program that runs.
func (k *Kubernetes) Binary() string { return k.run[0] }

// URL returns what clients connect to.
func (k *Kubernetes) URL() string { return "https://" + k.Address }

// CAFile returns the file with the certificate that clients trust.
func (k *Kubernetes) CAFile() string { return filepath.Join(k.keys, "apiserver.crt") }

// Client returns an HTTP client that trusts the server. The caller closes its idle connections.
func (k *Kubernetes) Client() *http.Client {
	pool := x509.NewCertPool()
	certificate, _ := os.ReadFile(k.CAFile()) // while the server starts there is none
	pool.AppendCertsFromPEM(certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	return &http.Client{Timeout: 10 * time.Second, Transport: transport}
}

// Kubeconfig writes a file for clients that use a token, and returns its name.
func (k *Kubernetes) Kubeconfig(token string) string {
	file := filepath.Join(k.t.TempDir(), "kubeconfig")
	k.check(os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: peer, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: peer, user: {token: %q}}]
contexts: [{name: peer, context: {cluster: peer, user: peer}}]
current-context: peer
`, k.URL(), k.CAFile(), token), 0o600))
	return file
}

// answers reports whether the server is ready, and has made the namespace that everybody uses.
func (k *Kubernetes) answers() error {
	client := k.Client()
	defer client.CloseIdleConnections()
	_, err := httpSend(client, http.MethodGet, k.URL()+"/readyz", k.AdminToken, "")
	if err == nil {
		_, err = httpSend(client, http.MethodGet, k.URL()+"/api/v1/namespaces/default", k.AdminToken, "")
	}
	return err
}
