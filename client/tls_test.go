package client_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A program gets its certificates from the environment, too.
func TestDialInTLS(t *testing.T) {
	certificates := newCertificates(t, "127.0.0.1")
	file := certificates.file
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

	server := client.Config{Servers: []string{"https://" + l.Addr().String()}}
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
	must(dial("", "", ""))
}
