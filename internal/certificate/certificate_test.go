package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A desk makes certificates in a directory.
type desk struct {
	t   *testing.T
	dir string
	ca  *Authority
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	pair, err := NewAuthority(Request{Name: "ca", Lasts: AuthorityLasts, Now: time.Now()})
	d.must(err)
	d.must(pair.Write(d.file("ca.crt"), d.file("ca.key"), false))
	d.ca, err = OpenAuthority(d.file("ca.crt"), d.file("ca.key"))
	d.must(err)
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) file(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) server(name string, hosts ...string) Files {
	d.t.Helper()
	pair, err := d.ca.Server(Request{Name: name, Hosts: hosts, Lasts: DefaultLasts, Now: time.Now()})
	return d.write(name, pair, err)
}

func (d *desk) client(name string) Files {
	d.t.Helper()
	pair, err := d.ca.Client(Request{Name: name, Lasts: DefaultLasts, Now: time.Now()})
	return d.write(name, pair, err)
}

func (d *desk) write(name string, pair Pair, err error) Files {
	d.t.Helper()
	d.must(err)
	f := Files{Cert: d.file(name + ".crt"), Key: d.file(name + ".key"), CA: d.file("ca.crt")}
	d.must(pair.Write(f.Cert, f.Key, true))
	return f
}

func (d *desk) open(f Files) *Keyring {
	d.t.Helper()
	k, err := Open(f, func(err error) { d.t.Log("told: ", err) })
	d.must(err)
	k.every = 0
	return k
}

// shake lets two sides meet, and returns what each of them made of it. The server's word
// comes last: in TLS 1.3 the client is done before its certificate was looked at.
//
//lint:ignore ST1008 both errors are what it returns
func shake(t *testing.T, server, client *tls.Config) (serverErr, clientErr error, seen tls.ConnectionState) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		conn := tls.Server(a, server)
		err := conn.Handshake()
		if err == nil {
			_, err = conn.Write([]byte("hello"))
		}
		done <- err
		a.Close()
	}()
	conn := tls.Client(b, client)
	_, clientErr = io.ReadFull(conn, make([]byte, 5))
	b.Close()
	return <-done, clientErr, conn.ConnectionState()
}

func TestWhoMayComeIn(t *testing.T) {
	d, strangers := newDesk(t), newDesk(t)
	n1, n2, ann := d.open(d.server("n1", "127.0.0.1", "leases.example")), d.open(d.server("n2")),
		d.open(d.client("ann"))
	stranger := strangers.open(strangers.server("n2", "127.0.0.1"))
	forged := strangers.server("n2")
	forged.CA = d.file("ca.crt") // it knows whom to trust, and nobody trusts it
	forger := strangers.open(forged)
	nobody := d.open(Files{CA: d.file("ca.crt")})

	as := func(c *tls.Config, name string) *tls.Config {
		c = c.Clone()
		c.ServerName = name
		return c
	}
	unnamed := func(c *tls.Config) *tls.Config {
		c = c.Clone()
		c.InsecureSkipVerify = true // which leaves VerifyConnection
		return c
	}
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		want           bool
	}{
		{"a client", n1.Listen(), as(ann.Dial(), "127.0.0.1"), true},
		{"a client by name", n1.Listen(), as(ann.Dial(), "leases.example"), true},
		{"a client by another name", n1.Listen(), as(ann.Dial(), "elsewhere.example"), false},
		{"a client without a certificate", n1.Listen(), as(nobody.Dial(), "127.0.0.1"), false},
		{"a client of another authority", n1.Listen(), as(forger.Dial(), "127.0.0.1"), false},
		{"a client of another authority, that trusts another one", n1.Listen(), as(stranger.Dial(), "127.0.0.1"),
			false},
		{"a server", n1.Peers(), as(n2.Peers(), "n1"), true},
		{"a server by another name", n1.Peers(), as(n2.Peers(), "n3"), false},
		{"a client among servers", n1.Peers(), as(ann.Peers(), "n1"), false},
		{"a stranger among servers", n1.Peers(), as(forger.Peers(), "n1"), false},
		{"a server among strangers", stranger.Peers(), as(n1.Peers(), "n2"), false},
		{"a client that poses as a server", ann.Peers(), unnamed(n1.Peers()), false},
		{"a server that is not asked for its name", n2.Peers(), unnamed(n1.Peers()), true},
	} {
		serverErr, clientErr, _ := shake(t, c.server, c.client)
		if ok := serverErr == nil && clientErr == nil; ok != c.want {
			t.Errorf("%s: came in is %v (server %v, client %v)", c.name, ok, serverErr, clientErr)
		}
	}
}

func TestOldVersionsAreRefused(t *testing.T) {
	d := newDesk(t)
	n1, ann := d.open(d.server("n1", "127.0.0.1")), d.open(d.client("ann"))
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true,
		tls.VersionTLS13: true} {
		client := ann.Dial()
		client.ServerName, client.MinVersion, client.MaxVersion = "127.0.0.1", tls.VersionTLS10, version
		serverErr, clientErr, _ := shake(t, n1.Listen(), client)
		if ok := serverErr == nil && clientErr == nil; ok != want {
			t.Errorf("%s: came in is %v (server %v, client %v)", tls.VersionName(version), ok, serverErr, clientErr)
		}
	}
}

