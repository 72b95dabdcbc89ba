package peer

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
)

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

// An end is one server's handler, which remembers what it got.
type end struct {
	*Mesh
	t        *testing.T
	logged   *lockedBuffer
	messages chan string
	reached  chan uint64
	lost     chan uint64
	refusals chan *Refusal

	mu    sync.Mutex
	admit func(Identity, bool) *Refusal
	ask   func(context.Context, []byte) ([]byte, error)
	took  func(io.Reader) error

	message func(kind byte, body []byte) // nil: it goes to messages
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func (e *end) Admit(from Identity, question bool) *Refusal {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.admit == nil {
		return nil
	}
	return e.admit(from, question)
}

func (e *end) Message(from uint64, kind byte, body []byte) {
	if e.message != nil {
		e.message(kind, body)
		return
	}
	e.messages <- fmt.Sprintf("%d %d %s", from, kind, body)
}

func (e *end) Ask(ctx context.Context, from Identity, kind byte, body []byte) ([]byte, error) {
	return e.ask(ctx, body)
}

func (e *end) Stream(_ context.Context, _ Identity, _ byte, _ []byte, body io.Reader) error {
	return e.took(body)
}

func (e *end) Refused(r *Refusal) { offer(e.refusals, r) }
func (e *end) Reached(id uint64)  { offer(e.reached, id) }
func (e *end) Lost(id uint64)     { offer(e.lost, id) }

func offer[T any](c chan T, v T) {
	select {
	case c <- v:
	default:
	}
}

func next[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s came within %v", what, patience)
		panic("not reached")
	}
}

// startEnd starts a server with an id on a port of its own.
func startEnd(t *testing.T, id uint64, secure func() *tls.Config) *end {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &end{
		t: t, logged: &lockedBuffer{}, messages: make(chan string, 10000), reached: make(chan uint64, 100),
		lost: make(chan uint64, 100), refusals: make(chan *Refusal, 100),
	}
	e.Mesh = New(Config{
		Listener: listener, Handler: e, TLS: secure, greetWithin: patience, silentFor: patience, Log: slog.New(slog.NewTextHandler(e.logged, nil)),
		Self: Identity{Cluster: "c", ID: id, Name: fmt.Sprint("n", id), Dir: fmt.Sprint("d", id), Address: listener.Addr().String()},
	})
	e.Start()
	t.Cleanup(e.Close)
	return e
}

func (e *end) know(others ...*end) {
	peers := map[uint64]Peer{}
	for _, o := range others {
		peers[o.Self().ID] = Peer{o.Self().Name, o.Self().Address}
	}
	e.SetPeers(peers)
}

