package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// tls returns how to trust servers with https; nil: as this machine does, or as the HTTP client does.
func (c Config) tls() (*tls.Config, error) {
	if c.HTTP != nil || c.TLS != nil {
		return c.TLS, nil
	}
	config, err := environTLS(os.Getenv("LEASEHOLD_CA"), os.Getenv("LEASEHOLD_CERT"), os.Getenv("LEASEHOLD_KEY"))
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	return config, nil
}

// addresses returns the servers as URLs: without a scheme it is http, also where TLS is configured. What is no address
// is refused later.
func (c Config) addresses() []string {
	all := slices.Clone(c.Servers)
	for i, address := range all {
		if complete, err := v1.ServerURL(address, false); err == nil {
			all[i] = complete
		}
	}
	return all
}

// environTLS returns the TLS configuration of the environment; nil if there is none. The
// client's own certificate is read for each connection, since it may have been renewed.
func environTLS(ca, cert, key string) (*tls.Config, error) {
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("LEASEHOLD_CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("LEASEHOLD_CA: %s contains no certificate", ca)
		}
	}
	if cert == "" && key == "" {
		return config, nil
	}
	read := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("LEASEHOLD_CERT and LEASEHOLD_KEY: %w", err)
		}
		return &pair, nil
	}
	if _, err := read(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	return config, nil
}
