package native

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
)

// certified makes certificates for a server called pipe, and for a client.
func certified(t *testing.T) (server, client *certificate.Keyring) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	request := func(name string) certificate.Request {
		return certificate.Request{Name: name, Lasts: 1000 * time.Hour, Now: time.Now(), Hosts: nil}
	}
	pair, err := certificate.NewAuthority(request("ca"))
	must(err)
	must(pair.Write(file("ca.crt"), file("ca.key"), false))
	ca, err := certificate.OpenAuthority(file("ca.crt"), file("ca.key"))
	must(err)
	pair, err = ca.Server(request("pipe"))
	must(err)
	must(pair.Write(file("s.crt"), file("s.key"), false))
	pair, err = ca.Client(request("ann"))
	must(err)
	must(pair.Write(file("c.crt"), file("c.key"), false))
	server, err = certificate.Open(certificate.Files{Cert: file("s.crt"), Key: file("s.key"), CA: file("ca.crt")}, nil)
	must(err)
	client, err = certificate.Open(certificate.Files{Cert: file("c.crt"), Key: file("c.key"), CA: file("ca.crt")}, nil)
	must(err)
	return server, client
}

// buildSecure starts a house whose door speaks TLS, with a client that has a certificate.
func buildSecure(t *testing.T, version int) *house {
	t.Helper()
	server, client := certified(t)
	h := build(t, Config{TLS: server.Listen()})
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return h.pipe.Dial(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: client.Dial(), MaxIdleConnsPerHost: 100, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(version == 1)
	transport.Protocols.SetHTTP2(version == 2)
	h.client = &http.Client{Transport: transport}
	caller, err := v1.NewCaller(v1.CallerConfig{Server: "https://pipe", Client: h.client})
	if err != nil {
		t.Fatal(err)
	}
	h.caller = caller
	return h
}

// inBothVersions runs a story over HTTP/1.1 and over HTTP/2, both in TLS.
func inBothVersions(t *testing.T, story func(t *testing.T, h *house)) {
	for version, name := range map[int]string{1: "HTTP 1.1", 2: "HTTP 2"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := buildSecure(t, version)
				defer h.close()
				response, err := h.client.Get("https://pipe/livez")
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				if response.ProtoMajor != version {
					t.Fatalf("it speaks %s", response.Proto)
				}
				story(t, h)
			})
		})
	}
}

// A watch in TLS goes on for hours, on one connection, though next to nothing happens.
func TestQuietWatchInTLS(t *testing.T) {
	inBothVersions(t, func(t *testing.T, h *house) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := 0
		events := make(chan v1.Event)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for e, err := range h.caller.Watch(ctx, v1.WatchQuery{Started: func(v1.Hello) { began++ }}) {
				if err != nil {
					return
				}
				events <- e
			}
		}()
		synctest.Wait()
		for _, id := range []string{"a", "b", "c"} {
			time.Sleep(time.Hour)
			h.acquire(v1.AcquireRequest{Resource: id, Holder: "ann", ID: id, TTL: ttl(24 * time.Hour)})
			if e := <-events; e.ID != id {
				t.Errorf("the event is %+v", e)
			}
		}
		synctest.Wait()
		if began != 1 {
			t.Errorf("the watch began %d times", began)
		}
		cancel()
		<-ended
	})
}

// Who waits in TLS may wait for longer than a request may take.
func TestLongWaitInTLS(t *testing.T) {
	inBothVersions(t, func(t *testing.T, h *house) {
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: ttl(10 * time.Minute)})
		began := time.Now()
		got := h.acquire(v1.AcquireRequest{Resource: "r", Holder: "bob", ID: "b", Wait: v1.Duration(time.Hour)})
		if got.Holder != "bob" || time.Since(began) < 10*time.Minute {
			t.Errorf("after %v: %+v", time.Since(began), got)
		}
	})
}

// A backup that takes long is not cut while its server thinks.
func TestSlowBackupInTLS(t *testing.T) {
	inBothVersions(t, func(t *testing.T, h *house) {
		v := &village{Engine: h.engine, backup: func(w io.Writer) error {
			for range 3 {
				time.Sleep(time.Minute)
				if _, err := io.WriteString(w, "part."); err != nil {
					return err
				}
			}
			time.Sleep(time.Minute)
			return nil
		}}
		h.door.backend.Open(v)
		r, err := h.caller.Backup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if b, err := io.ReadAll(r); err != nil || string(b) != "part.part.part." {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// A reader that takes nothing costs one stream, and those who share its connection go on.
func TestStoppedReaderInHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := buildSecure(t, 2)
		defer h.close()
		response, err := h.client.Get("https://pipe/v1/watch")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		reason := strings.Repeat("r", 1000)
		for i := range 8000 { // more than any window takes
			if _, err := h.engine.Do(t.Context(), acquireCommand(i, reason)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := value(h.door.backend.Metrics().Watches); got != 0 {
			t.Errorf("%v watches are left", got)
		}
		if got := counted(h.door.backend.Metrics().Cut); got != 1 {
			t.Errorf("%v were cut", got)
		}
		h.hold("after", "x")
	})
}

// Who comes without TLS, or without a certificate, is told what is missing, and that
// nothing happened.
func TestWrongWaysIntoTLS(t *testing.T) {
	server, client := certified(t)
	base, stop := listenSecure(t, server)
	defer stop()
	trusting := client.Dial()
	trusting.GetClientCertificate, trusting.ServerName = nil, "pipe"
	stranger := client.Dial()
	stranger.RootCAs, stranger.ServerName = nil, "pipe"
	elsewhere := client.Dial()
	right := client.Dial()
	right.ServerName = "pipe"
	for _, c := range []struct {
		name, server string
		tls          *tls.Config
		is           error
		want         string
	}{
		{"plain", strings.Replace(base, "https", "http", 1), nil, leasehold.ErrRefused, "requires TLS: write it as https://"},
		{"no certificate", base, trusting, leasehold.ErrUnavailable, "with --cert and --key"},
		{"no trust", base, stranger, leasehold.ErrUnavailable, "has a certificate that is not trusted"},
		{"another name", base, elsewhere, leasehold.ErrUnavailable, "has a certificate that is not trusted"},
		{"the right way", base, right, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller, err := v1.NewCaller(v1.CallerConfig{Server: c.server, TLS: c.tls})
			if err != nil {
				t.Fatal(err)
			}
			defer caller.CloseIdle()
			for range 20 { // who is first, the answer or the request, is chance
				_, err = caller.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a"})
				if c.is == nil && err == nil {
					continue
				}
				nothing := errors.Is(err, c.is) || errors.Is(err, leasehold.ErrDenied)
				if c.is == nil || !nothing || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v, want %v with %q", err, c.is, c.want)
				}
			}
		})
	}
}

func listenSecure(t *testing.T, server *certificate.Keyring) (base string, stop func()) {
	t.Helper()
	base, stop = openLoopback(t, newDoor(t, Config{TLS: server.Listen()}))
	return strings.Replace(base, "http:", "https:", 1), stop
}
