//go:build linux

package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/test/process"
)

// A secure server has TLS, wants client certificates, and has access on.
type secure struct {
	*world
	dir         string
	own, shared string // URLs
}

func startSecure(t *testing.T) *secure {
	t.Helper()
	building = t
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &secure{world: &world{T: t, name: "leasehold", ctx: ctx}, dir: t.TempDir()}
	shared, own := process.Reserve(t), process.Reserve(t)
	s.own, s.shared = "https://"+own, "https://"+shared
	host := func(address string) string {
		host, _, _ := net.SplitHostPort(address)
		return host
	}
	s.leasehold("cert", "ca")
	s.leasehold("cert", "server", "n1", host(shared), host(own))
	for _, client := range []string{"ann", "eve", "root", "mallory"} {
		s.leasehold("cert", "client", client)
	}
	var said bytes.Buffer
	server, err := process.Start(&said, binary(), "serve", "--listen", shared, "--etcd-listen", own, "--data",
		filepath.Join(s.dir, "data"), "--log-level", "warn", "--access", "--tls-cert", s.file("n1.crt"), "--tls-key",
		s.file("n1.key"), "--tls-client-ca", s.file("ca.crt"))
	s.must(err)
	t.Cleanup(func() {
		server.End(9)
		if t.Failed() {
			t.Logf("the server said:\n%s", &said)
		}
	})
	token := filepath.Join(s.dir, "data", "admin-token")
	for _, err := os.Stat(token); err != nil; _, err = os.Stat(token) {
		if time.Sleep(20 * time.Millisecond); ctx.Err() != nil {
			t.Fatal("there is no admin token")
		}
	}
	for _, known := range []string{"ann", "eve"} {
		s.admin("access", "certificate", "set", known, "--san", "dns:"+known)
	}
	s.admin("access", "bind", "member", "--to", "cert:ann", "--prefix", "team/")
	return s
}

func (s *secure) file(name string) string { return filepath.Join(s.dir, "certs", name) }

// leasehold runs a command, and returns what it prints.
func (s *secure) leasehold(args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.ctx, binary(), args...)
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
	return s.leasehold(append(args, "--server", s.shared, "--ca", s.file("ca.crt"), "--cert", s.file("root.crt"),
		"--key", s.file("root.key"), "--token-file", filepath.Join("data", "admin-token"))...)
}

