//go:build linux

package consul

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/test/process"
)

// A secure server has TLS, wants client certificates, and has access on.
type secure struct {
	*testing.T
	dir         string
	own, shared string // addresses: for Consul's clients, and for all others
}

func startSecure(t *testing.T) *secure {
	t.Helper()
	building = t
	s := &secure{T: t, dir: t.TempDir(), own: process.Reserve(t), shared: process.Reserve(t)}
	ownHost, _, _ := net.SplitHostPort(s.own)
	sharedHost, _, _ := net.SplitHostPort(s.shared)
	s.leasehold("cert", "ca")
	s.leasehold("cert", "server", "n1", ownHost, sharedHost)
	for _, client := range []string{"ann", "eve", "root"} {
		s.leasehold("cert", "client", client)
	}
	var said bytes.Buffer
	server, err := process.Start(&said, binary(), "serve", "--listen", s.shared, "--consul-listen", s.own, "--data",
		filepath.Join(s.dir, "data"), "--log-level", "warn", "--access", "--tls-cert", s.file("n1.crt"), "--tls-key",
		s.file("n1.key"), "--tls-client-ca", s.file("ca.crt"))
	s.must(err)
	t.Cleanup(func() {
		server.End(9)
		if t.Failed() {
			t.Logf("the server said:\n%s", &said)
		}
	})
	began := time.Now()
	for _, err := os.Stat(s.adminToken()); err != nil; _, err = os.Stat(s.adminToken()) {
		if time.Sleep(20 * time.Millisecond); time.Since(began) > patience {
			t.Fatal("there is no admin token")
		}
	}
	s.admin("access", "certificate", "set", "people", "--san", "dns:*")
	s.admin("access", "bind", "member", "--to", "cert:ann", "--prefix", "team/")
	return s
}

func (s *secure) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *secure) file(name string) string { return filepath.Join(s.dir, "certs", name) }

func (s *secure) adminToken() string { return filepath.Join(s.dir, "data", "admin-token") }

// leasehold runs a command, and returns what it prints.
func (s *secure) leasehold(args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), binary(), args...)
	cmd.Dir, cmd.Env = s.dir, []string{"HOME=" + s.dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("leasehold %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// admin runs a command as somebody who may do everything.
func (s *secure) admin(args ...string) string {
	s.Helper()
	return s.leasehold(append(args, "--server", "https://"+s.shared, "--ca", s.file("ca.crt"), "--cert",
		s.file("root.crt"), "--key", s.file("root.key"), "--token-file", s.adminToken())...)
}

// client returns a client with somebody's certificate. The empty name has none.
func (s *secure) client(name, token string) *api.Client {
	s.Helper()
	config := &api.Config{Address: s.own, Scheme: "https", Token: token, TLSConfig: api.TLSConfig{CAFile: s.file("ca.crt")}}
	if name != "" {
		config.TLSConfig.CertFile, config.TLSConfig.KeyFile = s.file(name+".crt"), s.file(name+".key")
	}
	client, err := api.NewClient(config)
	s.must(err)
	return client
}

// A certificate says who somebody is: a member of a team has its locks and nothing elsewhere, somebody without a right
// has nothing, and nobody comes in without one. What is done is noted under the name.
func TestClientCertificates(t *testing.T) {
	s := startSecure(t)
	ann := s.client("ann", "")
	lock, err := ann.LockKey("team/lock")
	s.must(err)
	lost, err := lock.Lock(nil)
	s.must(err)
	if said := s.admin("audit", "team/lock", "-o", "json"); !strings.Contains(said, "cert:ann") {
		t.Errorf("who did it is not in the journal:\n%s", said)
	}
	select {
	case <-lost:
		t.Error("the lock is lost")
	default:
	}
	s.must(lock.Unlock())
	_, err = ann.KV().Put(&api.KVPair{Key: "other"}, nil)
	s.isDenied("ann elsewhere", err)
	_, err = s.client("eve", "").KV().Put(&api.KVPair{Key: "team/x"}, nil)
	s.isDenied("eve", err)
	if _, _, err := s.client("", "").KV().Get("team/lock", nil); err == nil {
		t.Error("who has no certificate may read")
	}
	plain, err := api.NewClient(&api.Config{Address: s.own})
	s.must(err)
	if _, _, err := plain.KV().Get("team/lock", nil); err == nil {
		t.Error("who speaks without TLS may read")
	}
}

func (s *secure) isDenied(who string, err error) {
	s.Helper()
	if err == nil || !strings.Contains(err.Error(), "403") {
		s.Errorf("%s is answered %v", who, err)
	}
}

// A token says more than a certificate: who has one is its principal.
func TestTokenOverTLS(t *testing.T) {
	s := startSecure(t)
	secret, err := os.ReadFile(s.adminToken())
	s.must(err)
	_, err = s.client("eve", strings.TrimSpace(string(secret))).KV().Put(&api.KVPair{Key: "anything"}, nil)
	s.must(err)
}