func TestMessagesComeInOrder(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	if a.Send(2, 7, []byte("nobody knows it")) {
		t.Fatal("a message to a stranger is on its way")
	}
	a.know(b)
	next(t, "connection", a.reached)
	for i := range 1000 {
		if !a.Send(2, 7, fmt.Append(nil, i)) {
			t.Fatalf("message %d was dropped", i)
		}
	}
	for i := range 1000 {
		if got, want := next(t, "message", b.messages), fmt.Sprint("1 7 ", i); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if s := a.Peers()[2]; !s.Connected || s.Dropped != 0 {
		t.Fatalf("status %+v", s)
	}
}

func TestWhatIsTooLongIsDropped(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.know(b)
	next(t, "connection", a.reached)
	if a.Send(2, 7, make([]byte, MaxFrame+1)) {
		t.Fatal("it is on its way")
	}
	if s := a.Peers()[2]; s.Dropped != 1 {
		t.Fatalf("status %+v", s)
	}
}

func TestAServerThatComesBackIsReachedAgain(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.know(b)
	next(t, "connection", a.reached)
	b.Close()
	next(t, "loss", a.lost)
	if a.Send(2, 7, nil) {
		t.Fatal("a message without a connection is on its way")
	}
	listener, err := net.Listen("tcp", b.Self().Address)
	if err != nil {
		t.Skipf("the port was taken by somebody else in the meantime: %v", err)
	}
	again := New(Config{Listener: listener, Handler: b, Self: b.Self()})
	again.Start()
	defer again.Close()
	next(t, "connection", a.reached)
	if !a.Send(2, 7, []byte("again")) {
		t.Fatal("the message was dropped")
	}
	next(t, "message", b.messages)
}

// A peer that takes nothing must not keep others from sending, and costs a bounded amount.
func TestASlowServerIsNotWaitedFor(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	b.messages = make(chan string) // nobody takes from it
	t.Cleanup(func() {
		go func() {
			for range b.messages {
			}
		}()
	})
	a.know(b)
	next(t, "connection", a.reached)
	sent := 0
	for sent < 10000 && a.Send(2, 7, make([]byte, 64<<10)) {
		sent++
	}
	if sent == 10000 {
		t.Fatal("600 MiB are on their way to somebody who takes nothing")
	}
	t.Logf("%d messages of 64 KiB were queued", sent)
}

func TestADeadConnectionIsNoticed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() { // it greets, and says nothing after that
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := readHello(conn); err == nil {
				_ = answerHello(conn, Identity{Cluster: "c", ID: 2, Name: "n2"}, nil)
			}
		}
	}()
	a := startEnd(t, 1, nil)
	a.silentFor = defaultSilentFor
	a.SetPeers(map[uint64]Peer{2: {"n2", silent.Addr().String()}})
	next(t, "connection", a.reached)
	next(t, "loss", a.lost)
	await(t, "a log line", func() bool { return strings.Contains(a.logged.String(), errSilent.Error()) })
}

func TestQuestionsAreAnswered(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.know(b)
	b.ask = func(_ context.Context, body []byte) ([]byte, error) { return append(body, '!'), nil }
	answer, err := a.Mesh.Ask(t.Context(), 2, 9, []byte("hello"))
	if err != nil || string(answer) != "hello!" {
		t.Fatalf("%q, %v", answer, err)
	}
	answer, err = a.AskAt(t.Context(), b.Self().Address, 9, []byte("you"))
	if err != nil || string(answer) != "you!" {
		t.Fatalf("%q, %v", answer, err)
	}
}

func TestErrorsOfQuestionsKeepTheirCode(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.know(b)
	b.ask = func(context.Context, []byte) ([]byte, error) {
		return nil, &leasehold.Error{Code: leasehold.Refused, Message: "it would leave no majority"}
	}
	_, err := a.Mesh.Ask(t.Context(), 2, 9, nil)
	if !errors.Is(err, leasehold.ErrRefused) || err.Error() != "it would leave no majority" {
		t.Fatal(err)
	}
	if _, err := a.Mesh.Ask(t.Context(), 3, 9, nil); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatal(err)
	}
	b.Close()
	if _, err := a.Mesh.Ask(t.Context(), 2, 9, nil); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatal(err)
	}
}

