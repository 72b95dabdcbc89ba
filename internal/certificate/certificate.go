// Package certificate makes the certificates by which servers and clients of a cluster
// know each other, and reads them again when their files change.
//
// One authority is enough for a cluster: everybody who has a certificate of it belongs to it. A
// server's certificate is for other servers too, and carries the server's name; a client's
// opens the client port alone.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Lifetimes of certificates unless a request says otherwise. An authority outlives many
// certificates, since replacing it means visiting every machine.
const (
	AuthorityLasts = 10 * 365 * 24 * time.Hour
	DefaultLasts   = 2 * 365 * 24 * time.Hour
)

// early is how long before now a certificate begins: the clock of its first reader may be behind.
const early = 5 * time.Minute

// A Pair is a certificate and its key, both as PEM.
type Pair struct {
	Cert, Key []byte
}

// An Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// A Request says which certificate to make.
type Request struct {
	Name  string   // of the server, or of the client
	Hosts []string // names and addresses at which a server is reached; none for a client
	Lasts time.Duration
	Now   time.Time
}

// NewAuthority makes an authority, and the pair to keep it in.
func NewAuthority(r Request) (Pair, error) {
	key, template, err := prepare(r)
	if err != nil {
		return Pair{}, err
	}
	// With a path length of zero it can sign certificates but no further authorities.
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	return sign(template, template, key, key)
}

// OpenAuthority reads an authority from its files.
func OpenAuthority(certFile, keyFile string) (*Authority, error) {
	cert, err := readCertificate(certFile)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no key in it", keyFile)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s has no key that can be read: %w", keyFile, err)
	case !cert.IsCA:
		return nil, fmt.Errorf("%s is not the certificate of an authority: it cannot sign others", certFile)
	case !ok || !key.PublicKey.Equal(cert.PublicKey):
		return nil, fmt.Errorf("%s is not the key of %s", keyFile, certFile)
	}
	return &Authority{cert, key}, nil
}

// Ends returns the moment after which nothing that the authority signed is trusted.
func (a *Authority) Ends() time.Time { return a.cert.NotAfter }

// Server makes a certificate for a server: for its clients, and for the other servers,
// which look for its name in it.
func (a *Authority) Server(r Request) (Pair, error) {
	key, template, err := prepare(r)
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{r.Name}
	for _, host := range r.Hosts {
		if err := addHost(template, host); err != nil {
			return Pair{}, err
		}
	}
	return a.sign(template, key)
}

// Client makes a certificate for a client.
func (a *Authority) Client(r Request) (Pair, error) {
	key, template, err := prepare(r)
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{r.Name} // by which rules say who it is
	return a.sign(template, key)
}

// sign signs a certificate. None lasts longer than the authority: its own date would promise
// something that no reader keeps.
func (a *Authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) (Pair, error) {
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	if !template.NotBefore.Before(template.NotAfter) {
		return Pair{}, fmt.Errorf("the authority ended on %s: make another one", a.cert.NotAfter.Format(time.DateOnly))
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	return sign(template, a.cert, key, a.key)
}

func prepare(r Request) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	if err := CheckName(r.Name); err != nil {
		return nil, nil, err
	}
	if r.Lasts <= 0 {
		return nil, nil, errors.New("a certificate lasts longer than 0s")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	return key, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: r.Name, Organization: []string{"Leasehold"}},
		NotBefore: r.Now.Add(-early), NotAfter: r.Now.Add(r.Lasts),
	}, nil
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return Pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}

// names are those that a certificate can carry as a DNS name, that need no quotes in a shell, and
// that can be used in a list of name=address.
var names = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// CheckName reports what is wrong with the name of a server or a client. An address is refused
// because the name becomes a DNS name, which peers look for.
func CheckName(name string) error {
	if names.MatchString(name) && net.ParseIP(name) == nil {
		return nil
	}
	return fmt.Errorf("%q cannot be a name: use 1 to 63 letters, digits, dots, hyphens and underscores, with a letter "+
		"or digit at both ends, and not an address", name)
}

var hostNames = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

func addHost(template *x509.Certificate, host string) error {
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
		return nil
	}
	if err := CheckHost(host); err != nil {
		return err
	}
	template.DNSNames = append(template.DNSNames, host)
	return nil
}

// CheckHost reports what is wrong with a host that a certificate is to be for.
func CheckHost(host string) error {
	if net.ParseIP(host) != nil || hostNames.MatchString(host) {
		return nil
	}
	return fmt.Errorf("%q is neither a host name nor an address: write it without a port, such as leases.example "+
		"or 10.0.0.1", host)
}

// Write puts a pair in two files; the key can be read by its owner alone. Unless replace is set, it
// refuses to touch existing files: if either exists, neither is written, since half of a pair would
// be useless. The key is written first, so that a new certificate is never without its key.
func (p Pair) Write(certFile, keyFile string, replace bool) error {
	for _, name := range []string{certFile, keyFile} {
		if _, err := os.Lstat(name); !replace && !errors.Is(err, fs.ErrNotExist) {
			return &ExistsError{name}
		}
	}
	if err := os.MkdirAll(filepath.Dir(certFile), 0o700); err != nil {
		return err
	}
	if err := WriteFile(keyFile, p.Key, 0o600); err != nil {
		return err
	}
	return WriteFile(certFile, p.Cert, 0o644)
}

// An ExistsError refuses to replace a file.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string { return e.Name + " already exists" }

// WriteFile replaces a file in one step: a server that reads it sees the old one or the new one,
// never half of it. If the name is a link, the link is replaced, and not what it leads to.
func WriteFile(name string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
