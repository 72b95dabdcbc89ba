package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Files say where certificates are. A client may have a CA alone; a server may have none.
type Files struct {
	Cert, Key string // what one shows to others
	CA        string // who must have signed what others show
}

// lookEvery is the least time between two looks at the files: connections may come often.
const lookEvery = time.Second

// A Keyring has the certificates of some files as they are now: when somebody connects, it checks
// whether the files have changed, so that a renewed certificate needs no restart. While their
// contents cannot be used, such as a certificate whose new key is not there yet, it keeps what it
// had.
type Keyring struct {
	files  Files
	every  time.Duration
	failed func(error)

	mu       sync.Mutex // guards what follows
	looked   time.Time
	stamps   []os.FileInfo
	last     *loaded
	reported string // the last error that failed was told
}

// loaded is what the files had when they were read.
type loaded struct {
	pair   *tls.Certificate // nil: there is none
	pool   *x509.CertPool   // nil: there is none
	server *tls.Config      // made from them; kept, so that sessions can be resumed
	peers  *tls.Config
}

// Open reads the files. failed, if it is not nil, is told when changed files cannot be
// used.
func Open(files Files, failed func(error)) (*Keyring, error) {
	k := &Keyring{files: files, every: lookEvery, failed: failed}
	if (files.Cert == "") != (files.Key == "") {
		return nil, errors.New("a certificate and its key go together: name both files")
	}
	stamps, err := k.stat()
	if err != nil {
		return nil, err
	}
	if k.last, err = load(files); err != nil {
		return nil, err
	}
	k.stamps, k.looked = stamps, time.Now()
	return k, nil
}

// Listen returns the configuration of a port for clients. With a CA they must show a certificate of
// it.
func (k *Keyring) Listen() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return k.now().server, nil
		}}
}

// Peers returns the configuration of one connection between two servers, at either end. It verifies
// that the other end has a server's certificate of the authority. The caller has to check that it
// is the right server: its name is among the certificate's DNS names.
func (k *Keyring) Peers() *tls.Config { return k.now().peers }

// Dial returns the configuration of a client's connections. The authority is that of now; the
// client's own certificate is read again when it changes.
func (k *Keyring) Dial() *tls.Config {
	now := k.now()
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: now.pool}
	if now.pair != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return k.now().pair, nil
		}
	}
	return c
}

// verify checks what the other end showed, whichever end that is.
func verify(s tls.ConnectionState, pool *x509.CertPool, usage x509.ExtKeyUsage) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("it showed no certificate")
	}
	between := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

// Ends returns when the certificate that is shown to others ends; zero if there is none.
func (k *Keyring) Ends() time.Time {
	if pair := k.now().pair; pair != nil {
		return pair.Leaf.NotAfter
	}
	return time.Time{}
}

// Covers reports whether the certificate that is shown to others has a host name.
func (k *Keyring) Covers(host string) bool {
	pair := k.now().pair
	return pair != nil && pair.Leaf.VerifyHostname(host) == nil
}

// now returns what the files have, if they can be used.
func (k *Keyring) now() *loaded {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.looked) < k.every {
		return k.last
	}
	k.looked = time.Now()
	stamps, err := k.stat()
	if err == nil && same(stamps, k.stamps) {
		return k.last
	}
	var fresh *loaded
	if err == nil {
		fresh, err = load(k.files)
	}
	if err != nil {
		k.tell(err)
		return k.last
	}
	k.last, k.stamps, k.reported = fresh, stamps, ""
	return fresh
}

// tell reports each error once: it would come back with every connection.
func (k *Keyring) tell(err error) {
	if k.failed != nil && k.reported != err.Error() {
		k.failed(err)
	}
	k.reported = err.Error()
}

// stat returns the state of the files. It is called before they are read, so that a change in
// between is seen next time.
func (k *Keyring) stat() (stamps []os.FileInfo, err error) {
	for _, f := range []struct{ what, name string }{{"certificate", k.files.Cert}, {"key", k.files.Key},
		{"authority", k.files.CA}} {
		if f.name == "" {
			continue
		}
		info, err := os.Stat(f.name)
		if err != nil {
			return nil, fmt.Errorf("%s %s cannot be read: %w", f.what, f.name, errors.Unwrap(err))
		}
		stamps = append(stamps, info)
	}
	return stamps, nil
}

func same(a, b []os.FileInfo) bool {
	return slices.EqualFunc(a, b, func(x, y os.FileInfo) bool {
		return os.SameFile(x, y) && x.Size() == y.Size() && x.ModTime().Equal(y.ModTime())
	})
}

// load reads all files before anything is replaced: half a new pair would refuse everybody.
func load(files Files) (*loaded, error) {
	l := &loaded{}
	if files.Cert != "" {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", files.Cert, files.Key, err)
		}
		l.pair = &pair
	}
	if files.CA != "" {
		text, err := os.ReadFile(files.CA)
		if err != nil {
			return nil, err
		}
		l.pool = x509.NewCertPool()
		if !l.pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate in it", files.CA)
		}
	}
	l.configure()
	return l, nil
}

func (l *loaded) configure() {
	if l.pair == nil {
		return
	}
	l.server = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*l.pair},
		NextProtos: []string{"h2", "http/1.1"}}
	if l.pool == nil {
		return
	}
	l.server.ClientAuth, l.server.ClientCAs = tls.RequireAndVerifyClientCert, l.pool
	l.peers = &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*l.pair}, RootCAs: l.pool,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: l.pool,
		// A client's certificate is of the same authority, and must not open the port of
		// servers.
		VerifyConnection: func(s tls.ConnectionState) error {
			if err := verify(s, l.pool, x509.ExtKeyUsageServerAuth); err != nil {
				return fmt.Errorf("it is not a server's certificate: %w", err)
			}
			return nil
		},
	}
}

// readCertificate reads the first certificate of a file.
func readCertificate(name string) (*x509.Certificate, error) {
	list, err := Read(name)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Read reads all certificates of a file; it has at least one.
func Read(name string) (list []*x509.Certificate, err error) {
	rest, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, cert)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no certificate in it", name)
	}
	return list, nil
}