// Whoever was asked may have done it: only that is Undecided.
// Whoever may ask makes this server keep no more than a question has.
func TestALongQuestionIsNotTaken(t *testing.T) {
	a := startEnd(t, 1, nil)
	a.ask = func(_ context.Context, body []byte) ([]byte, error) {
		return nil, fmt.Errorf("%d bytes were kept", len(body))
	}
	a.took = func(io.Reader) error { return errors.New("the file was begun") }
	for purpose, kind := range map[string]byte{forAsk: 9, forStream: kindHead} {
		conn, err := net.Dial("tcp", a.Self().Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := greet(conn, hello{Identity{Name: "stranger"}, purpose, 0}, "n1"); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(appendFrame(nil, kind, make([]byte, maxQuestion+1))) // it may hang up meanwhile
		if kind, body, err := readFrame(conn, MaxFrame); err == nil {
			t.Errorf("%s: it answered %#x: %s", purpose, kind, body)
		}
	}
	if _, err := a.AskAt(t.Context(), a.Self().Address, 9, make([]byte, maxQuestion+1)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("a long question is asked: %v", err)
	}
}

func TestAQuestionWithoutAnAnswerIsUndecided(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.know(b)
	ctx, cancel := context.WithCancel(t.Context())
	b.ask = func(context.Context, []byte) ([]byte, error) {
		cancel() // the one who asked goes away
		return nil, nil
	}
	asked := make(chan error, 1)
	go func() {
		_, err := a.Mesh.Ask(ctx, 2, 9, nil)
		asked <- err
	}()
	if err := next(t, "answer", asked); err != nil && !errors.Is(err, leasehold.ErrUndecided) {
		t.Fatal(err)
	}
}

func TestLargeFilesStream(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.know(b)
	for _, size := range []int64{0, 1, chunkBytes, chunkBytes + 1, 64 << 20} {
		var got int64
		b.took = func(r io.Reader) (err error) {
			got, err = io.Copy(io.Discard, r)
			return err
		}
		if err := a.Mesh.Stream(t.Context(), 2, 9, []byte("head"), io.LimitReader(zeros{}, size)); err != nil || got != size {
			t.Fatalf("%d of %d bytes, %v", got, size, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestAFileThatIsCutOffIsNotTaken(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.know(b)
	took := make(chan error, 1)
	b.took = func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		took <- err
		return err
	}
	broken := io.MultiReader(io.LimitReader(zeros{}, 1<<20), failing{})
	if err := a.Mesh.Stream(t.Context(), 2, 9, nil, broken); err == nil {
		t.Fatal("it was sent")
	}
	if err := next(t, "end", took); err == nil {
		t.Fatal("half a file was taken for a whole one")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk does not give it out") }

func TestAFileThatIsRefusedSaysWhy(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.know(b)
	b.took = func(r io.Reader) error { return errors.New("there is no room") }
	err := a.Mesh.Stream(t.Context(), 2, 9, nil, io.LimitReader(zeros{}, 100))
	if err == nil || err.Error() != "there is no room" {
		t.Fatal(err)
	}
}

func TestARefusedServerHearsWhy(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	b.admit = func(from Identity, question bool) *Refusal {
		return refuse(Removed, "server %s was removed", from)
	}
	a.know(b)
	r := next(t, "refusal", a.refusals)
	if !r.Final() || r.By.Name != "n2" || !strings.Contains(r.Message, `"n1"`) {
		t.Fatalf("%+v", r)
	}
	_, err := a.Mesh.Ask(t.Context(), 2, 9, nil)
	if r = nil; !errors.As(err, &r) || r.Reason != Removed || !errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatal(err)
	}
}

func TestAnotherServerAtTheAddressIsNotTakenForIt(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	for _, wrong := range []map[uint64]Peer{{2: {"n3", b.Self().Address}}, {3: {"n2", b.Self().Address}}} {
		a.SetPeers(wrong)
		for id := range wrong {
			var r *Refusal
			if _, err := a.Mesh.Ask(t.Context(), id, 9, nil); !errors.As(err, &r) || r.Reason != WrongServer {
				t.Fatal(err)
			}
		}
	}
}

func TestAnotherProtocolIsRefused(t *testing.T) {
	a := startEnd(t, 1, nil)
	conn, err := net.Dial("tcp", a.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(conn); len(b) > 0 {
		t.Fatalf("it answered %q", b)
	}
	await(t, "a log line", func() bool { return strings.Contains(a.logged.String(), "another protocol") })
}

// Who is told the address for clients hears what is the matter.
func TestSomethingElseListensThere(t *testing.T) {
	a := startEnd(t, 1, nil)
	there := httptest.NewServer(http.NotFoundHandler())
	defer there.Close()
	a.SetPeers(map[uint64]Peer{2: {"n2", there.Listener.Addr().String()}})
	await(t, "a log line", func() bool { return strings.Contains(a.logged.String(), "is that the address for clients") })
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come within %v", what, patience)
		}
	}
}

// An authority makes certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t, key, cert}
}

// certify returns what a server needs that trusts this authority and has a certificate
// for a name.
func (a *authority) certify(name string) func() *tls.Config {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	c := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: roots}
	return func() *tls.Config { return c }
}

func TestMutualTLS(t *testing.T) {
	ca := newAuthority(t)
	a, b := startEnd(t, 1, ca.certify("n1")), startEnd(t, 2, ca.certify("n2"+CertificateDomain))
	a.know(b)
	b.know(a)
	next(t, "connection", a.reached)
	next(t, "connection", b.reached)
	a.Send(2, 7, []byte("secret"))
	next(t, "message", b.messages)
	b.took = func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
	if err := a.Mesh.Stream(t.Context(), 2, 9, nil, io.LimitReader(zeros{}, 8<<20)); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherAuthorityIsRefused(t *testing.T) {
	a, b := startEnd(t, 1, newAuthority(t).certify("n1")), startEnd(t, 2, newAuthority(t).certify("n2"))
	a.know(b)
	if _, err := a.Mesh.Ask(t.Context(), 2, 9, nil); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Fatal(err)
	}
}

func TestAClientOfAnotherAuthorityIsRefused(t *testing.T) {
	ca := newAuthority(t)
	// It trusts whom it should, but nobody trusts it.
	stranger, ours := newAuthority(t).certify("n1"), ca.certify("n1")
	a := startEnd(t, 1, func() *tls.Config {
		return &tls.Config{Certificates: stranger().Certificates, RootCAs: ours().RootCAs}
	})
	b := startEnd(t, 2, ca.certify("n2"))
	a.know(b)
	if _, err := a.Mesh.Ask(t.Context(), 2, 9, nil); err == nil {
		t.Fatal("it was let in")
	}
	await(t, "a log line", func() bool { return strings.Contains(b.logged.String(), "unknown authority") })
}

func TestACertificateForAnotherNameIsRefused(t *testing.T) {
	ca := newAuthority(t)
	a, b, c := startEnd(t, 1, ca.certify("n1")), startEnd(t, 2, ca.certify("n3")), startEnd(t, 3, ca.certify("n3"))
	a.know(b)
	b.know(c)
	var r *Refusal
	// b says that it is n2 and cannot prove it: neither to whom it calls, nor to who calls it.
	if _, err := a.Mesh.Ask(t.Context(), 2, 9, nil); !errors.As(err, &r) || r.Reason != WrongName || !strings.Contains(err.Error(), `"n3"`) {
		t.Fatal(err)
	}
	if _, err := b.Mesh.Ask(t.Context(), 3, 9, nil); !errors.As(err, &r) || r.Reason != WrongName || !strings.Contains(err.Error(), `"n2"`) {
		t.Fatal(err)
	}
}

// Whoever has a certificate of the authority can answer at an address. It cannot end a server in another's name.
func TestARefusalByAnotherServerIsNotBelieved(t *testing.T) {
	ca := newAuthority(t)
	for name, calledBy := range map[string]string{"posing": "n2", "another": "n9"} {
		t.Run(name, func(t *testing.T) {
			a, b := startEnd(t, 1, ca.certify("n1")), startEnd(t, 2, ca.certify("n9"))
			self := b.Self()
			self.Name = calledBy
			b.SetSelf(self)
			b.admit = func(Identity, bool) *Refusal { return refuse(Removed, "go away") }
			a.SetPeers(map[uint64]Peer{2: {"n2", self.Address}})
			if _, err := a.Mesh.Ask(t.Context(), 2, 9, nil); err == nil {
				t.Fatal("it was let in")
			}
			select {
			case r := <-a.refusals:
				t.Errorf("it was believed: %+v", r)
			default:
			}
		})
	}
}

func TestPlainAndSecureDoNotMix(t *testing.T) {
	ca := newAuthority(t)
	a, b := startEnd(t, 1, nil), startEnd(t, 2, ca.certify("n2"))
	a.know(b)
	b.know(a)
	if _, err := a.Mesh.Ask(t.Context(), 2, 9, nil); err == nil {
		t.Fatal("plain was let in")
	}
	if _, err := b.Mesh.Ask(t.Context(), 1, 9, nil); err == nil {
		t.Fatal("secure talked to plain")
	}
	await(t, "a line of the plain one", func() bool {
		return strings.Contains(a.logged.String(), "it has certificates for servers, and this one has none")
	})
	await(t, "a line of the secure one", func() bool { return strings.Contains(b.logged.String(), "has it no certificates for servers?") })
}

// Whoever tries again for ever is not in the log for ever.
func TestTheSameIsSaidOnce(t *testing.T) {
	a := startEnd(t, 1, nil)
	for i := range 5 {
		from := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1000 + i}
		a.complain("it did not come in", from, fmt.Errorf("it has expired: current time %d is after 3", i))
		a.complain("it did not come in", from, &net.OpError{Op: "read", Net: "tcp", Source: from, Err: io.ErrUnexpectedEOF})
	}
	a.complain("it did not come in", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 1}, io.ErrUnexpectedEOF)
	if n := strings.Count(a.logged.String(), "it did not come in"); n != 3 {
		t.Fatalf("%d lines:\n%s", n, a.logged.String())
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, 1, []byte("body")))
	f.Add(appendFrame(nil, kindPing, nil))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, body, err := readFrame(bytes.NewReader(b), 1<<16)
		if err != nil {
			return
		}
		if again := appendFrame(nil, kind, body); !bytes.HasPrefix(b, again) {
			t.Fatalf("%x was read from %x", again, b)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(appendFrame([]byte(magic), kindHello, []byte(`{"name":"n1","id":1,"purpose":"ask"}`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readHello(bytes.NewReader(b))
		if len(b) > 0 {
			_, _ = readWelcome(b[0], b[1:])
			_ = decodeError(b)
		}
	})
}

// A server that came back without its data may still be waiting to be called.
func TestAServerThatIsNotAdmittedIsNotTalkedTo(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	a.admit = func(other Identity, question bool) *Refusal {
		return refuse(Replaced, "server %s has lost its data", other)
	}
	b.ask = func(context.Context, []byte) ([]byte, error) { return nil, nil }
	a.know(b)
	var r *Refusal
	if _, err := a.Mesh.Ask(t.Context(), 2, 9, nil); !errors.As(err, &r) || r.Reason != Replaced || !errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatal(err)
	}
	if next(t, "loss", a.lost); len(a.refusals) > 0 {
		t.Error("it takes the refusal for one of its own")
	}
}

