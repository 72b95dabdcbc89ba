package azure

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var full = flag.Bool("full", false, "everything, which takes some minutes")

// binary is the program, built once.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "compat")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "leasehold")
	build := exec.Command("go", "build", "-o", binary, "./cmd/leasehold")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	code := 1
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "leasehold does not build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

const (
	accountName = "leasehold"
	domain      = "leasehold.test"
	patience    = 60 * time.Second // after which something hangs
)

// A server is Leasehold in a process of its own, with a port for Azure's clients.
type server struct {
	t       *testing.T
	dir     string
	native  string // URL
	azure   string // host:port
	key     string
	cmd     *exec.Cmd
	exited  chan struct{}
	log     *lines
	listens []string
	flags   []string // beside those that each has
}

// startServer starts a server with an account and certificates of its own.
func startServer(t *testing.T, flags ...string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), listens: []string{"127.0.0.1:0", "127.0.0.1:0"}, flags: flags}
	makeCertificates(t, s.dir)
	var shown struct{ Keys []string }
	if err := json.Unmarshal([]byte(s.leasehold(t, "azure", "account", "create", accountName, "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	s.key = shown.Keys[0]
	s.start()
	t.Cleanup(s.stop)
	return s
}

// leasehold runs a command and returns what it prints.
func (s *server) leasehold(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, err := s.try(args...)
	if err != nil {
		t.Fatalf("leasehold %s: %v\n%s", strings.Join(args, " "), err, errs)
	}
	return out
}

// try runs a command that may be refused.
func (s *server) try(args ...string) (out, errs string, err error) {
	cmd := exec.Command(binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LEASEHOLD_SERVER="+s.native)
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	return string(text), said.String(), err
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(binary, append([]string{"serve", "--listen", s.listens[0], "--data", "data",
		"--log-format", "json", "--azure-listen", s.listens[1], "--azure-cert", "cert.pem", "--azure-key", "key.pem",
		"--azure-domain", domain}, s.flags...)...)
	s.cmd.Dir = s.dir
	s.log = &lines{seen: make(chan struct{}, 1)}
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd, exited := s.cmd, make(chan struct{})
	s.exited = exited
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.azure = s.announced("azure clients are served", "address")
	s.native = s.announced("leasehold serves", "url")
	s.listens = []string{strings.TrimPrefix(s.native, "http://"), s.azure} // the same after a restart
}

// announced waits for a line of the log and returns one of its fields.
func (s *server) announced(message, field string) string {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		for _, line := range s.log.all() {
			var entry map[string]any
			if json.Unmarshal([]byte(line), &entry) == nil && entry["msg"] == message {
				return fmt.Sprint(entry[field])
			}
		}
		select {
		case <-s.log.seen:
		case <-s.exited:
			s.t.Fatalf("the server ended: %s", strings.Join(s.log.all(), "\n"))
		case <-deadline:
			s.t.Fatalf("the server does not say %q: %s", message, strings.Join(s.log.all(), "\n"))
		}
	}
}

// kill ends the server as a power cut does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.kill()
	}
}

// lines collects what a process says.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	select {
	case l.seen <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(l.text.String(), "\n")
}

// makeCertificates makes an authority and a certificate for a server on this machine.
func makeCertificates(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	now := time.Now()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "compat"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	cert := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"*.blob." + domain}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	certDER, err := x509.CreateCertificate(rand.Reader, cert, ca, &key.PublicKey, caKey)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: caDER}, "cert.pem": {Type: "CERTIFICATE", Bytes: certDER}, "key.pem": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		must(os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

// client trusts the server, and finds it whatever name it is called by.
func (s *server) client() *http.Client {
	s.t.Helper()
	pool := x509.NewCertPool()
	text, err := os.ReadFile(filepath.Join(s.dir, "ca.pem"))
	if err != nil || !pool.AppendCertsFromPEM(text) {
		s.t.Fatal(err)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.azure)
		},
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A proxy lets programs that can't be told otherwise find a name on this machine: it
// takes every CONNECT to one address.
func startProxy(t *testing.T, to func() string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { proxy(conn, to()) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

func proxy(conn net.Conn, to string) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	if _, err := http.ReadRequest(r); err != nil {
		return
	}
	other, err := net.Dial("tcp", to)
	if err != nil {
		_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer other.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(other, r)
		_ = other.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(conn, other)
	_ = conn.Close()
	both.Wait()
}
