package node

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/certificate"
)

// begin starts a server and returns its address and what it logs. It ends with the test.
func begin(t *testing.T, given map[string]string) (address string, written *log, stop func()) {
	t.Helper()
	c := settings(t, given)
	written = &log{}
	c.Log = written
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- Run(ctx, c, func(s Serving) { ready <- s.Address }) }()
	select {
	case address = <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return address, written, cancel
}

// logged finds an address that a server wrote in its log.
func logged(t *testing.T, written *log, message string) string {
	t.Helper()
	m := regexp.MustCompile(message + `.*?address=(\S+)`).FindStringSubmatch(written.String())
	if m == nil {
		t.Fatalf("no line %q:\n%s", message, written)
	}
	return m[1]
}

// serverCertificate makes a certificate for some hosts.
func serverCertificate(t *testing.T, hosts ...string) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	request := certificate.Request{Name: "n1", Hosts: hosts, Lasts: time.Hour, Now: time.Now()}
	pair, err := certificate.NewAuthority(request)
	if err == nil {
		err = pair.Write(file("ca.crt"), file("ca.key"), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	authority, err := certificate.OpenAuthority(file("ca.crt"), file("ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if pair, err = authority.Server(request); err == nil {
		err = pair.Write(file("server.crt"), file("server.key"), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file("server.crt"), file("server.key")
}

// statusAs asks an address under a host name.
func statusAs(t *testing.T, url, host string) (int, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// A page whose name resolves to this machine must not reach a server that runs on it.
func TestPortsAnswerToTheirOwnNames(t *testing.T) {
	cert, key := serverCertificate(t, "store.example")
	dir := t.TempDir()
	plain, written, _ := begin(t, map[string]string{
		"pprof-listen": "127.0.0.1:0", "advertise": "http://leases.example:1", "host-names": "balancer.example",
		"azure-listen": "127.0.0.1:0", "azure-cert": cert, "azure-key": key,
		"azure-accounts": filepath.Join(dir, "accounts"), "azure-secret-file": filepath.Join(dir, "secret"),
	})
	secure, _, _ := begin(t, map[string]string{"tls-cert": cert, "tls-key": key})
	client := "http://" + plain + "/v1/resources"
	state := "http://" + plain + "/terraform/x"
	metrics := "http://" + plain + "/metrics"
	profiles := "http://" + logged(t, written, "profiles are served") + "/debug/pprof/cmdline"
	azure := "https://" + logged(t, written, "azure clients are served") + "/metadata/endpoints"
	overTLS := "https://" + secure + "/v1/resources"
	for _, c := range []struct {
		url, host string
		allowed   bool
	}{
		{client, "evil.example:4653", false},
		{client, "localhost:4653", true},
		{client, plain, true},
		{client, "leases.example", true},
		{client, "balancer.example:80", true},
		{client, "store.example", false},
		{state, "evil.example", false},
		{metrics, "evil.example", false},
		{metrics, "[::1]:80", true},
		{profiles, "evil.example", false},
		{profiles, "localhost:6060", true},
		{azure, "evil.example", false},
		{azure, "store.example", true},
		{azure, "leasehold.test", true},
		{azure, "127.0.0.1:8443", true},
		{overTLS, "evil.example", false},
		{overTLS, "store.example", true},
		{overTLS, "n1", true},
		{overTLS, "127.0.0.1", true},
	} {
		status, body := statusAs(t, c.url, c.host)
		switch {
		case c.allowed && status != 200:
			t.Errorf("%s as %s: %d %s", c.url, c.host, status, body)
		case !c.allowed && (status != http.StatusMisdirectedRequest || !strings.Contains(body, "host-names")):
			t.Errorf("%s as %s is answered: %d %.300s", c.url, c.host, status, body)
		}
	}
}
