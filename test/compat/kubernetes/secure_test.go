package kubernetes

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasehold/leasehold/test/process"
)

// leasehold runs a command in the server's directory, and returns what it prints.
func (s *server) leasehold(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = s.dir, []string{"HOME=" + s.dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("leasehold %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// startSecure starts a server with TLS and access, and returns how its kubeconfig tells clients to reach it.
func startSecure(t *testing.T, flags ...string) (*server, *rest.Config) {
	t.Helper()
	address := process.Reserve(t)
	host, _, _ := net.SplitHostPort(address)
	s := &server{t: t, dir: t.TempDir(), url: "https://" + address}
	s.leasehold("cert", "ca")
	s.leasehold("cert", "server", "n1", host)
	s.leasehold("cert", "client", "root")
	certs := filepath.Join(s.dir, "certs")
	s.args = []string{"serve", "--listen", address, "--data", filepath.Join(s.dir, "data"), "--log-level", "warn", "--access",
		"--tls-cert", filepath.Join(certs, "n1.crt"), "--tls-key", filepath.Join(certs, "n1.key")}
	for _, flag := range flags {
		s.args = append(s.args, strings.Replace(flag, "certs/", certs+"/", 1))
	}
	s.start()
	token := filepath.Join(s.dir, "data", "admin-token")
	await(t, "there is an admin token", func() bool { _, err := os.Stat(token); return err == nil })
	file := filepath.Join(s.dir, "kubeconfig")
	text := s.leasehold("kubernetes", "config", "--server", s.url, "--ca", filepath.Join(certs, "ca.crt"), "--token-file", token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	c.QPS, c.Burst = 1000, 1000
	c.CertFile, c.KeyFile = filepath.Join(certs, "root.crt"), filepath.Join(certs, "root.key")
	await(t, "it answers", func() bool {
		_, err := leases(t, c, "apps").List(t.Context(), meta.ListOptions{})
		return err == nil
	})
	return s, c
}

// Over TLS, which means HTTP/2, with a token: elections, informers and kubectl, by the kubeconfig that we print.
func TestOverTLS(t *testing.T) {
	s, c := startSecure(t)
	elected(t, campaign(t, c, "operator", "ann", true))
	follow(t, c)
	k := newTerminal(t, c)
	k.config = filepath.Join(s.dir, "kubeconfig")
	k.run("", "get leases -n apps", "operator", "ann")
	stranger := rest.AnonymousClientConfig(c)
	if _, err := leases(t, stranger, "apps").List(t.Context(), meta.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a token: %v", err)
	}
	s.admin("access", "token", "create", "guest", "--secret-file", "guest.token", "--ttl", "none")
	guest := rest.AnonymousClientConfig(c)
	guest.BearerTokenFile = filepath.Join(s.dir, "guest.token")
	_, err := leases(t, guest, "apps").Create(t.Context(), lease("mine", "guest", 15), meta.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("without a right: %v", err)
	}
}
