package azure

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// testCertificates are those of a server that nobody has to trust.
func testCertificates(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	// Without tickets, the server writes nothing that the client did not ask for.
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, SessionTicketsDisabled: true}
}

// serve runs the door on a real port, until the test ends, and returns its address.
func (b *bench) serve() string {
	b.Helper()
	certificates := testCertificates(b)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- b.port(certificates).Serve(ctx, l)
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && err != http.ErrServerClosed {
			b.Errorf("the server ends with %v", err)
		}
	})
	return l.Addr().String()
}

// A wire is one connection to the door.
type wire struct {
	*bench
	*tls.Conn
	r *bufio.Reader
}

func (b *bench) dial(address string, protocols ...string) *wire {
	b.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return &wire{b, c, bufio.NewReader(c)}
}

// ask sends a signed request on the connection and returns the first line of the answer,
// which it reads to its end.
func (w *wire) ask(method, target, body string, headers ...string) string {
	w.Helper()
	r := httptest.NewRequest(method, "https://127.0.0.1/"+testAccount+target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w.sign(r)
	if err := r.Write(w.Conn); err != nil {
		w.Fatal(err)
	}
	return w.answer(method)
}

func (w *wire) answer(method string) string {
	w.Helper()
	_ = w.SetReadDeadline(time.Now().Add(time.Minute))
	answer, err := http.ReadResponse(w.r, &http.Request{Method: method})
	if err != nil {
		w.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.Status
}

// The first line says why, also where there is no body, and the connection goes on.
func TestReasonPhrase(t *testing.T) {
	b := newBench(t)
	b.container("box")
	w := b.dial(b.serve())
	for range 3 {
		for _, c := range []struct{ method, target, want string }{
			{"HEAD", "/box/none", "404 The specified blob does not exist."},
			{"GET", "/box/none", "404 The specified blob does not exist."},
			{"PUT", "/box/none", "400 An HTTP header that's mandatory for this request is not specified."},
			{"GET", "/box?restype=container", "200 OK"},
		} {
			if got := w.ask(c.method, c.target, ""); got != c.want {
				t.Errorf("%s %s: %q, want %q", c.method, c.target, got, c.want)
			}
		}
	}
	b.blob("box/x", strings.Repeat("x", 10000))
	b.into("/box/x", "infinite")
	_, err := b.engine.Do(t.Context(), &core.Break{Namespace: leasehold.DefaultNamespace, Resource: "azure/leasehold/box/x", Token: b.token("azure/leasehold/box/x"),
		By: "alice", Reason: "deploy\r\nhängt"})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.ask("HEAD", "/box/x", "", "x-ms-lease-id", idA); !strings.HasPrefix(got, "412 A lease ID was specified, but the lease was broken by alice at ") ||
		!strings.HasSuffix(got, ": deploy  h ngt.") {
		t.Errorf("got %q", got)
	}
	if got := w.ask("GET", "/box/x", ""); got != "200 OK" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyHTTP1(t *testing.T) {
	b := newBench(t)
	w := b.dial(b.serve(), "h2", "http/1.1")
	if err := w.Handshake(); err != nil {
		t.Fatal(err)
	}
	if p := w.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
		t.Errorf("the protocol is %q", p)
	}
}

// Ten gigabytes are announced: the refusal comes at once, and costs nothing.
func TestTooMuchIsRefusedAtOnce(t *testing.T) {
	b := newBench(t)
	b.container("box")
	address := b.serve()
	for _, target := range []string{"/box/x", "/box/x?comp=block&blockid=QQ%3D%3D", "/box/x?comp=blocklist"} {
		w := b.dial(address)
		r := httptest.NewRequest("PUT", "https://127.0.0.1/"+testAccount+target, nil)
		r.ContentLength = 10 << 30
		r.Header.Set("X-Ms-Blob-Type", "BlockBlob")
		b.sign(r)
		fmt.Fprintf(w, "PUT %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n", r.RequestURI, r.ContentLength)
		if err := r.Header.Write(w); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, "\r\n")
		if got := w.answer("PUT"); !strings.HasPrefix(got, "413 ") {
			t.Errorf("%s: %q", target, got)
		}
	}
	b.ask("GET", "/box/x", "").expect(404, "BlobNotFound")
}

// A body that stops in the middle leaves nothing behind, in either framing.
func TestBodyThatStops(t *testing.T) {
	b := newBench(t)
	b.container("box")
	address := b.serve()
	for _, chunked := range []bool{false, true} {
		w := b.dial(address)
		r := httptest.NewRequest("PUT", "https://127.0.0.1/"+testAccount+"/box/x", nil)
		r.Header.Set("X-Ms-Blob-Type", "BlockBlob")
		framing := "Transfer-Encoding: chunked\r\n"
		if r.ContentLength = -1; !chunked {
			r.ContentLength, framing = 200000, "Content-Length: 200000\r\n"
		}
		b.sign(r)
		fmt.Fprintf(w, "PUT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", r.RequestURI, framing)
		if err := r.Header.Write(w); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, "\r\n")
		if chunked {
			fmt.Fprintf(w, "%x\r\n", 200000)
		}
		fmt.Fprint(w, strings.Repeat("x", 100000))
		if err := w.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := w.answer("PUT"); !strings.HasPrefix(got, "400 ") {
			t.Errorf("chunked %v: %q", chunked, got)
		}
	}
	b.ask("GET", "/box/x", "").expect(404, "BlobNotFound")
	if n := b.door.uploads.Now(); n != 0 {
		t.Errorf("%d uploads are still under way", n)
	}
}

func TestChunkedBody(t *testing.T) {
	b := newBench(t)
	b.container("box")
	w := b.dial(b.serve())
	r := httptest.NewRequest("PUT", "https://127.0.0.1/"+testAccount+"/box/x", nil)
	r.Header.Set("X-Ms-Blob-Type", "BlockBlob")
	r.ContentLength = -1
	b.sign(r)
	fmt.Fprintf(w, "PUT %s HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n", r.RequestURI)
	_ = r.Header.Write(w)
	fmt.Fprint(w, "\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
	if got := w.answer("PUT"); got != "201 Created" {
		t.Fatalf("got %q", got)
	}
	if got := b.ask("GET", "/box/x", "").expect(200); got.body != "abcde" {
		t.Errorf("got %q", got.body)
	}
}

// Large bodies go where large values are kept, a piece at a time, and end at the most that
// there can be. The second begins a piece before that: to hash all of it takes 20 s under the
// race detector.
func TestLargeBodiesPassThrough(t *testing.T) {
	b := newBench(t)
	c := &call{door: b.door, ctx: t.Context()}
	body, err := c.keep(&zeros{n: 2 << 20})
	if err != nil || body.size != 2<<20 || body.large == nil {
		t.Fatalf("%+v %v", body, err)
	}
	const piece = 1 << 20
	counted := &counter{r: &endless{}, n: leasehold.MaxLarge - piece}
	if _, err := c.keepLarge(counted, counted, md5.New()); faultOf(err).code != "RequestBodyTooLarge" {
		t.Errorf("without an end: %v", err)
	}
	if read := counted.n - leasehold.MaxLarge; read <= 0 || read > piece {
		t.Errorf("it was refused %d bytes after the most that there can be", read)
	}
}

type zeros struct{ n int }

func (z *zeros) Read(b []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(len(b), z.n)
	clear(b[:n])
	z.n -= n
	return n, nil
}

type endless struct{}

func (*endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