// tls returns how somebody connects. The empty name has no certificate.
func (s *secure) tls(client string) *tls.Config {
	s.Helper()
	ca, err := os.ReadFile(s.file("ca.crt"))
	s.must(err)
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(ca)
	if client != "" {
		pair, err := tls.LoadX509KeyPair(s.file(client+".crt"), s.file(client+".key"))
		s.must(err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func (s *secure) client(config clientv3.Config) *clientv3.Client {
	s.Helper()
	config.Logger, config.DialTimeout = zap.NewNop(), patience
	client, err := clientv3.New(config)
	s.must(err)
	s.Cleanup(func() { _ = client.Close() })
	return client
}

// At either port a certificate says who somebody is: a member of a team has its locks there and nothing elsewhere,
// somebody without a right has nothing, and nobody comes in without one. What is done is noted under the name.
func TestClientCertificates(t *testing.T) {
	s := startSecure(t)
	for port, url := range map[string]string{"own": s.own, "shared": s.shared} {
		t.Run(port, func(t *testing.T) {
			ann := s.client(clientv3.Config{Endpoints: []string{url}, TLS: s.tls("ann")})
			session, err := concurrency.NewSession(ann, concurrency.WithTTL(60))
			s.must(err)
			m := concurrency.NewMutex(session, "team/"+port)
			s.must(m.Lock(s.ctx))
			if said := s.admin("audit", "team/"+port, "-o", "json"); !strings.Contains(said, "cert:ann") {
				t.Errorf("who did it is not in the journal:\n%s", said)
			}
			s.must(m.Unlock(s.ctx))
			_, err = ann.Put(s.ctx, "other", "")
			s.isDenied(t, "ann elsewhere", err)
			eve := s.client(clientv3.Config{Endpoints: []string{url}, TLS: s.tls("eve")})
			_, err = eve.Get(s.ctx, "team/x")
			s.isDenied(t, "eve", err)
			mallory := s.client(clientv3.Config{Endpoints: []string{url}, TLS: s.tls("mallory")})
			_, err = mallory.Get(s.ctx, "team/x")
			s.isDenied(t, "mallory, whom no rule knows,", err)
			plain := strings.Replace(url, "https", "http", 1)
			for who, config := range map[string]clientv3.Config{
				"who has no certificate": {Endpoints: []string{url}, TLS: s.tls("")},
				"who speaks without TLS": {Endpoints: []string{plain}},
			} {
				ctx, cancel := context.WithTimeout(s.ctx, time.Second)
				if _, err := s.client(config).Get(ctx, "team/x"); err == nil {
					t.Errorf("%s may read", who)
				}
				cancel()
			}
		})
	}
}

func (s *secure) isDenied(t *testing.T, who string, err error) {
	t.Helper()
	if status.Convert(err).Message() != status.Convert(rpctypes.ErrPermissionDenied).Message() &&
		status.Code(err) != codes.PermissionDenied {
		t.Errorf("%s is answered %v", who, err)
	}
}

// A token says more than a certificate: who has one is its principal.
func TestTokenOverTLS(t *testing.T) {
	s := startSecure(t)
	secret, err := os.ReadFile(filepath.Join(s.dir, "data", "admin-token"))
	s.must(err)
	for port, url := range map[string]string{"own": s.own, "shared": s.shared} {
		t.Run(port, func(t *testing.T) {
			root := s.client(clientv3.Config{Endpoints: []string{url}, TLS: s.tls("eve"), Username: "any",
				Password: strings.TrimSpace(string(secret))})
			_, err := root.Put(s.ctx, "anything", port)
			s.must(err)
		})
	}
}

// etcdctl and the JSON gateway know the same certificates.
func TestEtcdctlOverTLS(t *testing.T) {
	program := etcdctl()
	if _, err := os.Stat(program); err != nil {
		t.Skip("left out: etcdctl is not there; make deps builds it")
	}
	s := startSecure(t)
	run := func(url, client string, args ...string) (string, error) {
		cmd := exec.CommandContext(s.ctx, program, append([]string{"--endpoints", url, "--cacert", s.file("ca.crt"), "--cert",
			s.file(client + ".crt"), "--key", s.file(client + ".key")}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for port, url := range map[string]string{"own": s.own, "shared": s.shared} {
		t.Run(port, func(t *testing.T) {
			key := "team/" + port
			for _, line := range []string{"put " + key + " hello", "get " + key, "lock " + key + "/lock echo hello", "endpoint status"} {
				if out, err := run(url, "ann", strings.Fields(line)...); err != nil ||
					!strings.Contains(out, "hello") && !strings.HasPrefix(line, "put") && !strings.HasPrefix(line, "endpoint") {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			}
			if out, err := run(url, "eve", "get", key); err == nil || !strings.Contains(out, "permission denied") {
				t.Errorf("eve is answered %v\n%s", err, out)
			}
			for client, want := range map[string]int{"ann": http.StatusOK, "eve": http.StatusForbidden} {
				config := s.tls(client)
				config.NextProtos = []string{"http/1.1"}
				web := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
				response, err := web.Post(url+"/v3/kv/range", "application/json", strings.NewReader(`{"key":"`+encode(key)+`"}`))
				s.must(err)
				_ = response.Body.Close()
				if response.StatusCode != want {
					t.Errorf("the gateway answers %s with %d, want %d", client, response.StatusCode, want)
				}
			}
		})
	}
}