// What is urgent comes through while megabytes wait for a server that takes none of them.
func TestWhatIsUrgentDoesNotWait(t *testing.T) {
	a, b := startEnd(t, 1, nil), startEnd(t, 2, nil)
	stuck, urgent := make(chan struct{}), make(chan string, 1)
	b.message = func(kind byte, body []byte) {
		if kind == 7 {
			<-stuck
			return
		}
		urgent <- string(body)
	}
	t.Cleanup(func() { close(stuck) })
	a.know(b)
	next(t, "connection", a.reached)
	await(t, "a connection for what is urgent", func() bool { return a.links[2].urgent.isUp() })
	for a.Send(2, 7, make([]byte, 1<<20)) {
	}
	if !a.SendUrgent(2, 8, []byte("heartbeat")) {
		t.Fatal("it was not sent")
	}
	if got := next(t, "urgent message", urgent); got != "heartbeat" {
		t.Errorf("%q came", got)
	}
}

// A server of a version without such a connection gets it before all that waits.
func TestWhatIsUrgentGoesFirstToAnOlderServer(t *testing.T) {
	older, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	came := make(chan string, 1)
	go serveAsOlder(older, came)
	a := startEnd(t, 1, nil)
	a.SetPeers(map[uint64]Peer{2: {"n2", older.Addr().String()}})
	next(t, "connection", a.reached)
	if !a.SendUrgent(2, 8, []byte("heartbeat")) {
		t.Fatal("it was not sent")
	}
	if got := next(t, "message", came); got != "heartbeat" {
		t.Errorf("%q came", got)
	}
	l := &lane{up: true, arrived: make(chan struct{}, 1)}
	for range 4 {
		l.send(7, make([]byte, burst/2), false)
	}
	l.send(8, nil, true)
	var kinds []byte
	for len(l.arrived) > 0 {
		<-l.arrived
		for _, frame := range l.take() {
			kinds = append(kinds, frame[frameHead])
		}
		if len(kinds) == 2 {
			l.send(8, nil, true)
		}
	}
	if want := []byte{8, 7, 8, 7, 7, 7}; !bytes.Equal(kinds, want) {
		t.Errorf("the order is %v, want %v", kinds, want)
	}
	if l.bytes != 0 {
		t.Errorf("%d bytes are said to wait", l.bytes)
	}
}

