package node

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/config"
)

// A log can be read while it is written.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func settings(t *testing.T, given map[string]string) Config {
	t.Helper()
	flags := map[string]string{"data": filepath.Join(t.TempDir(), "data"), "listen": "127.0.0.1:0"}
	for name, value := range given {
		flags[name] = value
	}
	c, _, err := config.ForServer(config.Sources{Flags: flags, Doors: Settings()})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Server: c.Server, Log: io.Discard}
}

// A server that waits for the others of its cluster says so, and can be told to stop.
func TestWaitingForOthers(t *testing.T) {
	c := settings(t, map[string]string{
		"initial-cluster": "n1=127.0.0.1:1,n2=127.0.0.1:2,n3=127.0.0.1:3", "peer-listen": "127.0.0.1:0", "insecure": "true",
	})
	written := &log{}
	c.Log = written
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c, func(Serving) { t.Error("it is ready without the others") }) }()

	var base string
	for end := time.Now().Add(time.Minute); base == ""; time.Sleep(10 * time.Millisecond) {
		if m := regexp.MustCompile(`starting: .*address=(\S+)`).FindStringSubmatch(written.String()); m != nil {
			base = "http://" + m[1]
		}
		if time.Now().After(end) {
			t.Fatalf("it does not start:\n%s", written)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		response, err := client.Get(base + path)
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
	if status, _ := get("/livez"); status != 200 {
		t.Errorf("livez says %d", status)
	}
	if status, body := get("/readyz"); status != 503 || !strings.Contains(body, "waits for others") {
		t.Errorf("readyz says %d %s", status, body)
	}
	caller, err := v1.NewCaller(v1.CallerConfig{Server: base, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "h"}); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("an acquire says %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestWrongCertificates(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	pair, err := certificate.NewAuthority(certificate.Request{Name: "ca", Lasts: time.Hour, Now: time.Now()})
	if err == nil {
		err = pair.Write(file("ca.crt"), file("ca.key"), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file("empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, given := range []map[string]string{
		{"tls-cert": file("none"), "tls-key": file("none")},
		{"tls-cert": file("ca.crt"), "tls-key": file("empty")},
		{"tls-cert": file("ca.crt"), "tls-key": file("ca.key"), "tls-client-ca": file("empty")},
		{"peer-cert": file("ca.crt"), "peer-key": file("empty"), "peer-ca": file("ca.crt"), "peer-listen": "127.0.0.1:0"},
	} {
		c := settings(t, given)
		err := Run(t.Context(), c, func(Serving) { t.Error("it runs") })
		if !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%v: %v", given, err)
		}
		if _, err := os.Stat(c.Data); err == nil {
			t.Errorf("%v: it touched the data", given)
		}
	}
}

func TestAdvertisedURL(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ listen, cert, said, want string }{
		{"127.0.0.1:0", "", "", `^http://127\.0\.0\.1:\d+$`},
		{"127.0.0.1:0", "x", "", `^https://127\.0\.0\.1:\d+$`},
		{"0.0.0.0:0", "x", "", "^https://" + regexp.QuoteMeta(host) + `:\d+$`},
		{":0", "", "", "^http://" + regexp.QuoteMeta(host) + `:\d+$`},
		{"0.0.0.0:0", "x", "https://leases.example", "^https://leases.example$"},
	} {
		l, err := net.Listen("tcp", c.listen)
		if err != nil {
			t.Fatal(err)
		}
		got := advertised(Config{Server: config.Server{Advertise: c.said, TLS: certificate.Files{Cert: c.cert}}}, l)
		l.Close()
		if !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
