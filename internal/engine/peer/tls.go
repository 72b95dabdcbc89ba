package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// CertificateDomain may follow a server's name in its certificate: server n1 is certified as
// n1, or as n1.leasehold.
const CertificateDomain = ".leasehold"

// secureClient makes a connection to another server secure. The name that its certificate must
// have is known only after the greeting: see certified.
func (m *Mesh) secureClient(ctx context.Context, conn net.Conn) (net.Conn, error) {
	if m.TLS == nil {
		return conn, nil
	}
	c := m.TLS().Clone()
	c.MinVersion = tls.VersionTLS13
	c.InsecureSkipVerify = true // the chain is verified here, the name after the greeting
	roots, verify := c.RootCAs, c.VerifyConnection
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if err := verifyChain(state, roots); err != nil || verify == nil {
			return err
		}
		return verify(state)
	}
	secured := tls.Client(conn, c)
	return secured, plainSpoken(secured.HandshakeContext(ctx))
}

// secureServer secures a connection that another server made.
func (m *Mesh) secureServer(ctx context.Context, conn net.Conn) (net.Conn, error) {
	if m.TLS == nil {
		return conn, nil
	}
	c := m.TLS().Clone()
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientCAs == nil {
		c.ClientCAs = c.RootCAs
	}
	if c.ClientCAs == nil {
		return nil, errNoAuthority // the system's authorities certify anybody
	}
	secured := tls.Server(conn, c)
	return secured, plainSpoken(secured.HandshakeContext(ctx))
}

// stateOf returns what the other end of a connection proved; nil: nothing.
func stateOf(conn net.Conn) *tls.ConnectionState {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secured.ConnectionState()
	return &state
}

// plainSpoken adds the likely cause if the other end does not speak TLS, or hangs up when it
// hears it.
func plainSpoken(err error) error {
	var header tls.RecordHeaderError
	if errors.As(err, &header) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("%w: has it no certificates for servers? Give them to all (--peer-cert, --peer-key, "+
			"--peer-ca), or to none", err)
	}
	return err
}

var errNoAuthority = errors.New("there is no authority for the certificates of servers")

// verifyChain checks that one of the roots made a server's certificate.
func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	if roots == nil {
		return errNoAuthority
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("there is no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}
