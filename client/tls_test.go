package client_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A program gets its certificates from the environment, too.
func TestDialInTLS(t *testing.T) {
	certificates := newCertificates(t, "127.0.0.1")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	host := door.MustHost(e, door.HostConfig{TLS: certificates.ring(t, "n1", true).Listen()}, native.Kind)
	go func() { ended <- host.Serve(ctx, l) }()
	defer func() {
		stop()
		must(<-ended)
	}()

	for wire, protocol := range map[v1.Wire]string{v1.WireHTTP: "h2", v1.WireRESP: "leasehold-resp", v1.WireAuto: "leasehold-resp"} {
		t.Run(string(wire), func(t *testing.T) {
			dialInTLS(t, certificates, client.Config{Servers: []string{"https://" + l.Addr().String()}, Wire: wire}, protocol)
		})
	}
}

func dialInTLS(t *testing.T, certificates certificates, server client.Config, protocol string) {
	file := certificates.file
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dial := func(ca, cert, key string) error {
		t.Setenv("LEASEHOLD_CA", ca)
		t.Setenv("LEASEHOLD_CERT", cert)
		t.Setenv("LEASEHOLD_KEY", key)
		c, err := client.Dial(t.Context(), server)
		if err != nil {
			return err
		}
		defer c.Close()
		h, err := c.Acquire(t.Context(), "r")
		if err != nil {
			return err
		}
		return h.Release(t.Context())
	}
	must(dial(file("ca.crt"), file("ann.crt"), file("ann.key")))
	for _, c := range []struct{ ca, cert, key, want string }{
		{"", file("ann.crt"), file("ann.key"), "has a certificate that is not trusted"},
		{file("ca.crt"), "", "", "--cert and --key"},
		{file("ca.crt"), file("ann.crt"), "", "LEASEHOLD_CERT and LEASEHOLD_KEY"},
		{file("ca.key"), "", "", "contains no certificate"},
		{file("none"), "", "", "LEASEHOLD_CA: open"},
	} {
		if err := dial(c.ca, c.cert, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	server.TLS = certificates.ring(t, "ann", true).Dial()
	var chosen sync.Map
	server.TLS.VerifyConnection = func(s tls.ConnectionState) error {
		chosen.Store(s.NegotiatedProtocol, true)
		return nil
	}
	must(dial("", "", ""))
	if _, is := chosen.Load(protocol); !is {
		t.Errorf("%s is not spoken", protocol)
	}
	if _, is := chosen.Load("leasehold-resp"); is && server.Wire == v1.WireHTTP {
		t.Error("RESP is spoken, and nobody chose it")
	}
}
