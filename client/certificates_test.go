package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/certificate"
)

// certificates is a folder with an authority (ca), a server (n1) and a client (ann): a .crt
// and a .key of each.
type certificates string

// newCertificates makes certificates whose server is known by a host name or address.
func newCertificates(t *testing.T, host string) certificates {
	t.Helper()
	c := certificates(t.TempDir())
	request := certificate.Request{Name: "n1", Hosts: []string{host}, Lasts: 24 * time.Hour, Now: time.Now()}
	write := func(name string, pair certificate.Pair, err error) {
		t.Helper()
		if err == nil {
			err = pair.Write(c.file(name+".crt"), c.file(name+".key"), false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pair, err := certificate.NewAuthority(request)
	write("ca", pair, err)
	ca, err := certificate.OpenAuthority(c.file("ca.crt"), c.file("ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err = ca.Server(request)
	write("n1", pair, err)
	pair, err = ca.Client(request)
	write("ann", pair, err)
	return c
}

func (c certificates) file(name string) string { return filepath.Join(string(c), name) }

// ring opens the certificate of n1 or ann. With trusts it also trusts the authority, and a
// server asks its clients for certificates.
func (c certificates) ring(t *testing.T, name string, trusts bool) *certificate.Keyring {
	t.Helper()
	files := certificate.Files{Cert: c.file(name + ".crt"), Key: c.file(name + ".key")}
	if trusts {
		files.CA = c.file("ca.crt")
	}
	ring, err := certificate.Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// trusting is the configuration of a client without a certificate that trusts the authority.
func (c certificates) trusting(t *testing.T) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(c.file("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: roots}
}