// Certificates that are replaced are used from the next connection on; ones that can't be
// used change nothing.
func TestFilesAreReadAgain(t *testing.T) {
	d := newDesk(t)
	files := d.server("n1", "127.0.0.1")
	k, ann := d.open(files), d.open(d.client("ann"))
	var told []error
	k.failed = func(err error) { told = append(told, err) }
	serial := func() string {
		t.Helper()
		client := ann.Dial()
		client.ServerName = "127.0.0.1"
		serverErr, clientErr, state := shake(t, k.Listen(), client)
		d.must(errors.Join(serverErr, clientErr))
		return state.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	if serial() != first {
		t.Error("the certificate changed by itself")
	}
	d.must(os.WriteFile(files.Cert, []byte("half of a certif"), 0o600))
	once, again := serial(), serial()
	if once != first || again != first || len(told) != 1 {
		t.Errorf("a damaged file was used, or told of as %v", told)
	}
	d.must(os.Remove(files.Cert))
	if serial() != first || len(told) != 2 {
		t.Errorf("a missing file was used, or told of as %v", told)
	}
	d.server("n1", "127.0.0.1")
	if serial() == first {
		t.Error("the new certificate is not used")
	}
	d.must(os.WriteFile(files.CA, []byte("nothing"), 0o600))
	serial()
	if len(told) != 3 || !strings.Contains(told[2].Error(), "has no certificate in it") {
		t.Errorf("told %v", told)
	}
}

func TestFilesAreKept(t *testing.T) {
	d := newDesk(t)
	files := d.server("n1")
	before, err := os.ReadFile(files.Cert)
	d.must(err)
	pair, err := d.ca.Server(Request{Name: "n1", Lasts: time.Hour, Now: time.Now()})
	d.must(err)
	var exists *ExistsError
	if err := pair.Write(files.Cert, files.Key, false); !errors.As(err, &exists) || exists.Name != files.Cert {
		t.Errorf("written over: %v", err)
	}
	if err := pair.Write(d.file("other.crt"), files.Key, false); !errors.As(err, &exists) || exists.Name != files.Key {
		t.Errorf("written over: %v", err)
	}
	if now, _ := os.ReadFile(files.Cert); string(now) != string(before) {
		t.Error("the file changed")
	}
	if _, err := os.Stat(d.file("other.crt")); err == nil {
		t.Error("half of a pair was written")
	}
	info, err := os.Stat(files.Key)
	d.must(err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v", info.Mode())
	}
}

func TestLimits(t *testing.T) {
	d := newDesk(t)
	now := time.Now()
	for _, name := range []string{"", "-n1", "n1-", "a b", "n1=x", "n1,n2", "10.0.0.1", strings.Repeat("n", 64), "ä"} {
		if _, err := d.ca.Server(Request{Name: name, Lasts: time.Hour, Now: now}); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	for _, name := range []string{"a", "n1", "N-1.eu_west", strings.Repeat("n", 63)} {
		if _, err := d.ca.Client(Request{Name: name, Lasts: time.Hour, Now: now}); err != nil {
			t.Error(err)
		}
	}
	for _, host := range []string{"", "a b", "10.0.0.1:4653", "https://x", "-x"} {
		if _, err := d.ca.Server(Request{Name: "n", Hosts: []string{host}, Lasts: time.Hour, Now: now}); err == nil {
			t.Errorf("the host %q was taken", host)
		}
	}
	if _, err := d.ca.Server(Request{Name: "n", Now: now}); err == nil {
		t.Error("a certificate was made that lasts for no time")
	}
	if _, err := d.ca.Server(Request{Name: "n", Lasts: time.Hour,
		Now: now.Add(AuthorityLasts + time.Hour)}); err == nil {
		t.Error("an authority that ended signed something")
	}
	long, err := d.ca.Server(Request{Name: "long", Lasts: 20 * AuthorityLasts, Now: now})
	k := d.open(d.write("long", long, err))
	if !k.Ends().Equal(d.ca.Ends()) {
		t.Errorf("it ends on %v, and the authority on %v", k.Ends(), d.ca.Ends())
	}
}

func TestWrongFiles(t *testing.T) {
	d := newDesk(t)
	n1, n2 := d.server("n1"), d.server("n2")
	d.must(os.WriteFile(d.file("empty"), nil, 0o600))
	for name, files := range map[string]Files{
		"a certificate without its key":     {Cert: n1.Cert},
		"another's key":                     {Cert: n1.Cert, Key: n2.Key},
		"a file that is not there":          {Cert: d.file("none"), Key: n1.Key},
		"an authority without certificates": {CA: d.file("empty")},
	} {
		if _, err := Open(files, nil); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	for _, pair := range [][2]string{{n1.Cert, n1.Key}, {d.file("ca.crt"), n1.Key}, {d.file("ca.crt"), d.file("empty")},
		{d.file("empty"), n1.Key}, {d.file("ca.crt"), d.file("none")}} {
		if _, err := OpenAuthority(pair[0], pair[1]); err == nil {
			t.Errorf("%v is an authority", pair)
		}
	}
	if _, err := Read(n1.Key); err == nil {
		t.Error("a key was read as a certificate")
	}
	list, err := Read(n1.Cert)
	d.must(err)
	if len(list) != 1 || list[0].Subject.CommonName != "n1" || list[0].PublicKeyAlgorithm != x509.ECDSA {
		t.Errorf("read %v", list)
	}
}

// What is replaced is the name: a link under it may lead to a file of another kind.
func TestALinkIsReplaced(t *testing.T) {
	dir := t.TempDir()
	other, name := filepath.Join(dir, "other"), filepath.Join(dir, "s1.yaml")
	if err := errors.Join(os.WriteFile(other, []byte("keys"), 0o600), os.Symlink(other, name),
		WriteFile(name, []byte("settings"), 0o644)); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(other)
	made, failed := os.ReadFile(name)
	if err != nil || failed != nil || string(kept) != "keys" || string(made) != "settings" {
		t.Errorf("%q and %q, %v, %v", kept, made, err, failed)
	}
}