// serveAsOlder is a server that knows one connection for messages alone.
func serveAsOlder(listener net.Listener, came chan<- string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		h, err := readHello(conn)
		if err != nil {
			return
		}
		if h.Purpose != forMessages {
			_ = answerHello(conn, Identity{Cluster: "c", ID: 2, Name: "n2"}, refuse(NotReady, "unknown purpose"))
			continue
		}
		_ = answerHello(conn, Identity{Cluster: "c", ID: 2, Name: "n2"}, nil)
		go func() {
			for {
				kind, body, err := readFrame(conn, MaxFrame)
				if err != nil {
					return
				}
				if kind == 8 {
					came <- string(body)
				}
			}
		}()
	}
}

// A message that takes longer than the other end is patient is none that does not come.
func TestASlowMessageIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		m := New(Config{})
		got := make(chan string, 1)
		m.Handler = &end{message: func(_ byte, body []byte) { got <- fmt.Sprint(len(body)) }}
		var done sync.WaitGroup
		pongs := 0
		done.Go(func() { _ = m.readMessages(there, 1) })
		done.Go(func() {
			for {
				if kind, _, err := readFrame(here, 0); err != nil || kind != kindPong {
					return
				}
				pongs++
			}
		})
		frame := appendFrame(nil, 7, make([]byte, 100))
		for i := range frame { // a byte in 100 ms: eleven seconds for all of them
			time.Sleep(100 * time.Millisecond)
			if _, err := here.Write(frame[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if body := <-got; body != "100" {
			t.Errorf("a message of %s bytes came", body)
		}
		_ = here.Close()
		done.Wait()
		if pongs < 10 {
			t.Errorf("the sender heard %d times that it is listened to", pongs)
		}
	})
}

// Strangers that connect and say nothing do not keep other servers out.
func TestSilentStrangersMakeRoom(t *testing.T) {
	one, two := startEnd(t, 1, nil), startEnd(t, 2, nil)
	for range maxIncoming + 20 {
		conn, err := net.Dial("tcp", two.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	one.SetPeers(map[uint64]Peer{2: {Name: "n2", Address: two.Listener.Addr().String()}})
	next(t, "sign of the other server", one.reached)
	for !one.Send(2, 1, []byte("hello")) {
		time.Sleep(time.Millisecond)
	}
	if got := next(t, "message", two.messages); got != "1 1 hello" {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(two.logged.String(), "as many connections as there can be") {
		t.Errorf("the log says nothing of it: %s", two.logged)
	}
}
